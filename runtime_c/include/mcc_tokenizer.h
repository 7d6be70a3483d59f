/* mcc_tokenizer.h - the tables of a tokenizer, and what tokens are looked up by.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_TOKENIZER_H
#define MCC_TOKENIZER_H

#include "mcc_nfc.h"

#define MCC_TOKENS_NONE UINT32_C(0xFFFFFFFF)
#define MCC_TOKENS_ROOM (-1)    /* more tokens than the caller's array holds */
#define MCC_TOKENS_SCRATCH (-2) /* the scratch memory is too small */
#define MCC_TOKENS_TEXT (-3)    /* the text is not UTF-8 */
#define MCC_TOKENS_PER_BYTE 7u  /* words of scratch memory that a byte of a word takes */

/* What a text is: */
#define MCC_TOKENS_PART 0  /* one without the tokens that belong in front of it and behind it */
#define MCC_TOKENS_WHOLE 1 /* one with them */
#define MCC_TOKENS_MORE 2  /* what goes on with another text: without them, and without a space in front */

/* Of an added token: */
#define MCC_ADDED_SPECIAL 1u /* it is not text */
#define MCC_ADDED_LEFT 2u    /* it takes the spaces in front of it */
#define MCC_ADDED_RIGHT 4u   /* and those behind it */
#define MCC_ADDED_ALONE 8u   /* it is one only where no letters stand beside it */

/* An automaton that cuts text into words: 2 * next state + 1 where a match ends in front of the character. */
typedef struct {
    const uint16_t *pages;
    const uint8_t *classes;
    const uint16_t *moves;
    uint32_t columns;
} mcc_split;

typedef struct {
    const uint8_t *texts; /* of all tokens; that of one begins at starts[token] */
    const uint32_t *starts;
    uint32_t count;
    const uint32_t *sorted; /* tokens in the order of their texts, where words are looked up whole */
    uint32_t sorted_count;
    const uint32_t *pairs; /* by the left token of a pair: where its rights begin in the three arrays */
    const uint32_t *rights;
    const uint32_t *ranks;
    const uint32_t *made;
    const uint32_t *bytes; /* the token of each byte */
    const uint32_t *added; /* those that are found in text as it is, then those found behind them */
    const uint8_t *added_ways;
    uint32_t added_count[2];
    const mcc_split *letter; /* matches a character of a word; NULL where no added token asks for it */
    const double *scores;    /* by token; NULL: symbols are joined by rank */
    double unknown_score;
    uint32_t unknown; /* the token of what no token has, where there are scores */
    uint8_t has_bytes;
    const mcc_split *splits;
    uint32_t split_count;
    uint8_t of_bytes; /* words begin as bytes, else as characters */
    uint8_t whole;    /* a word that is a token stays one */
    uint8_t strips;   /* a space at the beginning of decoded text is left out */
    uint8_t prefix_if_missing;
    uint8_t prefix_first; /* at the beginning of the text only */
    const char *prefix;   /* put in front of text */
    const char *space;    /* stands for a space, NULL: a space */
    const mcc_nfc *nfc;
} mcc_tokenizer;

typedef struct {
    const mcc_tokenizer *of;
    int32_t *tokens;
    size_t room, count;
    uint32_t *scratch;
    size_t words;
    int32_t status;
    int more; /* it goes on with another text */
} mcc_encoding;

MCC_INLINE void mcc_tokens_give(mcc_encoding *e, uint32_t token)
{
    if (e->count == e->room) {
        e->status = MCC_TOKENS_ROOM;
    } else {
        e->tokens[e->count++] = (int32_t)token;
    }
}

MCC_INLINE mcc_string mcc_tokens_text(const mcc_tokenizer *of, uint32_t token)
{
    const uint32_t begin = of->starts[token];
    return mcc_string_of((const char *)of->texts + begin, of->starts[token + 1u] - begin);
}

MCC_INLINE uint32_t mcc_tokens_find(const mcc_tokenizer *of, mcc_string word)
{
    uint32_t low = 0u, high = of->sorted_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2u;
        const int order = mcc_string_order(mcc_tokens_text(of, of->sorted[middle]), word);
        if (order == 0) return of->sorted[middle];
        if (order < 0) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return MCC_TOKENS_NONE;
}

#endif
