/* mcc_detokens.h - tokens to text, one after the other, whole characters of UTF-8 at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DETOKENS_H
#define MCC_DETOKENS_H

#include "mcc_tokens.h"

/* What is known of a text that comes token by token: bytes of a character that is not whole yet. */
typedef struct {
    uint8_t held[4];
    uint8_t count;
    uint8_t begun;
} mcc_decoding;

#define MCC_TOKENS_REPLACEMENT 0xFFFD

/* The same of a byte that continues nothing. */
MCC_INLINE uint32_t mcc_decoding_take_first(mcc_decoding *d, uint8_t byte, char *to)
{
    if (byte >= 0xC2u && byte < 0xF5u) {
        d->held[0] = byte;
        d->count = 1u;
        return 0u;
    }
    return mcc_text_put(to, byte < 0x80u ? (int32_t)byte : MCC_TOKENS_REPLACEMENT);
}

/* Takes a byte; gives how many bytes of text were written: a whole character, or what stands for other bytes. */
MCC_INLINE uint32_t mcc_decoding_take(mcc_decoding *d, uint8_t byte, char *to)
{
    const uint32_t first = d->count != 0u ? d->held[0] : byte;
    const uint32_t longer = first < 0xC2u ? 0u : first < 0xE0u ? 2u : first < 0xF0u ? 3u : first < 0xF5u ? 4u : 0u;
    uint32_t written = 0u, low = 0x80u, high = 0xBFu;
    if (d->count == 1u) { /* the second byte tells characters that are too long, or none at all */
        low = first == 0xE0u ? 0xA0u : first == 0xF0u ? 0x90u : 0x80u;
        high = first == 0xEDu ? 0x9Fu : first == 0xF4u ? 0x8Fu : 0xBFu;
    }
    if (d->count != 0u && (byte < low || byte > high)) {
        d->count = 0u;
        written = mcc_text_put(to, MCC_TOKENS_REPLACEMENT);
        return written + mcc_decoding_take_first(d, byte, to + written);
    }
    if (d->count == 0u) return mcc_decoding_take_first(d, byte, to);
    d->held[d->count++] = byte;
    if (d->count < longer) return 0u;
    (void)memcpy(to, d->held, d->count);
    d->count = 0u;
    return longer;
}

/* Which byte a token of a single byte is, such as <0x0A>; -1: it is another one. */
MCC_INLINE int mcc_tokens_byte(mcc_string text)
{
    int value = 0;
    uint32_t i;
    if (text.size != 6u || memcmp(text.data, "<0x", 3u) != 0 || text.data[5] != '>') return -1;
    for (i = 3u; i < 5u; i++) {
        const char c = text.data[i];
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

MCC_INLINE int mcc_tokens_is_special(const mcc_tokenizer *of, uint32_t token)
{
    uint32_t i;
    for (i = 0u; i < of->added_count[0] + of->added_count[1]; i++) {
        if (of->added[i] == token) return (of->added_ways[i] & MCC_ADDED_SPECIAL) != 0u;
    }
    return 0;
}

/* Takes a token; gives how many bytes of text were written to `to`. Special tokens have none. */
MCC_INLINE size_t mcc_tokens_decode(const mcc_tokenizer *of, mcc_decoding *d, int32_t token, char *to)
{
    const int known = token >= 0 && (uint32_t)token < of->count && !mcc_tokens_is_special(of, (uint32_t)token);
    const mcc_string text = known ? mcc_tokens_text(of, (uint32_t)token) : mcc_string_empty();
    const int byte = of->of_bytes ? -1 : mcc_tokens_byte(text);
    const uint32_t space = of->space == NULL || of->of_bytes ? 0u : (uint32_t)strlen(of->space);
    size_t written = 0u;
    uint32_t i;
    for (i = 0u; i < text.size; i++) {
        uint8_t own = (uint8_t)text.data[i];
        if (byte >= 0) {
            own = (uint8_t)byte;
            i = text.size;
        } else if (space != 0u && space <= text.size - i && memcmp(text.data + i, of->space, space) == 0) {
            own = (uint8_t)' ';
            i += space - 1u;
        }
        if (d->begun != 0u || !of->strips || own != (uint8_t)' ') written += mcc_decoding_take(d, own, to + written);
        d->begun = 1u;
    }
    return written;
}

/* Ends a text; gives how many bytes were written for a character that lacks some. */
MCC_INLINE size_t mcc_tokens_decode_end(mcc_decoding *d, char *to)
{
    const uint32_t written = d->count == 0u ? 0u : mcc_text_put(to, MCC_TOKENS_REPLACEMENT);
    (void)memset(d, 0, sizeof *d);
    return written;
}

#endif
