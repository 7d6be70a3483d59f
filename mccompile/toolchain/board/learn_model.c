/* learn_model.c - the program that checks on its target how a model learns. It reads "inputs.bin": how many batches there
 * are, after how many weights move, the rate, and of each batch the inputs of learning and those of a run. It writes
 * "results.bin": the state after init; of each batch the loss, the state after learning, that after the step where there
 * is one, and the outputs of a run; the state after all was forgotten; and the words of model_memory.h. */
#include "model_memory.h"

#define READ(symbol, bytes) \
    if (!get(file, NAME(_input_##symbol)(m), bytes)) return 0;
#define WRITE(symbol, bytes) \
    if (!put(file, NAME(_output_##symbol)(m), bytes)) return 0;
#define STRINGS(symbol, count)

static uint8_t state[MCC_HOST_STATE_BYTES];

static int read_batch(int file, NAME(_model) *m) { MCC_HOST_INPUTS(READ, STRINGS) return 1; }

static int read_inputs(int file, NAME(_model) *m) { MCC_HOST_RUN_INPUTS(READ, STRINGS) return 1; }

static int write_outputs(int file, const NAME(_model) *m) { MCC_HOST_OUTPUTS(WRITE, STRINGS) return 1; }

static int put_state(int file) { return NAME(_save_state)(&model, state) == MCC_OK && put(file, state, sizeof state); }

static mcc_status counted_learn(float rate)
{
    mcc_status status;
    (void)rate;
    board_paint_stack();
    board_count_begin();
    status = MCC_HOST_LEARN(&model, rate);
    board_count_end();
    head[4] = (uint32_t)board_stack_used();
    return status;
}

static mcc_status counted_step(float rate)
{
    mcc_status status;
    (void)rate;
    board_count_begin();
    status = MCC_HOST_STEP(&model, rate);
    board_count_end();
    return status;
}

static mcc_status counted_run(void)
{
    mcc_status status;
    board_count_begin();
    status = NAME(_run)(&model);
    board_count_end();
    return status;
}

int main(void)
{
    const int results = board_open("results.bin", 1), inputs = board_open("inputs.bin", 0);
    uint32_t asked[2], batch;
    float rate, loss;
    mcc_status status;
    if (results < 0) return 98;
    status = begin();
    if (status != MCC_OK) return ended(results, STAGE_INIT, (uint32_t)status);
    if (inputs < 0 || !get(inputs, asked, sizeof asked) || !get(inputs, &rate, sizeof rate))
        return ended(results, STAGE_READ, 0u);
    if (!put_state(results)) return 97;
    for (batch = 0; batch < asked[0]; batch++) {
        if (!read_batch(inputs, &model)) return ended(results, STAGE_READ, 0u);
        status = counted_learn(rate);
        if (status != MCC_OK) return ended(results, STAGE_LEARN, (uint32_t)status);
        loss = NAME(_loss)(&model);
        if (!put(results, &loss, sizeof loss) || !put_state(results)) return 97;
        if ((batch + 1u) % asked[1] == 0u) {
            status = counted_step(rate);
            if (status != MCC_OK) return ended(results, STAGE_LEARN, (uint32_t)status);
        }
        if (!put_state(results)) return 97;
        if (!read_inputs(inputs, &model)) return ended(results, STAGE_READ, 0u);
        status = counted_run();
        if (status != MCC_OK) return ended(results, STAGE_RUN, (uint32_t)status);
        if (!is_within()) return ended(results, STAGE_GUARD, 0u);
        if (!write_outputs(results, &model)) return 97;
    }
    status = NAME(_forget)(&model);
    if (status != MCC_OK) return ended(results, STAGE_LEARN, (uint32_t)status);
    if (!put_state(results)) return 97;
    status = INIT();
    return ended(results, status == MCC_OK ? STAGE_DONE : STAGE_WEIGHTS, (uint32_t)status);
}
