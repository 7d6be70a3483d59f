#include <zephyr/device.h>
#include <zephyr/kernel.h>
enum pdm_lr { PDM_CHAN_LEFT, PDM_CHAN_RIGHT };
enum dmic_trigger { DMIC_TRIGGER_STOP, DMIC_TRIGGER_START };
struct pcm_stream_cfg {
    uint32_t pcm_rate;
    uint8_t pcm_width;
    uint16_t block_size;
    struct k_mem_slab *mem_slab;
};
struct dmic_cfg {
    struct {
        uint32_t min_pdm_clk_freq, max_pdm_clk_freq;
        uint8_t min_pdm_clk_dc, max_pdm_clk_dc;
    } io;
    struct pcm_stream_cfg *streams;
    struct {
        uint32_t req_chan_map_lo, req_chan_map_hi;
        uint8_t req_num_chan, req_num_streams;
    } channel;
};
uint32_t dmic_build_channel_map(uint8_t channel, uint8_t pdm, enum pdm_lr lr);
int dmic_configure(const struct device *device, struct dmic_cfg *settings);
int dmic_trigger(const struct device *device, enum dmic_trigger command);
int dmic_read(const struct device *device, uint8_t stream, void **block, size_t *bytes, int32_t ms);
