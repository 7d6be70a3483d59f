/* mcc_eembc.h - answers the runner of MLPerf Tiny and ULPMark-ML over any stream of bytes: names, inputs in pieces,
 * runs that are timed, results. A command ends with %, an answer with m-ready.
 *
 *     name  profile  timestamp  help  db load N  db HEX  db print  infer N [W]  results
 *     start  stop  extract_uart_stream (of a network that runs on a stream: samples of a push come by db)
 *
 * Performance is measured by the program's clock, energy by a pin that falls where a clock would be read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_EEMBC_H
#define MCC_EEMBC_H

#include <string.h>

#include "mcc.h"

#define MCC_EEMBC_COMMAND 80u /* characters of the longest one */
#define MCC_EEMBC_FIRMWARE "ULPMark for tinyML Firmware V0.0.1"
#ifndef MCC_EEMBC_VENDOR
#define MCC_EEMBC_VENDOR "mccompile"
#endif

typedef struct mcc_eembc {
    const char *model; /* kws01 and its like */
    uint8_t *buffer;   /* of an input, as the runner sends it */
    uint32_t capacity;
    /* Puts the buffer into the input and runs the model: a run may have left something else there. */
    mcc_status (*infer)(const uint8_t *bytes, uint32_t count);
    uint32_t result_count;
    float (*result)(uint32_t at);
    void (*write)(void *stream, const uint8_t *bytes, size_t count);
    uint32_t (*microseconds)(void *stream);
    void (*pin)(void *stream, int level); /* for energy: holds 0 for a microsecond or more; NULL: performance */
    void *stream;
    /* Of a network that runs on a stream of samples, else NULL: what forgets those so far; a score as it is stored;
     * and where the first one of each push goes between start and stop, as long as there is room. */
    mcc_status (*forget)(void);
    int32_t (*stored)(uint32_t at);
    int8_t *activations;
    uint32_t most, heard; /* of them */
    int listens;
    uint32_t wanted, filled; /* bytes of the buffer */
    uint32_t length;         /* of the command so far */
    char command[MCC_EEMBC_COMMAND + 1u];
} mcc_eembc;

MCC_INLINE void mcc_eembc_put(mcc_eembc *e, const char *text)
{
    e->write(e->stream, (const uint8_t *)text, strlen(text));
}

/* A number of at least so many digits. */
MCC_INLINE void mcc_eembc_number(mcc_eembc *e, uint32_t value, uint32_t digits)
{
    char text[11];
    uint32_t at = 10u;
    text[at] = '\0';
    do {
        text[--at] = (char)('0' + (char)(value % 10u));
        value /= 10u;
    } while (at > 0u && (value != 0u || 10u - at < digits));
    mcc_eembc_put(e, &text[at]);
}

/* As printf's %0.3f; beyond a million whole ones. */
MCC_INLINE void mcc_eembc_real(mcc_eembc *e, float value)
{
    uint32_t thousandths;
    if (!(value == value)) {
        mcc_eembc_put(e, "nan");
        return;
    }
    if (value < 0.0f) {
        mcc_eembc_put(e, "-");
        value = -value;
    }
    if (value >= 1e6f) {
        mcc_eembc_number(e, value < 4e9f ? (uint32_t)value : 4000000000u, 1u);
        mcc_eembc_put(e, ".000");
        return;
    }
    thousandths = (uint32_t)(value * 1000.0f + 0.5f);
    mcc_eembc_number(e, thousandths / 1000u, 1u);
    mcc_eembc_put(e, ".");
    mcc_eembc_number(e, thousandths % 1000u, 3u);
}

MCC_INLINE void mcc_eembc_say(mcc_eembc *e, const char *before, uint32_t value, const char *after)
{
    mcc_eembc_put(e, before);
    mcc_eembc_number(e, value, 1u);
    mcc_eembc_put(e, after);
}

MCC_INLINE void mcc_eembc_timestamp(mcc_eembc *e)
{
    if (e->pin != NULL) {
        e->pin(e->stream, 0);
        e->pin(e->stream, 1);
    } else {
        mcc_eembc_say(e, "m-lap-us-", e->microseconds(e->stream), "\r\n");
    }
}

/* The next word of a command, and what is behind it; NULL: there is none. */
MCC_INLINE char *mcc_eembc_word(char **rest)
{
    char *word = *rest;
    while (*word == ' ') ++word;
    if (*word == '\0') return NULL;
    *rest = word;
    while (**rest != ' ' && **rest != '\0') ++*rest;
    if (**rest == ' ') *(*rest)++ = '\0';
    return word;
}

/* Is it a number of at most 9 digits? */
MCC_INLINE int mcc_eembc_read(const char *word, uint32_t *value)
{
    uint32_t digits = 0u;
    *value = 0u;
    for (; word[digits] >= '0' && word[digits] <= '9' && digits < 10u; ++digits)
        *value = *value * 10u + (uint32_t)(word[digits] - '0');
    return digits > 0u && digits < 10u && word[digits] == '\0';
}

