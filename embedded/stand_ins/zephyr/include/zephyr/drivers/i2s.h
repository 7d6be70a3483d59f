#include <zephyr/device.h>
#include <zephyr/kernel.h>
enum i2s_dir { I2S_DIR_RX };
enum i2s_trigger_cmd { I2S_TRIGGER_START };
enum { I2S_FMT_DATA_FORMAT_I2S = 0, I2S_OPT_BIT_CLK_MASTER = 0, I2S_OPT_FRAME_CLK_MASTER = 0 };
struct i2s_config {
    uint8_t word_size, channels, format, options;
    uint32_t frame_clk_freq;
    struct k_mem_slab *mem_slab;
    size_t block_size;
    int32_t timeout;
};
int i2s_configure(const struct device *device, enum i2s_dir direction, const struct i2s_config *settings);
int i2s_trigger(const struct device *device, enum i2s_dir direction, enum i2s_trigger_cmd command);
int i2s_read(const struct device *device, void **block, size_t *bytes);
