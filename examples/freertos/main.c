/* main.c - a network in one task, and others that do not wait for it: it gives way after each slice of a run. Tasks are
 * not interrupted here (configUSE_PREEMPTION 0), so slices are all that lets others in. */
#include <FreeRTOS.h>
#include <task.h>

#include "kws.h"
#include "words.h"

enum { STACK = 512, PRIORITY = 1 };

void say(const char *text); /* startup.c: to the debugger */
void leave(int failed);

static MCC_ALIGNED(KWS_ARENA_ALIGN) uint8_t arena[KWS_ARENA_BYTES];
static kws_model model;
static const uint8_t *sound;
static mcc_status status;
static uint32_t turns; /* of the task that must not wait, during a run */
static TaskHandle_t listener, asker;

/* Waits for a sound, and tells the one who asks. */
static void listen(void *unused)
{
    (void)unused;
    for (;;) {
        (void)ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        turns = 0u;
        status = kws_set_input_sound(&model, sound);
        if (status == MCC_OK) status = kws_begin(&model);
        if (status == MCC_OK) status = MCC_MORE;
        while (status == MCC_MORE) {
            status = kws_run_steps(&model, 1u);
            taskYIELD();
        }
        (void)xTaskNotifyGive(asker);
    }
}

/* What cannot wait for a whole run: a motor, a watchdog, a radio. */
static void control(void *unused)
{
    (void)unused;
    for (;;) {
        turns++;
        taskYIELD();
    }
}

static void ask(void *unused)
{
    int wrong = 0;
    uint8_t word;
    (void)unused;
    for (word = 0; word < sizeof words / sizeof words[0]; word++) {
        uint8_t heard;
        sound = words[word];
        (void)xTaskNotifyGive(listener);
        (void)ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        heard = kws_output_scores(&model)[0];
        say(word_names[word]);
        say(status == MCC_OK && heard == word ? ": heard" : ": not heard");
        say(turns >= KWS_STEPS ? ", control had a turn after each slice\n" : ", control had to wait\n");
        wrong += status != MCC_OK || heard != word || turns < KWS_STEPS;
    }
    leave(wrong != 0);
}

int main(void)
{
    static StackType_t stacks[3][STACK];
    static StaticTask_t tasks[3];
    status = kws_init(&model, arena, sizeof arena, kws_weights, kws_weights_bytes);
    if (status != MCC_OK) leave(1);
    listener = xTaskCreateStatic(listen, "listen", STACK, NULL, PRIORITY, stacks[0], &tasks[0]);
    (void)xTaskCreateStatic(control, "control", STACK, NULL, PRIORITY, stacks[1], &tasks[1]);
    asker = xTaskCreateStatic(ask, "ask", STACK, NULL, PRIORITY, stacks[2], &tasks[2]);
    vTaskStartScheduler();
    return 0;
}