MCC_INLINE int mcc_eembc_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

MCC_INLINE void mcc_eembc_results(mcc_eembc *e)
{
    uint32_t i;
    mcc_eembc_put(e, "m-results-[");
    for (i = 0u; i < e->result_count; ++i) {
        if (i != 0u) mcc_eembc_put(e, ",");
        mcc_eembc_real(e, e->result(i));
    }
    mcc_eembc_put(e, "]\r\n");
}

/* So many runs; 0 where one failed. */
MCC_INLINE int mcc_eembc_runs(mcc_eembc *e, uint32_t count)
{
    for (; count != 0u; --count) {
        const mcc_status status = e->infer(e->buffer, e->filled);
        if (status == MCC_OK) continue;
        mcc_eembc_put(e, "e-[");
        mcc_eembc_put(e, mcc_status_text(status));
        mcc_eembc_put(e, "]\r\n");
        return 0;
    }
    return 1;
}

MCC_INLINE void mcc_eembc_infer(mcc_eembc *e, char *rest)
{
    const char *const first = mcc_eembc_word(&rest);
    const char *const second = first != NULL ? mcc_eembc_word(&rest) : NULL;
    uint32_t count = 1u, warm_up = 10u;
    if (first != NULL && (!mcc_eembc_read(first, &count) || count == 0u)) {
        mcc_eembc_put(e, "e-[Inference iterations must be >0]\r\n");
        return;
    }
    if (second != NULL && !mcc_eembc_read(second, &warm_up)) {
        mcc_eembc_put(e, "e-[Inference warmup must be >=0]\r\n");
        return;
    }
    mcc_eembc_say(e, "m-warmup-start-", warm_up, "\r\n");
    if (!mcc_eembc_runs(e, warm_up)) return;
    mcc_eembc_put(e, "m-warmup-done\r\n");
    mcc_eembc_say(e, "m-infer-start-", count, "\r\n");
    mcc_eembc_timestamp(e);
    if (!mcc_eembc_runs(e, count)) return;
    mcc_eembc_timestamp(e);
    mcc_eembc_put(e, "m-infer-done\r\n");
    mcc_eembc_results(e);
}

/* Bytes of the input, two digits each; what is more than were announced is passed over. */
MCC_INLINE void mcc_eembc_bytes(mcc_eembc *e, const char *digits)
{
    size_t i;
    const size_t count = strlen(digits);
    if (e->wanted == 0u) {
        mcc_eembc_put(e, "e-[Command 'db load' comes first]\r\n");
        return;
    }
    if (count % 2u != 0u) {
        mcc_eembc_put(e, "e-[Insufficent number of hex digits]\r\n");
        return;
    }
    for (i = 0u; i < count && e->filled < e->wanted; i += 2u) {
        const int high = mcc_eembc_digit(digits[i]), low = mcc_eembc_digit(digits[i + 1u]);
        if (high < 0 || low < 0) {
            mcc_eembc_put(e, "e-[Invalid hex digit]\r\n");
            return;
        }
        e->buffer[e->filled++] = (uint8_t)(high * 16 + low);
        if (e->filled == e->wanted) mcc_eembc_put(e, "m-load-done\r\n");
    }
}

MCC_INLINE void mcc_eembc_print(mcc_eembc *e)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t i;
    for (i = 0u; i < e->filled; ++i) {
        char text[3];
        text[0] = digits[e->buffer[i] >> 4];
        text[1] = digits[e->buffer[i] & 15u];
        text[2] = '\0';
        mcc_eembc_put(e, i % 8u == 0u ? "m-buffer-" : "-");
        mcc_eembc_put(e, text);
        if (i % 8u == 7u || i + 1u == e->filled) mcc_eembc_put(e, "\r\n");
    }
}

MCC_INLINE void mcc_eembc_buffer(mcc_eembc *e, char *rest)
{
    const char *const what = mcc_eembc_word(&rest);
    const char *count;
    uint32_t bytes = 0u;
    if (what == NULL) {
        mcc_eembc_put(e, "e-[Command 'db' requires a subcommand]\r\n");
    } else if (strcmp(what, "print") == 0) {
        mcc_eembc_print(e);
    } else if (strcmp(what, "load") != 0) {
        mcc_eembc_bytes(e, what);
    } else {
        count = mcc_eembc_word(&rest);
        e->wanted = 0u;
        e->filled = 0u;
        if (count == NULL || !mcc_eembc_read(count, &bytes) || bytes == 0u) {
            mcc_eembc_put(e, "e-[Command 'db load' must be >0 bytes]\r\n");
        } else if (bytes > e->capacity) {
            mcc_eembc_say(e, "e-[Supplied buffer size exceeds maximum of ", e->capacity, "]\r\n");
        } else {
            e->wanted = bytes;
            mcc_eembc_say(e, "m-[Expecting ", bytes, " bytes]\r\n");
        }
    }
}

