/* mcc_serve.h - lets a host check and measure a model on its board, over any stream of bytes.
 *
 * A frame (mcc_frame.h) holds a number of 4 bytes, a code, and a body. Numbers are little-endian. The host repeats a
 * request that is not answered; one with the number of the last that did something is answered, and not done again.
 *
 *     code         body                             answer
 *     IDENTITY     -                                version, what it can (1), MCC_SERVE_BODY (2), ticks per second (4),
 *                                                   first 64 bytes of the blob
 *     WRITE        area, offset (4), bytes          -
 *     READ         area, offset (4), count (2)      bytes
 *     INIT         -                                status, ticks (4), stack (4)
 *     RUN          how (1)                          status, ticks (4), stack (4)
 *     NEXT         how (1)                          as RUN, which goes on
 *     STORE        offset (4), bytes                status, 0 (8): a piece of a new blob; the first begins it
 *
 * The first byte of an answer's body is 0; or MCC_SERVE_REFUSED: no such code, or memory that no area has; or
 * MCC_SERVE_BUSY: the answer is to come, and the board alive; or MCC_SERVE_STOPPED: a run waits for NEXT, and READ of
 * area MCC_SERVE_RECORD gives what a step has made (its bytes stand in place of ticks).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SERVE_H
#define MCC_SERVE_H

#include "mcc_frame.h"
#include "mcc_profile.h"
#include "mcc_stack.h"

#define MCC_SERVE_VERSION 2u
#ifndef MCC_SERVE_BODY
#define MCC_SERVE_BODY 1024u /* bytes; 96 at least. The longer, the less of a line goes into frames and answers */
#endif
#ifndef MCC_CLOCK_HZ
#define MCC_CLOCK_HZ 0u /* of MCC_CLOCK(); 0: not known */
#endif
#define MCC_SERVE_HEAD 5u
#define MCC_SERVE_BLOB 64u
#define MCC_SERVE_RECORD 255u
#define MCC_SERVE_WHOLE (MCC_SERVE_HEAD + MCC_SERVE_BODY + 4u)
#define MCC_SERVE_SLACK MCC_FRAME_SLACK(MCC_SERVE_WHOLE)
#define MCC_SERVE_FRAME (MCC_SERVE_WHOLE + MCC_SERVE_SLACK) /* on the line, without the zero at its end */

enum {
    MCC_SERVE_IDENTITY = 1,
    MCC_SERVE_WRITE,
    MCC_SERVE_READ,
    MCC_SERVE_INIT,
    MCC_SERVE_RUN,
    MCC_SERVE_NEXT,
    MCC_SERVE_STORE
};
enum { MCC_SERVE_DONE = 0, MCC_SERVE_REFUSED, MCC_SERVE_BUSY, MCC_SERVE_STOPPED };
enum { MCC_SERVE_STOPS = 1, MCC_SERVE_TIMES = 2, MCC_SERVE_STATE = 4, MCC_SERVE_STORES = 8 }; /* what a server can */
enum { MCC_SERVE_TO_STOP = 1, MCC_SERVE_RESET = 2, MCC_SERVE_LOAD = 4 };                      /* how it runs */

/* Memory that the host may see: what it may write as well, or not. */
typedef struct {
    uint8_t *at;
    uint32_t bytes;
    int is_input;
} mcc_serve_area;

typedef struct mcc_serve mcc_serve;
struct mcc_serve {
    const uint8_t *blob; /* of which the head says which model this is, with which weights */
    mcc_serve_area *areas; /* init says where they lie */
    uint8_t area_count, can;
    mcc_status (*init)(void);
    mcc_status (*begin)(uint8_t how); /* in front of a run; NULL: there is nothing to do */
    mcc_status (*run)(void);          /* MCC_MORE: call it again */
    mcc_status (*end)(void);          /* behind one */
    int (*read)(void *stream);
    void (*write)(void *stream, const uint8_t *bytes, size_t count);
    void *stream;
    mcc_status (*store)(uint32_t offset, const uint8_t *bytes, size_t count);                 /* NULL: blobs stay */
    void (*record)(mcc_serve *s, uint32_t offset, uint8_t *to, size_t count); /* where a run has stopped */
    const void *stopped_at;
    uint32_t record_bytes;
    uint32_t *stack; /* its lowest address; NULL: not known */
    uint32_t number; /* of the last request that did something, and what it was answered */
    uint8_t code, how, answered[10];
    uint8_t is_ready, is_late, is_stopped; /* did init succeed; is the frame too long; is a run under way */
    size_t count;                          /* bytes of the frame so far */
    uint8_t frame[MCC_SERVE_SLACK + MCC_SERVE_FRAME + 1u]; /* what comes is put behind the slack */
};

