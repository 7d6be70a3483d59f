/* Digits, learned from random weights: 150 pictures, batch by batch, and 50 others that say what was learned.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "net.h"

enum { PICTURES = 200, LEARNED = 150, PIXELS = 64, BATCH = 10, EPOCHS = 40, CLASSES = 10 };

static MCC_ALIGNED(NET_ARENA_ALIGN) uint8_t arena[NET_ARENA_BYTES];
static uint8_t labels[PICTURES], pixels[PICTURES][PIXELS];
static net_model model;

static void show(int first)
{
    int i;
    for (i = 0; i < BATCH * PIXELS; ++i) net_input_image(&model)[i] = (float)pixels[first][i] / 16.0f;
}

/* How many of the pictures that it did not learn from it reads right; negative: an error. */
static int understood(void)
{
    int right = 0, first, i, c;
    for (first = LEARNED; first < PICTURES; first += BATCH) {
        show(first);
        if (net_run(&model) != MCC_OK) return -1;
        for (i = 0; i < BATCH; ++i) {
            const float *scores = &net_output_scores(&model)[i * CLASSES];
            int best = 0;
            for (c = 1; c < CLASSES; ++c)
                if (scores[c] > scores[best]) best = c;
            right += best == labels[first + i];
        }
    }
    return right;
}

/* All pictures once; the loss of every step goes into the curve. */
static mcc_status epoch(FILE *curve, float *loss)
{
    int first, i;
    *loss = 0.0f;
    for (first = 0; first < LEARNED; first += BATCH) {
        mcc_status s;
        show(first);
        for (i = 0; i < BATCH; ++i) net_input_target(&model)[i] = labels[first + i];
        s = net_learn(&model);
        if (s == MCC_OK) s = net_step(&model, 0.05f);
        if (s != MCC_OK) return s;
        *loss += net_loss(&model) * BATCH / LEARNED;
        fprintf(curve, "%.9g\n", (double)net_loss(&model));
    }
    return MCC_OK;
}

int main(int count, char **words)
{
    FILE *from = count == 3 ? fopen(words[1], "rb") : NULL, *curve = from ? fopen(words[2], "w") : NULL;
    int number;
    if (!curve || fread(labels, sizeof labels, 1, from) != 1 || fread(pixels, sizeof pixels, 1, from) != 1) return 1;
    fclose(from);
    if (net_init(&model, arena, sizeof arena, net_weights, net_weights_bytes) != MCC_OK) return 2;
    printf("before    %2d of %d right\n", understood(), PICTURES - LEARNED);
    for (number = 1; number <= EPOCHS; ++number) {
        float loss;
        if (epoch(curve, &loss) != MCC_OK) return 3;
        if (number % 10 == 0)
            printf("epoch %2d  %2d of %d right, loss %.4f\n", number, understood(), PICTURES - LEARNED, (double)loss);
    }
    printf("arena     %u bytes\n", (unsigned)NET_ARENA_BYTES);
    return fclose(curve) == 0 ? 0 : 4;
}
