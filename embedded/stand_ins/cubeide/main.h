#include <stdint.h>
typedef struct {
    int id;
} UART_HandleTypeDef;
typedef enum { HAL_OK, HAL_ERROR } HAL_StatusTypeDef;
#define HAL_MAX_DELAY 0xFFFFFFFFu
#define __HAL_UART_CLEAR_OREFLAG(handle) ((handle)->id = 0)
HAL_StatusTypeDef HAL_UART_Receive(UART_HandleTypeDef *uart, uint8_t *to, uint16_t count, uint32_t ms);
HAL_StatusTypeDef HAL_UART_Transmit(UART_HandleTypeDef *uart, const uint8_t *from, uint16_t count, uint32_t ms);
void HAL_Delay(uint32_t ms);
uint32_t HAL_GetTick(void);
