/* mcc_serve.h - lets a host check a model on its board, over any stream of bytes.
 *
 * A frame is a number of 4 bytes, a code, a body, and the CRC-32 of all of these; COBS frees it of zero bytes, and a
 * zero ends it. So after lost, doubled or broken bytes the next frame is whole again, which lengths in front cannot
 * promise.
 * Numbers are little-endian. The host repeats a request that is not answered; one with the number of the last one is
 * answered without a second run.
 *
 *     code         body                             answer
 *     IDENTITY     -                                version, first 64 bytes of the blob
 *     WRITE        area, offset (4), bytes          -
 *     READ         area, offset (4), count (1)      bytes
 *     INIT         -                                status
 *     RUN          -                                status, ticks (4)
 *
 * The first byte of an answer's body is 0, or MCC_SERVE_REFUSED: no such code, or memory that no area has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SERVE_H
#define MCC_SERVE_H

#include "mcc_profile.h"

#define MCC_SERVE_VERSION 1u
#define MCC_SERVE_REFUSED 1u
#define MCC_SERVE_BODY 240u /* with its head and its CRC below 254, so COBS has one group at most without a zero */
#define MCC_SERVE_HEAD 5u
#define MCC_SERVE_BLOB 64u
#define MCC_SERVE_FRAME (MCC_SERVE_HEAD + MCC_SERVE_BODY + 4u)

enum { MCC_SERVE_IDENTITY = 1, MCC_SERVE_WRITE, MCC_SERVE_READ, MCC_SERVE_INIT, MCC_SERVE_RUN };

/* Memory that the host may see: an input, which it may write as well, or an output. */
typedef struct {
    uint8_t *at;
    uint32_t bytes;
    int is_input;
} mcc_serve_area;

typedef struct {
    const uint8_t *blob; /* of which the head says which model this is, with which weights */
    mcc_serve_area *areas;   /* init says where they lie */
    uint8_t area_count;
    mcc_status (*init)(void);
    mcc_status (*run)(void);
    void (*write)(void *stream, const uint8_t *bytes, size_t count);
    void *stream;
    uint32_t number; /* of the last request that ran the model or began anew, and what it was answered */
    uint8_t code, answered[6];
    uint8_t is_ready, is_late; /* did init succeed; is the frame longer than one can be */
    uint16_t count;            /* bytes of the frame so far */
    uint8_t frame[MCC_SERVE_FRAME + 2u];
} mcc_serve;

