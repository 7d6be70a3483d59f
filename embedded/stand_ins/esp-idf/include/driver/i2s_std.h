#include <driver/i2s_common.h>
typedef struct {
    i2s_clock_t clk_cfg;
    i2s_slot_t slot_cfg;
    struct {
        int mclk, bclk, ws, dout, din;
    } gpio_cfg;
} i2s_std_config_t;
#define I2S_STD_CLK_DEFAULT_CONFIG(hz) {.rate = hz}
#define I2S_STD_PHILIPS_SLOT_DEFAULT_CONFIG(bits, slots) {.width = bits, .mode = slots}
esp_err_t i2s_channel_init_std_mode(i2s_chan_handle_t channel, const i2s_std_config_t *settings);
