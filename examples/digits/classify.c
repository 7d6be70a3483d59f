/* Reads pictures, writes what digit each one shows. This is all a program needs to use a compiled model.
 *
 *     classify [FILE]      FILE, or standard input, holds 64 native float32 in 0..1 per picture (8 rows of 8)
 *
 * One line per picture goes to standard output, the digit and its score; the mean time per picture to standard error.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "digits.h"

enum { CLASSES = 10 };

/* All the memory the network works in. Nothing is allocated: on a microcontroller this array is what it costs. */
static MCC_ALIGNED(DIGITS_ARENA_ALIGN) uint8_t arena[DIGITS_ARENA_BYTES];

static int best_of(const float *scores)
{
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

int main(int argc, char **argv)
{
    FILE *in = argc > 1 ? fopen(argv[1], "rb") : stdin;
    if (in == NULL) {
        perror(argv[1]);
        return 2;
    }

    /* Once: give the model its memory and its weights. Both are checked, so a wrong pair is refused here. */
    digits_model m;
    mcc_status status = digits_init(&m, arena, sizeof arena, digits_weights, digits_weights_bytes);
    if (status != MCC_OK) {
        fprintf(stderr, "classify: %s\n", mcc_status_text(status));
        return 1;
    }

    unsigned long pictures = 0;
    clock_t spent = 0;
    for (;;) {
        /* The input lives in the arena: fill it in place, before every run, since a run may overwrite it. */
        size_t bytes = fread(digits_input_image(&m), 1, DIGITS_INPUT_IMAGE_BYTES, in);
        if (bytes == 0)
            break;
        if (bytes != DIGITS_INPUT_IMAGE_BYTES) {
            fprintf(stderr, "classify: picture %lu is cut short\n", pictures);
            return 1;
        }

        clock_t start = clock();
        status = digits_run(&m);
        spent += clock() - start;
        if (status != MCC_OK) {
            fprintf(stderr, "classify: picture %lu: %s\n", pictures, mcc_status_text(status));
            return 1;
        }

        /* The output lies in the arena too, and stays there until the next run. */
        const float *scores = digits_output_scores(&m);
        int best = best_of(scores);
        printf("%d %.6f\n", best, (double)scores[best]);
        pictures++;
    }

    if (pictures > 0)
        fprintf(stderr, "%lu pictures, %.3f us per picture\n", pictures,
                (double)spent * 1e6 / CLOCKS_PER_SEC / (double)pictures);
    return 0;
}
