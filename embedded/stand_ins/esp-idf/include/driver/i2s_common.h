#pragma once
#include <stddef.h>
#include <stdint.h>
typedef int esp_err_t;
enum { ESP_OK };
typedef struct i2s_channel *i2s_chan_handle_t;
typedef struct {
    int id, role;
} i2s_chan_config_t;
enum { I2S_NUM_0, I2S_ROLE_MASTER = 0, I2S_DATA_BIT_WIDTH_16BIT = 16, I2S_SLOT_MODE_MONO = 1, I2S_GPIO_UNUSED = -1 };
#define I2S_CHANNEL_DEFAULT_CONFIG(number, master) {.id = number, .role = master}
esp_err_t i2s_new_channel(const i2s_chan_config_t *settings, i2s_chan_handle_t *tx, i2s_chan_handle_t *rx);
esp_err_t i2s_channel_enable(i2s_chan_handle_t channel);
esp_err_t i2s_channel_read(i2s_chan_handle_t channel, void *to, size_t bytes, size_t *got, uint32_t ms);
typedef struct {
    uint32_t rate;
} i2s_clock_t;
typedef struct {
    int width, mode;
} i2s_slot_t;
