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
#include <stddef.h>
typedef struct {
    int id;
} I2S_HandleTypeDef, ADC_HandleTypeDef, DFSDM_Filter_HandleTypeDef;
void HAL_I2S_RxHalfCpltCallback(I2S_HandleTypeDef *handle);
void HAL_I2S_RxCpltCallback(I2S_HandleTypeDef *handle);
void HAL_ADC_ConvHalfCpltCallback(ADC_HandleTypeDef *handle);
void HAL_ADC_ConvCpltCallback(ADC_HandleTypeDef *handle);
void HAL_DFSDM_FilterRegConvHalfCpltCallback(DFSDM_Filter_HandleTypeDef *handle);
void HAL_DFSDM_FilterRegConvCpltCallback(DFSDM_Filter_HandleTypeDef *handle);
HAL_StatusTypeDef HAL_I2S_Receive_DMA(I2S_HandleTypeDef *handle, uint16_t *to, uint16_t count);
HAL_StatusTypeDef HAL_ADC_Start_DMA(ADC_HandleTypeDef *handle, uint32_t *to, uint32_t count);
HAL_StatusTypeDef HAL_DFSDM_FilterRegularStart_DMA(DFSDM_Filter_HandleTypeDef *handle, int32_t *to, uint32_t count);
#define __WFI() __asm__ volatile("wfi")
