/* main.c - what firmware does with a compiled network: one struct, one arena, inputs where they already lie. */
#include "kws.h"
#include "words.h"

void say(const char *text); /* startup.c: to the debugger */
void leave(int failed);

static MCC_ALIGNED(KWS_ARENA_ALIGN) uint8_t arena[KWS_ARENA_BYTES];
static kws_model model;

int main(void)
{
    int wrong = 0;
    uint8_t word;
    /* Once: checks sizes, identity and checksums of the weights, which stay in flash. */
    mcc_status status = kws_init(&model, arena, sizeof arena, kws_weights, kws_weights_bytes);

    for (word = 0; word < sizeof words / sizeof words[0] && status == MCC_OK; word++) {
        /* The input is read where it lies, as it would be from a DMA buffer; nobody copies it. */
        status = kws_set_input_sound(&model, words[word]);
        if (status == MCC_OK) status = kws_run(&model);
        if (status == MCC_OK) {
            const uint8_t heard = kws_output_scores(&model)[0];
            say(word_names[word]);
            say(heard == word ? ": heard\n" : ": taken for something else\n");
            wrong += heard != word;
        }
    }
    if (status != MCC_OK) say(mcc_status_text(status));
    leave(status != MCC_OK || wrong != 0);
    return 0;
}