MCC_INLINE uint32_t mcc_serve_crc(const uint8_t *p, size_t count)
{
    uint32_t crc = 0xFFFFFFFFu;
    size_t i;
    int bit;
    for (i = 0; i < count; i++) {
        crc ^= p[i];
        for (bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
    }
    return ~crc;
}

MCC_INLINE uint32_t mcc_serve_get(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

MCC_INLINE void mcc_serve_put(uint8_t *p, uint32_t value)
{
    int i;
    for (i = 0; i < 4; i++) p[i] = (uint8_t)(value >> (8 * i));
}

/* Takes the zeros out of place: what a frame held, or 0 where it is none. */
MCC_INLINE size_t mcc_serve_decoded(uint8_t *p, size_t count)
{
    size_t from = 0u, to = 0u, i;
    while (from < count) {
        const size_t group = p[from++];
        if (group == 0u || group - 1u > count - from) return 0u;
        for (i = 1u; i < group; i++) p[to++] = p[from++];
        if (from < count && group < 255u) p[to++] = 0u;
    }
    return to;
}

/* Sends what lies in the frame behind its first byte, which COBS takes. */
MCC_INLINE void mcc_serve_send(mcc_serve *s, size_t body)
{
    const size_t count = MCC_SERVE_HEAD + body + 4u;
    size_t i, last = 0u;
    mcc_serve_put(s->frame + 1u + MCC_SERVE_HEAD + body, mcc_serve_crc(s->frame + 1u, MCC_SERVE_HEAD + body));
    for (i = 1u; i <= count; i++) {
        if (s->frame[i] == 0u) {
            s->frame[last] = (uint8_t)(i - last);
            last = i;
        }
    }
    s->frame[last] = (uint8_t)(i - last);
    s->frame[count + 1u] = 0u;
    s->write(s->stream, s->frame, count + 2u);
}

/* The bytes of an area that a request names; NULL: there are none such. */
MCC_INLINE uint8_t *mcc_serve_place(const mcc_serve *s, const uint8_t *asked, size_t count, int is_written)
{
    const uint32_t offset = mcc_serve_get(asked + 1);
    const mcc_serve_area *area = s->areas + asked[0];
    if (!s->is_ready || asked[0] >= s->area_count || (is_written && !area->is_input)) return NULL;
    if (offset > area->bytes || count > area->bytes - offset) return NULL;
    return area->at + offset;
}

MCC_INLINE void mcc_serve_act(mcc_serve *s, uint32_t number, uint8_t code)
{
    uint32_t began, ticks = 0u;
    mcc_status status;
    if (s->number == number && s->code == code) return;
    if (code == MCC_SERVE_INIT) {
        status = s->init();
        s->is_ready = status == MCC_OK;
    } else {
        MCC_CLOCK_START();
        began = MCC_TICKS();
        status = s->is_ready ? s->run() : MCC_ERR_NULL;
        ticks = MCC_TICKS_SINCE(began);
    }
    s->number = number;
    s->code = code;
    s->answered[1] = (uint8_t)status;
    mcc_serve_put(s->answered + 2, ticks);
}

/* Answers the request that the frame holds: its number and code stand where those of the answer will. */
MCC_INLINE void mcc_serve_answer(mcc_serve *s, size_t count)
{
    uint8_t *const head = s->frame + 1, *const body = head + MCC_SERVE_HEAD;
    const uint8_t code = head[4];
    uint8_t *place = NULL;
    size_t i, made = 0u;
    if (code == MCC_SERVE_IDENTITY && count == 0u) {
        body[1] = MCC_SERVE_VERSION;
        body[2] = MCC_SERVE_BODY;
        for (i = 0; i < MCC_SERVE_BLOB; i++) body[3u + i] = s->blob[i];
        made = 3u + MCC_SERVE_BLOB;
    } else if (code == MCC_SERVE_WRITE && count >= 5u) {
        place = mcc_serve_place(s, body, count - 5u, 1);
        for (i = 5u; place != NULL && i < count; i++) place[i - 5u] = body[i];
        made = place != NULL;
    } else if (code == MCC_SERVE_READ && count == 6u && body[5] < MCC_SERVE_BODY) {
        const size_t wanted = body[5];
        place = mcc_serve_place(s, body, wanted, 0);
        for (i = 0; place != NULL && i < wanted; i++) body[1u + i] = place[i];
        made = place != NULL ? 1u + wanted : 0u;
    } else if ((code == MCC_SERVE_INIT || code == MCC_SERVE_RUN) && count == 0u) {
        mcc_serve_act(s, mcc_serve_get(head), code);
        for (i = 0; i < sizeof s->answered; i++) body[i] = s->answered[i];
        made = sizeof s->answered;
    }
    body[0] = made == 0u ? MCC_SERVE_REFUSED : 0u;
    mcc_serve_send(s, made == 0u ? 1u : made);
}

/* A byte from the host. What is no whole frame is passed over in silence: the host asks again. */
MCC_INLINE void mcc_serve_byte(mcc_serve *s, uint8_t byte)
{
    size_t count;
    if (byte != 0u) {
        if (s->count > MCC_SERVE_FRAME) s->is_late = 1u;
        if (!s->is_late) s->frame[1u + s->count++] = byte;
        return;
    }
    count = s->is_late ? 0u : mcc_serve_decoded(s->frame + 1, s->count);
    s->count = 0u;
    s->is_late = 0u;
    if (count < MCC_SERVE_HEAD + 4u) return;
    count -= 4u;
    if (mcc_serve_crc(s->frame + 1, count) != mcc_serve_get(s->frame + 1 + count)) return;
    mcc_serve_answer(s, count - MCC_SERVE_HEAD);
}

#endif
