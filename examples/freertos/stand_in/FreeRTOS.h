/* FreeRTOS.h - stands in for the kernel's header of that name: what main.c uses of it, for a Cortex-M4. */
#ifndef INC_FREERTOS_H
#define INC_FREERTOS_H

#include <stddef.h>
#include <stdint.h>

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
typedef uint32_t StackType_t;

typedef struct StaticTask {
    StackType_t *top; /* of its stack, where everything else is that it goes on with */
    UBaseType_t priority;
    uint32_t notified;
    int waits;
} StaticTask_t;

#define pdTRUE ((BaseType_t)1)
#define pdFALSE ((BaseType_t)0)
#define pdPASS pdTRUE
#define portMAX_DELAY ((TickType_t)0xFFFFFFFFu)

#endif
