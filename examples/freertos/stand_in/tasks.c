/* tasks.c - stands in for the kernel: tasks that take turns when they yield or wait, the highest priority first. It has
 * no ticks and interrupts nobody, as the kernel with configUSE_PREEMPTION 0 where nothing waits for time. */
#include <FreeRTOS.h>
#include <task.h>

enum { MOST = 8, FLOATS = 16, KEPT = 8 };

void leave(int failed); /* startup.c */
void stand_in_switch(StackType_t **from, StackType_t *to);
void stand_in_begin(void);

/* What functions keep for their callers goes to the stack of one task, and comes from that of the other. */
__asm__(".syntax unified\n"
        ".text\n"
        ".thumb_func\n"
        ".global stand_in_switch\n"
        "stand_in_switch:\n"
        "    push {r4-r11, lr}\n"
        "    vpush {s16-s31}\n"
        "    str sp, [r0]\n"
        "    mov sp, r1\n"
        "    vpop {s16-s31}\n"
        "    pop {r4-r11, pc}\n"
        ".thumb_func\n"
        ".global stand_in_begin\n"
        "stand_in_begin:\n"
        "    mov r0, r5\n"
        "    blx r4\n"
        "    b .\n");

static TaskHandle_t tasks[MOST];
static unsigned count, running;

TaskHandle_t xTaskCreateStatic(TaskFunction_t function, const char *name, uint32_t depth, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task)
{
    StackType_t *top = stack + depth - (uintptr_t)(stack + depth) % 8u / sizeof *stack;
    unsigned i;
    (void)name;
    if (count == MOST) return NULL;
    *--top = (StackType_t)(uintptr_t)stand_in_begin | 1u;
    top -= KEPT + FLOATS;
    for (i = 0; i < KEPT + FLOATS; i++) top[i] = 0u;
    top[FLOATS] = (StackType_t)(uintptr_t)function;
    top[FLOATS + 1] = (StackType_t)(uintptr_t)parameters;
    task->top = top;
    task->priority = priority;
    task->notified = 0u;
    task->waits = 0;
    tasks[count++] = task;
    return task;
}

/* The next one behind the one that runs, among those of the highest priority. */
static unsigned next(void)
{
    unsigned best = count, i;
    for (i = 1; i <= count; i++) {
        const unsigned at = (running + i) % count;
        if (!tasks[at]->waits && (best == count || tasks[at]->priority > tasks[best]->priority)) best = at;
    }
    if (best == count) leave(1); /* all wait for each other */
    return best;
}

void stand_in_yield(void)
{
    const unsigned before = running;
    running = next();
    if (running != before) stand_in_switch(&tasks[before]->top, tasks[running]->top);
}

void vTaskStartScheduler(void)
{
    static StackType_t *of_main;
    running = count - 1u;
    running = next();
    stand_in_switch(&of_main, tasks[running]->top);
}

BaseType_t xTaskNotifyGive(TaskHandle_t task)
{
    task->notified++;
    task->waits = 0;
    return pdPASS;
}

uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t ticks)
{
    const TaskHandle_t task = tasks[running];
    uint32_t before;
    while (task->notified == 0u && ticks != 0u) {
        task->waits = 1;
        stand_in_yield();
    }
    before = task->notified;
    if (before != 0u) task->notified = clear != pdFALSE ? 0u : before - 1u;
    return before;
}
