/* task.h - stands in for the kernel's header of that name. */
#ifndef INC_TASK_H
#define INC_TASK_H

#ifndef INC_FREERTOS_H
#error "include FreeRTOS.h before task.h"
#endif

typedef StaticTask_t *TaskHandle_t;
typedef void (*TaskFunction_t)(void *);

TaskHandle_t xTaskCreateStatic(TaskFunction_t function, const char *name, uint32_t depth, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task);
void vTaskStartScheduler(void);
BaseType_t xTaskNotifyGive(TaskHandle_t task);
uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t ticks);
void stand_in_yield(void);
#define taskYIELD() stand_in_yield()

#endif