/* Sends an answer whose body lies in its place in the frame. */
MCC_INLINE void mcc_serve_send(mcc_serve *s, uint32_t number, uint8_t code, size_t body)
{
    uint8_t *const head = s->frame + MCC_SERVE_SLACK;
    mcc_frame_put(head, number);
    head[4] = code;
    s->write(s->stream, s->frame, mcc_frame_encoded(s->frame, MCC_SERVE_SLACK, MCC_SERVE_HEAD + body));
}

/* Answers the last request that did something; `state` is the first byte. */
MCC_INLINE void mcc_serve_reply(mcc_serve *s, uint8_t state)
{
    uint8_t *const body = s->frame + MCC_SERVE_SLACK + MCC_SERVE_HEAD;
    size_t i;
    for (i = 0; i < sizeof s->answered; i++) body[i] = s->answered[i];
    body[0] = state;
    mcc_serve_send(s, s->number, s->code, sizeof s->answered);
}

MCC_INLINE void mcc_serve_set(mcc_serve *s, uint8_t state, uint32_t status, uint32_t ticks, uint32_t stack)
{
    s->answered[0] = state;
    s->answered[1] = (uint8_t)status;
    mcc_frame_put(s->answered + 2, ticks);
    mcc_frame_put(s->answered + 6, stack);
}

/* Init, or a piece of a run, with what it takes. */
MCC_INLINE mcc_status mcc_serve_timed(mcc_serve *s, mcc_status (*call)(void), uint32_t *ticks, uint32_t *stack)
{
    uint32_t began, used = MCC_STACK_UNKNOWN;
    mcc_status status;
    if (s->stack != NULL) mcc_stack_paint(s->stack);
    began = MCC_TICKS();
    status = call();
    *ticks += MCC_TICKS_SINCE(began);
    if (s->stack != NULL) used = mcc_stack_used(s->stack);
    if (*stack == MCC_STACK_UNKNOWN || used > *stack) *stack = used;
    return status;
}

MCC_INLINE void mcc_serve_act(mcc_serve *s)
{
    uint32_t ticks = 0u, stack = MCC_STACK_UNKNOWN;
    mcc_status status = MCC_ERR_NOT_INIT;
    MCC_CLOCK_START();
    if (s->code == MCC_SERVE_INIT) {
        status = mcc_serve_timed(s, s->init, &ticks, &stack);
        s->is_ready = status == MCC_OK;
    } else if (s->is_ready) {
        status = s->begin != NULL ? s->begin(s->how) : MCC_OK;
        if (status == MCC_OK) {
            while ((status = mcc_serve_timed(s, s->run, &ticks, &stack)) == MCC_MORE)
                mcc_serve_reply(s, MCC_SERVE_BUSY);
        }
        if (status == MCC_OK && s->end != NULL) status = s->end();
    }
    mcc_serve_set(s, MCC_SERVE_DONE, (uint32_t)status, ticks, stack);
}

/* A request that does something, and is done once. `body`: what it has besides its code. */
MCC_INLINE void mcc_serve_do(mcc_serve *s, uint32_t number, uint8_t code, const uint8_t *body, size_t count)
{
    if (s->number != number || s->code != code) {
        if (s->is_stopped && code != MCC_SERVE_NEXT) { /* another host: the run goes on to its end, and it asks again */
            s->how = 0u;
            s->is_stopped = 0u;
            return;
        }
        s->number = number;
        s->code = code;
        s->how = count > 0u ? body[0] : 0u;
        if (code == MCC_SERVE_STORE) {
            s->is_ready = 0u;
            mcc_serve_set(s, MCC_SERVE_DONE, (uint32_t)s->store(mcc_frame_get(body), body + 4, count - 4u), 0u, 0u);
        } else {
            mcc_serve_set(s, MCC_SERVE_BUSY, 0u, 0u, 0u);
            mcc_serve_reply(s, MCC_SERVE_BUSY);
            if (s->is_stopped) { /* what has stopped goes on, and answers */
                s->is_stopped = 0u;
                return;
            }
            mcc_serve_act(s);
        }
    }
    mcc_serve_reply(s, s->answered[0]);
}

