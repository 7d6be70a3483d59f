#include <stddef.h>
#include <stdint.h>
typedef int esp_err_t;
typedef struct {
    int baud_rate, data_bits, parity, stop_bits, flow_ctrl;
} uart_config_t;
enum { UART_NUM_0, UART_DATA_8_BITS = 3, UART_PARITY_DISABLE = 0, UART_STOP_BITS_1 = 1, UART_HW_FLOWCTRL_DISABLE = 0 };
#define ESP_ERROR_CHECK(call) ((void)(call))
esp_err_t uart_driver_install(int port, int rx, int tx, int events, void *queue, int flags);
esp_err_t uart_param_config(int port, const uart_config_t *settings);
int uart_read_bytes(int port, void *to, uint32_t count, uint32_t ticks);
int uart_write_bytes(int port, const void *from, size_t count);
