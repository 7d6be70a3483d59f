/* main.c - a device that knows six words learns two more from eight recordings each, while it goes on to hear; keeps them
 * in flash, where the power may fail at any byte; and tells what that costs. */
#include <string.h>
#include "words.h"

enum { OLD = 6, WORDS = 8, REHEARSED = 4, LEARNED = 8, TRIED = 10 }; /* as in train.py */
enum { NEW = WORDS - OLD, OF_OLD = OLD * REHEARSED, OF_NEW = NEW * LEARNED, ROUNDS = 12, CUTS = 1000 };
#define RATE 0.02f
#define PER_TICK 40u /* instructions, of QEMU's 25 MHz */

void say(const char *text); /* startup.c: to the debugger */
void leave(int failed);

/* Energies as bytes: of old words to rehearse, of new ones, and of all to be tried on; word by word. */
extern const int8_t recordings[];
__asm__(".section .rodata.recordings, \"a\"\n.global recordings\nrecordings: .incbin \"recordings.bin\"\n.previous");
#define TESTS (OF_OLD + OF_NEW)

static MCC_ALIGNED(WORDS_ARENA_ALIGN) uint8_t arena[WORDS_ARENA_BYTES];
static words_model model;
static uint32_t heard, heard_right; /* between steps */

static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010u; /* control, reload, current */

static uint32_t since(uint32_t tick) { return ((tick - systick[2]) & 0xFFFFFFu) * PER_TICK; }

/* "text number\n" */
static void tell(const char *text, uint32_t number)
{
    char line[96];
    size_t at = sizeof line - 1, size = strlen(text);
    line[at] = 0;
    line[--at] = '\n';
    do line[--at] = (char)('0' + number % 10u);
    while ((number /= 10u) != 0u);
    memcpy(&line[at - size], text, size);
    say(&line[at - size]);
}

static void must(mcc_status status)
{
    if (status == MCC_OK) return;
    say(mcc_status_text(status));
    leave(1);
}

static void listen(int recording)
{
    const int8_t *const from = &recordings[recording * (int)WORDS_INPUT_SOUND_COUNT];
    float *const to = words_input_sound(&model);
    size_t i;
    for (i = 0; i < WORDS_INPUT_SOUND_COUNT; ++i) to[i] = (float)from[i] / 128.0f;
}

static int word_of(int recording)
{
    const float *scores;
    int word, best = 0;
    listen(recording);
    must(words_run(&model));
    scores = words_output_scores(&model);
    for (word = 1; word < WORDS; ++word)
        if (scores[word] > scores[best]) best = word;
    return best;
}

/* Of a hundred recordings of these words so many are understood. */
static uint32_t understood(int first, int end)
{
    uint32_t right = 0;
    int word, i;
    for (word = first; word < end; ++word)
        for (i = 0; i < TRIED; ++i) right += word_of(TESTS + word * TRIED + i) == word;
    return right * 100u / (uint32_t)((end - first) * TRIED);
}

static void learn(int recording, int word)
{
    listen(recording);
    words_input_target(&model)[0] = word;
    must(words_learn(&model, RATE));
}

static void learn_new_words(void)
{
    int round, i, test = 0;
    for (round = 0; round < ROUNDS; ++round) {
        for (i = 0; i < OF_NEW; ++i) {
            learn(OF_OLD + i % NEW * LEARNED + i / NEW, OLD + i % NEW);
            learn((round * OF_NEW + i) * 7 % OF_OLD, (round * OF_NEW + i) * 7 % OF_OLD / REHEARSED); /* rehearses */
            heard_right += word_of(TESTS + test) == test / TRIED; /* an old word comes in between */
            test = (test + 7) % (OLD * TRIED);
            ++heard;
        }
    }
}

/* Flash that the power fails in, after so many bytes. */
static uint8_t flash[2][WORDS_SLOT_BYTES];
static uint32_t power;

static int put(uint8_t *to, uint8_t value) { return power == 0u ? 1 : (--power, *to = value, 0); }

static int read_slot(void *user, uint32_t slot, uint32_t at, void *to, size_t bytes)
{
    (void)user;
    memcpy(to, &flash[slot][at], bytes);
    return 0;
}

static int erase_slot(void *user, uint32_t slot)
{
    size_t i;
    (void)user;
    for (i = 0; i < WORDS_SLOT_BYTES; ++i)
        if (put(&flash[slot][i], 0xFF)) return 1;
    return 0;
}

static int write_slot(void *user, uint32_t slot, uint32_t at, const void *from, size_t bytes)
{
    size_t i;
    (void)user;
    for (i = 0; i < bytes; ++i)
        if (put(&flash[slot][at + i], ((const uint8_t *)from)[i])) return 1;
    return 0;
}

static const mcc_store store = {read_slot, erase_slot, write_slot, NULL};

static void boot(void) { must(words_init(&model, arena, sizeof arena, words_weights, words_weights_bytes)); }

/* What a device holds that was switched on again: 1 the old weights, 2 the new ones, 0 anything else. */
static int held(float before, float after)
{
    float now;
    boot();
    must(words_load(&model, &store));
    now = words_state_bias(&model)[OLD];
    return now == before ? 1 : now == after ? 2 : 0;
}

/* Saves what is known now at full power, then something newer again and again, at power that fails anywhere. */
static void cut_power(void)
{
    uint32_t cut, old = 0, new = 0, chance = 1u;
    const float learned = words_state_bias(&model)[OLD];
    float kept = learned;
    power = 4u * WORDS_SLOT_BYTES;
    must(words_save(&model, &store));
    for (cut = 0; cut < CUTS; ++cut) {
        const float after = learned + 1.0f + (float)cut;
        int found;
        boot();
        must(words_load(&model, &store));
        words_state_bias(&model)[OLD] = after;
        chance = chance * 1664525u + 1013904223u;
        power = (chance >> 8) % (2u * WORDS_SLOT_BYTES + WORDS_SLOT_BYTES / 4u); /* erased and written is all by then */
        (void)words_save(&model, &store);
        found = held(kept, after);
        if (found == 2) kept = after;
        old += found == 1;
        new += found == 2;
    }
    tell("power cuts that left the old weights: ", old);
    tell("power cuts that left the new weights: ", new);
    leave(old + new != CUTS || old == 0 || new == 0);
}

int main(void)
{
    uint32_t tick;
    systick[1] = 0xFFFFFFu;
    systick[2] = 0u;
    systick[0] = 5u;
    boot();
    tell("bytes of RAM for inference, learning and what is learned: ", (uint32_t)sizeof arena);
    tell("old words before, percent: ", understood(0, OLD));
    tell("new words before, percent: ", understood(OLD, WORDS));
    tick = systick[2];
    (void)word_of(0);
    tell("instructions per inference: ", since(tick));
    tick = systick[2];
    learn(0, 0);
    tell("instructions per learned sample: ", since(tick));
    learn_new_words();
    tell("heard between steps: ", heard);
    tell("of these right: ", heard_right);
    tell("old words after, percent: ", understood(0, OLD));
    tell("new words after, percent: ", understood(OLD, WORDS));
    cut_power();
    return 0;
}