/* Does the server do that? */
MCC_INLINE int mcc_serve_does(const mcc_serve *s, uint32_t number, uint8_t code, size_t count)
{
    if (code == MCC_SERVE_INIT) return count == 0u;
    if (code == MCC_SERVE_RUN) return count == 1u;
    if (code == MCC_SERVE_NEXT) return count == 1u && (s->is_stopped || (s->code == code && s->number == number));
    return code == MCC_SERVE_STORE && count >= 4u && s->store != NULL;
}

/* Bytes that a request names: of an area, or of the record, which lies nowhere. */
MCC_INLINE int mcc_serve_copies(mcc_serve *s, uint8_t *body, size_t count, int is_written)
{
    const uint32_t offset = mcc_frame_get(body + 1);
    const mcc_serve_area *area = s->areas + body[0];
    const int is_record = body[0] == MCC_SERVE_RECORD && s->is_stopped && !is_written;
    const uint32_t bytes = is_record ? s->record_bytes : body[0] < s->area_count ? area->bytes : 0u;
    size_t i;
    if (!s->is_ready || offset >= bytes || count > bytes - offset) return 0;
    if (is_record) {
        s->record(s, offset, body + 1, count);
        return 1;
    }
    if (is_written && (!area->is_input || s->is_stopped)) return 0;
    for (i = 0; i < count; i++) {
        if (is_written) area->at[offset + i] = body[5u + i];
        else body[1u + i] = area->at[offset + i];
    }
    return 1;
}

/* Answers the request that the frame holds: `count` bytes behind its head. */
MCC_INLINE void mcc_serve_answer(mcc_serve *s, size_t count)
{
    uint8_t *const head = s->frame + MCC_SERVE_SLACK, *const body = head + MCC_SERVE_HEAD;
    const uint32_t number = mcc_frame_get(head);
    const uint8_t code = head[4];
    size_t i, made = 0u;
    if (mcc_serve_does(s, number, code, count)) {
        mcc_serve_do(s, number, code, body, count);
        return;
    }
    if (code == MCC_SERVE_IDENTITY && count == 0u) {
        body[1] = MCC_SERVE_VERSION;
        body[2] = s->can;
        body[3] = (uint8_t)(MCC_SERVE_BODY & 255u);
        body[4] = (uint8_t)(MCC_SERVE_BODY >> 8);
        mcc_frame_put(body + 5, MCC_CLOCK_HZ);
        for (i = 0; i < MCC_SERVE_BLOB; i++) body[9u + i] = s->blob[i];
        made = 9u + MCC_SERVE_BLOB;
    } else if (code == MCC_SERVE_WRITE && count >= 5u) {
        made = mcc_serve_copies(s, body, count - 5u, 1) ? 1u : 0u;
    } else if (code == MCC_SERVE_READ && count == 7u) {
        const size_t wanted = (size_t)body[5] | (size_t)body[6] << 8;
        if (wanted < MCC_SERVE_BODY && mcc_serve_copies(s, body, wanted, 0)) made = 1u + wanted;
    }
    body[0] = made == 0u ? MCC_SERVE_REFUSED : MCC_SERVE_DONE;
    mcc_serve_send(s, number, code, made == 0u ? 1u : made);
}

/* A byte from the host. What is not a whole frame is passed over in silence: the host asks again. */
MCC_INLINE void mcc_serve_byte(mcc_serve *s, uint8_t byte)
{
    uint8_t *const frame = s->frame + MCC_SERVE_SLACK;
    size_t count = s->count;
    if (byte != 0u) {
        if (count == MCC_SERVE_FRAME) s->is_late = 1u;
        else frame[s->count++] = byte;
        return;
    }
    count = s->is_late ? 0u : mcc_frame_decoded(frame, count);
    s->count = 0u;
    s->is_late = 0u;
    if (count >= MCC_SERVE_HEAD) mcc_serve_answer(s, count - MCC_SERVE_HEAD);
}

#endif /* MCC_SERVE_H */
