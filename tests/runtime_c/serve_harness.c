/* serve_harness.c - a server of a small model in memory: its output is its input, each byte plus the number of runs. */
#include "mcc_serve_dump.h"

#include <string.h>

#define MOST 16384u

void harness_start(void);
size_t harness_feed(const uint8_t *bytes, size_t count, uint8_t *answers);
int harness_runs(void);
int harness_whole(void);

static struct {
    uint8_t before[64], input[6000], between[64], output[6000], after[64];
} memory;
static mcc_serve_area areas[2] = {{NULL, 6000u, 1}, {NULL, 6000u, 0}};
static uint8_t blob[64], answered[MOST];
static size_t answered_count;
static mcc_serve server;
static int runs, all_runs; /* since init, and ever */

static int next(void *stream); /* byte, that a run which has stopped reads */

static mcc_status begin(void)
{
    areas[0].at = memory.input;
    areas[1].at = memory.output;
    runs = 0;
    return MCC_OK;
}

static mcc_status run(void)
{
    static const mcc_index shape[1] = {6000}, strides[1] = {1};
    size_t i;
    runs++;
    all_runs++;
    for (i = 0; i < sizeof memory.input; i++) memory.output[i] = (uint8_t)(memory.input[i] + runs);
    mcc_dump_tensor(mcc_serve_stop, &server, MCC_DUMP_VALUE, "y", 0u, 2u, 8u, 1u, shape, strides, -1, 0, memory.output);
    mcc_dump_tensor(mcc_serve_stop, &server, MCC_DUMP_END, "m", 0u, 2u, 8u, 1u, shape, strides, -1, 0, memory.output);
    return MCC_OK;
}

static mcc_status store(uint32_t offset, const uint8_t *bytes, size_t count)
{
    (void)bytes;
    return offset + count > 100000u ? MCC_ERR_BLOB_SIZE : MCC_OK;
}

static void keep(void *stream, const uint8_t *bytes, size_t count)
{
    (void)stream;
    if (count > MOST - answered_count) return;
    memcpy(answered + answered_count, bytes, count);
    answered_count += count;
}

void harness_start(void)
{
    size_t i;
    memset(&server, 0, sizeof server);
    memset(&memory, 0x5A, sizeof memory);
    for (i = 0; i < sizeof blob; i++) blob[i] = (uint8_t)i;
    server.blob = blob;
    server.areas = areas;
    server.area_count = 2u;
    server.init = begin;
    server.run = run;
    server.write = keep;
    server.store = store;
    server.read = next;
    server.record = mcc_serve_record;
}

size_t harness_feed(const uint8_t *bytes, size_t count, uint8_t *answers)
{
    size_t i;
    answered_count = 0u;
    for (i = 0; i < count; i++) mcc_serve_byte(&server, bytes[i]);
    memcpy(answers, answered, answered_count);
    return answered_count;
}

int harness_runs(void) { return runs; }

int harness_whole(void)
{
    size_t i;
    for (i = 0; i < 64u; i++)
        if (memory.before[i] != 0x5A || memory.between[i] != 0x5A || memory.after[i] != 0x5A) return 0;
    return 1;
}

#ifndef SERVE_HOSTILE
static int next(void *stream)
{
    (void)stream;
    return -1;
}
#else
/* A million random bytes, zeros among them as often as frames have them; then requests with a right CRC and random
 * contents, which are what can do harm. */
static uint32_t seed = 1u;

static uint8_t any(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint8_t)(seed >> 24);
}

typedef struct {
    uint8_t bytes[MCC_SERVE_SLACK + MCC_SERVE_FRAME + 1u];
    size_t at, count;
} request;

/* Any request, of which CRC and COBS are right. */
static void draw(request *r, long n)
{
    uint8_t *const asked = r->bytes + MCC_SERVE_SLACK;
    const size_t body = n % 3 ? any() % 9u : (any() * 256u + any()) % (MCC_SERVE_BODY + 1u);
    size_t i;
    for (i = 0u; i < MCC_SERVE_HEAD + body; i++) asked[i] = any();
    asked[4] = (uint8_t)(any() % 9u);
    asked[5] = (uint8_t)(any() % 3u);
    if (n % 5 == 0) asked[5] = MCC_SERVE_RECORD;
    if (n % 2) asked[7] = (uint8_t)(any() % 24u), asked[8] = asked[9] = 0u;
    r->count = mcc_frame_encoded(r->bytes, MCC_SERVE_SLACK, MCC_SERVE_HEAD + body);
    r->at = 0u;
}

static long stops;

static int next(void *stream)
{
    static request waiting;
    static long n;
    (void)stream;
    stops += server.is_stopped;
    answered_count = 0u;
    if (waiting.at == waiting.count) draw(&waiting, n++);
    return any() == 0u && any() == 0u ? -1 : waiting.bytes[waiting.at++];
}

int main(void)
{
    static request whole;
    long n;
    size_t i;
    harness_start();
    for (n = 0; n < 1000000; n++) {
        const uint8_t byte = any();
        mcc_serve_byte(&server, any() < 4u ? 0u : byte);
        answered_count = 0u;
    }
    if (all_runs != 0) return 1;
    for (n = 0; n < 100000; n++) {
        draw(&whole, n);
        for (i = 0; i < whole.count; i++) mcc_serve_byte(&server, whole.bytes[i]);
        answered_count = 0u;
    }
    return !harness_whole() || all_runs == 0 || stops == 0 ? 2 : 0;
}
#endif