MCC_INLINE void mcc_eembc_integer(mcc_eembc *e, int32_t value)
{
    if (value < 0) mcc_eembc_put(e, "-");
    mcc_eembc_number(e, value < 0 ? 0u - (uint32_t)value : (uint32_t)value, 1u);
}

MCC_INLINE void mcc_eembc_start(mcc_eembc *e)
{
    if (e->listens) {
        mcc_eembc_put(e, "It listens already.\r\n");
    } else if (e->forget() != MCC_OK) {
        mcc_eembc_put(e, "e-[The stream cannot begin]\r\n");
    } else {
        e->listens = 1;
        e->heard = 0u;
        mcc_eembc_put(e, "Listening.\r\n");
        mcc_eembc_timestamp(e);
    }
}

/* The runner takes what stands in brackets behind the words. */
MCC_INLINE void mcc_eembc_stop(mcc_eembc *e)
{
    uint32_t i;
    if (!e->listens) {
        mcc_eembc_put(e, "It does not listen.\r\n");
        return;
    }
    e->listens = 0;
    mcc_eembc_timestamp(e);
    mcc_eembc_put(e, "Streaming stopped.\r\n");
    if (e->heard == 0u) return;
    mcc_eembc_put(e, "target activations: \r\n[");
    for (i = 0u; i < e->heard; ++i) {
        if (i != 0u) mcc_eembc_put(e, i % 16u == 0u ? ",\r\n" : ",");
        mcc_eembc_integer(e, e->activations[i]);
    }
    mcc_eembc_put(e, "]\r\n");
}

/* A push, whose samples are in the buffer. */
MCC_INLINE void mcc_eembc_push(mcc_eembc *e)
{
    uint32_t i;
    if (!mcc_eembc_runs(e, 1u)) return;
    if (e->listens && e->heard < e->most) e->activations[e->heard++] = (int8_t)e->stored(0u);
    mcc_eembc_put(e, "m-activations-[");
    for (i = 0u; i < e->result_count; ++i) {
        if (i != 0u) mcc_eembc_put(e, ", ");
        mcc_eembc_integer(e, e->stored(i));
    }
    mcc_eembc_put(e, "]\r\n");
}

MCC_INLINE void mcc_eembc_act(mcc_eembc *e)
{
    char *rest = e->command;
    const char *const word = mcc_eembc_word(&rest);
    if (word == NULL) {
        mcc_eembc_put(e, "e-[Unknown command: ]\r\n");
    } else if (strcmp(word, "name") == 0) {
        mcc_eembc_put(e, "m-name-dut-[" MCC_EEMBC_VENDOR "]\r\n");
    } else if (strcmp(word, "timestamp") == 0) {
        mcc_eembc_timestamp(e);
    } else if (strcmp(word, "profile") == 0) {
        mcc_eembc_put(e, "m-profile-[" MCC_EEMBC_FIRMWARE "]\r\nm-model-[");
        mcc_eembc_put(e, e->model);
        mcc_eembc_put(e, "]\r\n");
    } else if (strcmp(word, "help") == 0) {
        mcc_eembc_put(e, MCC_EEMBC_FIRMWARE "\r\nname profile timestamp help results\r\n"
                                            "db load N, db HEX, db print, infer N [W]\r\n");
    } else if (strcmp(word, "db") == 0) {
        mcc_eembc_buffer(e, rest);
    } else if (strcmp(word, "infer") == 0) {
        mcc_eembc_infer(e, rest);
    } else if (strcmp(word, "results") == 0) {
        mcc_eembc_results(e);
    } else if (e->forget != NULL && strcmp(word, "start") == 0) {
        mcc_eembc_start(e);
    } else if (e->forget != NULL && strcmp(word, "stop") == 0) {
        mcc_eembc_stop(e);
    } else if (e->forget != NULL && strcmp(word, "extract_uart_stream") == 0) {
        mcc_eembc_push(e);
    } else {
        mcc_eembc_put(e, "e-[Unknown command: ");
        mcc_eembc_put(e, word);
        mcc_eembc_put(e, "]\r\n");
    }
    mcc_eembc_put(e, "m-ready\r\n");
}

/* What the runner waits for when a board starts. The pin is high from then on. */
MCC_INLINE void mcc_eembc_begin(mcc_eembc *e)
{
    mcc_eembc_put(e, e->pin != NULL ? "m-timestamp-mode-energy\r\n" : "m-timestamp-mode-performance\r\n");
    mcc_eembc_timestamp(e);
    mcc_eembc_put(e, "m-init-done\r\nm-ready\r\n");
}

/* A byte from the runner. Ends of lines count for nothing; of a command that is too long the end is lost. */
MCC_INLINE void mcc_eembc_byte(mcc_eembc *e, uint8_t byte)
{
    if (byte == (uint8_t)'%') {
        e->command[e->length] = '\0';
        e->length = 0u;
        mcc_eembc_act(e);
    } else if (byte != (uint8_t)'\r' && byte != (uint8_t)'\n' && e->length < MCC_EEMBC_COMMAND) {
        e->command[e->length++] = (char)byte;
    }
}

#endif
