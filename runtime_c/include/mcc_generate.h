/* mcc_generate.h - what programs that generate text share: how text is handed over, and why it ended.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_GENERATE_H
#define MCC_GENERATE_H

#include "mcc_detokens.h"
#include "mcc_sample.h"

/* Takes whole characters of UTF-8 as they come; gives 0 to go on, anything else to end. */
typedef int (*mcc_told)(const char *text, size_t bytes, void *user);

#define MCC_END_STOP 0    /* the model ended its text, or wrote a stop string */
#define MCC_END_MOST 1    /* as many tokens as were asked for */
#define MCC_END_CONTEXT 2 /* there is no room for more tokens */
#define MCC_END_CALLER 3  /* the callback said so */

#define MCC_END_TEXT (-1)   /* the prompt is not UTF-8, or there is none */
#define MCC_END_LONG (-2)   /* the prompt is longer than there is room for; nothing of it was taken */
#define MCC_END_LOGITS (-3) /* no logit is a number */
#define MCC_END_RUN (-4)    /* the network ended with the status of the session */
#define MCC_END_SYSTEM (-5) /* the chat has begun, or the model does not take this system message */
#define MCC_END_DATE (-6)   /* the chat template has the date, and the session lacks it */

/* Text that is held back, as it may become a stop string: the first `size` bytes of one. */
typedef struct {
    const char *text;
    size_t size;
} mcc_held;

/* Do the bytes in front of `end`, of what is held and a piece behind it, end with the first `size` of `text`? */
MCC_INLINE int mcc_held_ends(const mcc_held *held, const char *piece, size_t end, const char *text, size_t size)
{
    size_t i;
    if (size > end) return 0;
    for (i = 0u; i < size; i++) {
        const size_t at = end - size + i;
        if ((at < held->size ? held->text[at] : piece[at - held->size]) != text[i]) return 0;
    }
    return 1;
}

/* The first `size` bytes of what is held and a piece behind it; gives what `told` gives. */
MCC_INLINE int mcc_held_told(const mcc_held *held, const char *piece, size_t size, mcc_told told, void *user)
{
    const size_t front = size < held->size ? size : held->size;
    const int ended = front > 0u ? told(held->text, front, user) : 0;
    return ended != 0 || size == front ? ended : told(piece, size - front, user);
}

/* Takes a piece of a text that ends in front of the stop string that is whole first, the longest of those that end
 * there. Gives MCC_END_STOP there, MCC_END_CALLER, or MCC_END_MOST where the text goes on; nothing is held behind the
 * first two. */
MCC_INLINE int mcc_held_take(mcc_held *held, const char *const *stops, size_t count, const char *piece, size_t bytes,
                             mcc_told told, void *user)
{
    const size_t all = held->size + bytes;
    mcc_held next = {NULL, 0u};
    size_t end, i, size;
    int ended = MCC_END_MOST;
    for (end = held->size + 1u; end <= all && ended == MCC_END_MOST; end++) {
        size_t longest = 0u;
        for (i = 0u; i < count; i++) {
            size = strlen(stops[i]);
            if (size > longest && mcc_held_ends(held, piece, end, stops[i], size)) longest = size;
        }
        if (longest > 0u) {
            ended = MCC_END_STOP;
            if (mcc_held_told(held, piece, end - longest, told, user) != 0) ended = MCC_END_CALLER;
        }
    }
    for (i = 0u; i < count && ended == MCC_END_MOST; i++) {
        for (size = strlen(stops[i]); size > next.size; size--) {
            if (!mcc_held_ends(held, piece, all, stops[i], size)) continue;
            next.text = stops[i];
            next.size = size;
        }
    }
    if (ended == MCC_END_MOST && mcc_held_told(held, piece, all - next.size, told, user) != 0) {
        ended = MCC_END_CALLER;
        next.size = 0u;
    }
    *held = next;
    return ended;
}

#endif
