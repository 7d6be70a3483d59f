#include <stddef.h>
#include <stdint.h>
enum {
    ARM_POWER_FULL = 2,
    ARM_USART_MODE_ASYNCHRONOUS = 1,
    ARM_USART_DATA_BITS_8 = 0,
    ARM_USART_PARITY_NONE = 0,
    ARM_USART_STOP_BITS_1 = 0,
    ARM_USART_FLOW_CONTROL_NONE = 0,
    ARM_USART_CONTROL_TX = 0x15,
    ARM_USART_CONTROL_RX = 0x16
};
typedef struct {
    int32_t (*Initialize)(void (*event)(uint32_t));
    int32_t (*PowerControl)(int state);
    int32_t (*Send)(const void *from, uint32_t count);
    int32_t (*Receive)(void *to, uint32_t count);
    uint32_t (*GetTxCount)(void);
    uint32_t (*GetRxCount)(void);
    int32_t (*Control)(uint32_t control, uint32_t argument);
} const ARM_DRIVER_USART;
