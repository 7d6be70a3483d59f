/* mcc_text.h - strings taken apart and changed: pieces between delimiters, upper and lower case, matching a pattern.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_TEXT_H
#define MCC_TEXT_H

#include "mcc_string.h"

/* The bytes that separate words where no delimiter is given. */
MCC_INLINE int mcc_text_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Bytes of a code point in UTF-8; written to `to` if that is not NULL. */
MCC_INLINE uint32_t mcc_text_put(char *to, int32_t code)
{
    const uint32_t c = (uint32_t)code;
    const uint32_t size = c < 0x80u ? 1u : c < 0x800u ? 2u : c < 0x10000u ? 3u : 4u;
    static const uint8_t heads[5] = {0u, 0u, 0xC0u, 0xE0u, 0xF0u};
    uint32_t i, rest = c;
    if (to == NULL) return size;
    for (i = size - 1u; i > 0u; i--) {
        to[i] = (char)(0x80u | (rest & 0x3Fu));
        rest >>= 6;
    }
    to[0] = (char)(heads[size] | rest);
    return size;
}

/* The code point that begins at s[at], and how many bytes it has; 0 bytes where that is not UTF-8. */
MCC_INLINE uint32_t mcc_text_code_point(mcc_string s, uint32_t at, int32_t *code)
{
    const uint8_t *const p = (const uint8_t *)s.data + at;
    const uint32_t first = p[0];
    const uint32_t longer = first < 0xC2u ? 0u : first < 0xE0u ? 2u : first < 0xF0u ? 3u : first < 0xF5u ? 4u : 0u;
    const uint32_t size = first < 0x80u ? 1u : longer;
    uint32_t value = size == 1u ? first : first & (0x7Fu >> size), i;
    if (size > s.size - at) return 0u;
    for (i = 1u; i < size; i++) {
        if ((p[i] & 0xC0u) != 0x80u) return 0u;
        value = value << 6 | (p[i] & 0x3Fu);
    }
    if (size != 0u && (value > 0x10FFFFu || mcc_text_put(NULL, (int32_t)value) != size)) return 0u;
    *code = (int32_t)value;
    return size;
}

/* A code point in the other case. Rows of `cases` are first, last, step, difference, in ascending order. */
MCC_INLINE int32_t mcc_text_changed(int32_t code, const int32_t *cases, mcc_index rows)
{
    mcc_index low = 0, high = rows;
    while (low < high) {
        const mcc_index middle = (low + high) / 2;
        if (cases[middle * 4 + 1] < code) low = middle + 1;
        else high = middle;
    }
    if (low < rows && code >= cases[low * 4] && (code - cases[low * 4]) % cases[low * 4 + 2] == 0) {
        return code + cases[low * 4 + 3];
    }
    return code;
}

/* One walk over a string in the other case: counts bytes, and writes them if `to` is not NULL. All else stays. */
MCC_INLINE uint32_t mcc_text_change_into(char *to, mcc_string s, const int32_t *cases, mcc_index rows)
{
    uint32_t at = 0u, done = 0u;
    while (at < s.size) {
        int32_t code = 0;
        const uint32_t size = mcc_text_code_point(s, at, &code);
        if (size != 0u) {
            done += mcc_text_put(to == NULL ? NULL : to + done, mcc_text_changed(code, cases, rows));
            at += size;
        } else {
            if (to != NULL) to[done] = s.data[at];
            ++done;
            ++at;
        }
    }
    return done;
}

MCC_INLINE mcc_string mcc_text_change_case(mcc_string s, const int32_t *cases, mcc_index rows, mcc_string_pool *pool)
{
    const uint32_t size = mcc_text_change_into(NULL, s, cases, rows);
    char *const to = mcc_string_take(pool, size);
    if (to == NULL) return mcc_string_empty();
    (void)mcc_text_change_into(to, s, cases, rows);
    return mcc_string_of(to, size);
}

MCC_INLINE mcc_string mcc_text_joined(mcc_string a, mcc_string b, mcc_string_pool *pool)
{
    char *to;
    if (a.size > UINT32_MAX - b.size) {
        pool->is_full = 1u;
        return mcc_string_empty();
    }
    to = mcc_string_take(pool, a.size + b.size);
    if (to == NULL) return mcc_string_empty();
    if (a.size != 0u) memcpy(to, a.data, a.size);
    if (b.size != 0u) memcpy(to + a.size, b.data, b.size);
    return mcc_string_of(to, a.size + b.size);
}

/* Takes the next piece off the front of `rest`, up to the delimiter; `*more` becomes 0 with the last one. */
MCC_INLINE mcc_string mcc_text_next_piece(mcc_string *rest, mcc_string delimiter, int *more)
{
    const mcc_string s = *rest;
    uint32_t at;
    for (at = 0u; s.size >= delimiter.size && at <= s.size - delimiter.size; at++) {
        if (memcmp(s.data + at, delimiter.data, delimiter.size) == 0) {
            *rest = mcc_string_part(s, at + delimiter.size, s.size);
            return mcc_string_part(s, 0u, at);
        }
    }
    *more = 0;
    return s;
}

MCC_INLINE mcc_string mcc_text_without_space(mcc_string s)
{
    uint32_t at = 0u;
    while (at < s.size && mcc_text_is_space(s.data[at])) ++at;
    return mcc_string_part(s, at, s.size);
}

/* The next word, for a `rest` that does not begin with space. */
MCC_INLINE mcc_string mcc_text_next_word(mcc_string *rest, int *more)
{
    const mcc_string s = *rest;
    uint32_t at = 0u;
    while (at < s.size && !mcc_text_is_space(s.data[at])) ++at;
    *rest = mcc_text_without_space(mcc_string_part(s, at, s.size));
    *more = rest->size != 0u;
    return mcc_string_part(s, 0u, at);
}

/* Does an automaton accept the whole string? It starts in state 1; state 0 is the end of all hope. `classes` says which
 * column of the table `next` a byte belongs to. */
MCC_INLINE uint8_t mcc_text_matches(mcc_string s, const uint8_t *classes, const uint16_t *next, mcc_index columns,
    const uint8_t *accepts)
{
    uint32_t at;
    mcc_index state = 1;
    for (at = 0u; at < s.size && state != 0; at++) state = next[state * columns + classes[(uint8_t)s.data[at]]];
    return accepts[state];
}

#endif /* MCC_TEXT_H */
