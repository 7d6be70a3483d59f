/* mcc_unigram.h - cuts a word into the tokens that are likeliest together, each having a score of its own.
 *
 * The likeliest way to each place of the word is found from the front (Viterbi), in the memory of the caller.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_UNIGRAM_H
#define MCC_UNIGRAM_H

#include "mcc_tokenizer.h"

/* The first of sorted tokens from `low` on whose byte at `at` is not below `byte`; a token that ends there is below. */
MCC_INLINE uint32_t mcc_tokens_narrow(const mcc_tokenizer *of, uint32_t low, uint32_t high, uint32_t at, int byte)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2u;
        const mcc_string own = mcc_tokens_text(of, of->sorted[middle]);
        if ((own.size > at ? (int)(uint8_t)own.data[at] : -1) < byte) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The likeliest way to each place of a word: two words of a score, where its last token begins, and that token. */
#define MCC_TOKENS_WAY 4u

/* Takes a token as the last one of the way to `end`, where that is likelier. */
MCC_INLINE void mcc_tokens_way(uint32_t *ways, uint32_t begin, uint32_t end, uint32_t token, double more)
{
    uint32_t *const to = ways + MCC_TOKENS_WAY * end;
    double here, there;
    volatile double score;
    (void)memcpy(&here, ways + MCC_TOKENS_WAY * begin, sizeof here);
    (void)memcpy(&there, to, sizeof there);
    score = here + more;
    here = score;
    if (to[3] != MCC_TOKENS_NONE && !(here > there)) return;
    (void)memcpy(to, &here, sizeof here);
    to[2] = begin;
    to[3] = token;
}

/* Tokens of what no token has. */
MCC_INLINE void mcc_tokens_unknown(mcc_encoding *e, mcc_string text)
{
    const uint32_t whole = mcc_tokens_find(e->of, text);
    uint32_t i;
    if (whole != MCC_TOKENS_NONE || e->of->has_bytes == 0u) {
        mcc_tokens_give(e, whole != MCC_TOKENS_NONE ? whole : e->of->unknown);
        return;
    }
    for (i = 0u; i < text.size; i++) mcc_tokens_give(e, e->of->bytes[(uint8_t)text.data[i]]);
}

/* One word, cut as is likeliest. */
MCC_INLINE void mcc_tokens_cut(mcc_encoding *e, mcc_string word, uint32_t *ways, size_t words)
{
    const mcc_tokenizer *const of = e->of;
    uint32_t at, end, begin, size;
    if (words / MCC_TOKENS_WAY < (size_t)word.size + 1u) {
        e->status = MCC_TOKENS_SCRATCH;
        return;
    }
    (void)memset(ways, 0, MCC_TOKENS_WAY * sizeof *ways * ((size_t)word.size + 1u));
    for (at = 1u; at <= word.size; at++) ways[MCC_TOKENS_WAY * at + 3u] = MCC_TOKENS_NONE;
    for (at = 0u; at < word.size; at += size) {
        uint32_t low = 0u, high = of->sorted_count, is_known = 0u;
        int32_t code = 0;
        size = mcc_text_code_point(word, at, &code);
        for (end = at; end < word.size && low < high; end++) {
            const int byte = (int)(uint8_t)word.data[end];
            low = mcc_tokens_narrow(of, low, high, end - at, byte);
            high = mcc_tokens_narrow(of, low, high, end - at, byte + 1);
            if (low < high && mcc_tokens_text(of, of->sorted[low]).size == end + 1u - at) {
                mcc_tokens_way(ways, at, end + 1u, of->sorted[low], of->scores[of->sorted[low]]);
                if (end + 1u - at == size) is_known = 1u;
            }
        }
        if (is_known == 0u) mcc_tokens_way(ways, at, at + size, of->unknown, of->unknown_score);
    }
    for (at = word.size; at > 0u; at = begin) { /* the way back becomes the way there */
        begin = ways[MCC_TOKENS_WAY * at + 2u];
        ways[MCC_TOKENS_WAY * begin] = at;
        ways[MCC_TOKENS_WAY * begin + 1u] = ways[MCC_TOKENS_WAY * at + 3u];
    }
    for (at = 0u; at < word.size; at = end) {
        const uint32_t token = ways[MCC_TOKENS_WAY * at + 1u];
        end = ways[MCC_TOKENS_WAY * at];
        if (token != of->unknown) {
            mcc_tokens_give(e, token);
            continue;
        }
        while (end < word.size && ways[MCC_TOKENS_WAY * end + 1u] == token) end = ways[MCC_TOKENS_WAY * end];
        mcc_tokens_unknown(e, mcc_string_part(word, at, end));
    }
}

#endif
