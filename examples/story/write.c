/* Writes a story, token by token: ./write [-k 5] [-s 1] ["Once there was a brave owl"]. -k chooses among the so many
 * tokens that are most likely (1: always the first), -s is where the random numbers begin. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pieces.h"
#include "story.h"

enum { MOST = 40 };

static MCC_ALIGNED(STORY_ARENA_ALIGN) uint8_t arena[STORY_ARENA_BYTES];
static story_model model;

/* The longest piece that the text begins with, as train.py cuts texts; -1 if there is none. */
static int64_t first_piece(const char *text)
{
    size_t longest = 0;
    int64_t found = -1;
    for (int64_t n = 0; n < PIECES; ++n) {
        const size_t size = strlen(pieces[n]);
        if (size > longest && strncmp(text, pieces[n], size) == 0) {
            longest = size;
            found = n;
        }
    }
    return found;
}

/* From 0 to below 1: xorshift. */
static float drawn(uint32_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    return (float)(*random >> 8) / 16777216.0f;
}

/* One of the k most likely tokens, each as often as the network says. */
static int64_t chosen(const float *logits, int k, uint32_t *random)
{
    int64_t best[MOST];
    int count = 0;
    float sum = 0.0f, left;
    for (int64_t n = 0; n < PIECES; ++n) {
        int place = count < k ? count++ : k;
        for (; place > 0 && logits[n] > logits[best[place - 1]]; --place)
            if (place < k) best[place] = best[place - 1];
        if (place < k) best[place] = n;
    }
    for (int i = 0; i < count; ++i) sum += expf(logits[best[i]] - logits[best[0]]);
    left = drawn(random) * sum;
    for (int i = 0; i < count - 1; ++i) {
        left -= expf(logits[best[i]] - logits[best[0]]);
        if (left < 0.0f) return best[i];
    }
    return best[count - 1];
}

int main(int argc, char **argv)
{
    const char *text = "Once there was a";
    uint32_t random = 1;
    int k = 1;
    mcc_status status;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "-k") == 0 && i + 1 < argc) k = atoi(argv[++i]);
        else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) random = (uint32_t)atoi(argv[++i]);
        else text = argv[i];
    }
    if (k < 1 || k > MOST || random == 0 || *text == '\0') {
        fprintf(stderr, "-k is from 1 to %d, -s is not 0, and a text is not empty\n", MOST);
        return 2;
    }
    status = story_init(&model, arena, sizeof arena, story_weights, story_weights_bytes);
    while (status == MCC_OK) { /* MCC_ERR_SIZE: there is no room for more tokens */
        const int64_t token = *text ? first_piece(text) : chosen(story_output_logits(&model), k, &random);
        if (token < 0) {
            fprintf(stderr, "\nno piece begins like %s\n", text);
            return 2;
        }
        if (*text) text += strlen(pieces[token]);
        fputs(pieces[token], stdout);
        if (*text == '\0' && pieces[token][strlen(pieces[token]) - 1] == '\n') return 0;
        *story_input_token(&model) = token;
        status = story_run(&model);
    }
    if (status != MCC_ERR_SIZE) fprintf(stderr, "\n%s\n", mcc_status_text(status));
    putchar('\n');
    return status == MCC_ERR_SIZE ? 0 : 1;
}
