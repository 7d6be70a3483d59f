/* mcc_tokens.h - text to tokens: byte pair encoding, or unigram, with the tables of a tokenizer.
 *
 * A text is cut at added tokens, normalized, cut into words by automata, and the bytes or characters of a word are
 * joined pair by pair, those of the lowest rank first. Memory comes from the caller.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_TOKENS_H
#define MCC_TOKENS_H

#include "mcc_unigram.h"

/* Which pair it is in the arrays of pairs. */
MCC_INLINE uint32_t mcc_tokens_pair(const mcc_tokenizer *of, uint32_t left, uint32_t right)
{
    const uint32_t end = of->pairs[left + 1u];
    uint32_t low = of->pairs[left], high = end;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2u;
        if (of->rights[middle] < right) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low < end && of->rights[low] == right ? low : MCC_TOKENS_NONE;
}

/* Sets the rank of the pair that begins at a symbol, in a tree whose root has the lowest. */
MCC_INLINE void mcc_tokens_rank(uint32_t *tree, size_t leaves, size_t at, uint32_t rank)
{
    size_t node = leaves + at;
    tree[node] = rank;
    for (node /= 2u; node > 0u; node /= 2u) {
        const uint32_t left = tree[2u * node], right = tree[2u * node + 1u];
        tree[node] = left < right ? left : right;
    }
}

/* The leftmost symbol of that rank. */
MCC_INLINE size_t mcc_tokens_lowest(const uint32_t *tree, size_t leaves)
{
    size_t node = 1u;
    while (node < leaves) {
        node *= 2u;
        node += tree[node] != tree[node / 2u] ? 1u : 0u;
    }
    return node - leaves;
}

/* Leaves of a tree with a place for each symbol: a power of two. */
MCC_INLINE size_t mcc_tokens_leaves(size_t count)
{
    size_t leaves = 1u;
    while (leaves < count) leaves *= 2u;
    return leaves;
}

/* Joins the `count` symbols that stand at the beginning of the scratch memory. */
MCC_INLINE void mcc_tokens_join(mcc_encoding *e, uint32_t *symbols, size_t words, size_t count)
{
    const mcc_tokenizer *const of = e->of;
    const size_t leaves = mcc_tokens_leaves(count);
    uint32_t *const next = symbols + count, *const before = next + count, *const tree = before + count;
    size_t i;
    if (words < 3u * count + 2u * leaves) {
        e->status = MCC_TOKENS_SCRATCH;
        return;
    }
    for (i = 0u; i < leaves; i++) {
        const uint32_t pair = i + 1u < count ? mcc_tokens_pair(of, symbols[i], symbols[i + 1u]) : MCC_TOKENS_NONE;
        tree[leaves + i] = pair == MCC_TOKENS_NONE ? MCC_TOKENS_NONE : of->ranks[pair];
    }
    for (i = leaves - 1u; i > 0u; i--) tree[i] = tree[2u * i] < tree[2u * i + 1u] ? tree[2u * i] : tree[2u * i + 1u];
    for (i = 0u; i < count; i++) {
        next[i] = (uint32_t)i + 1u;
        before[i] = i > 0u ? (uint32_t)i - 1u : MCC_TOKENS_NONE;
    }
    while (tree[1] != MCC_TOKENS_NONE) {
        const size_t left = mcc_tokens_lowest(tree, leaves), right = next[left];
        uint32_t pair = mcc_tokens_pair(of, symbols[left], symbols[right]);
        symbols[left] = of->made[pair];
        next[left] = next[right];
        mcc_tokens_rank(tree, leaves, right, MCC_TOKENS_NONE);
        if (next[left] < count) before[next[left]] = (uint32_t)left;
        pair = next[left] < count ? mcc_tokens_pair(of, symbols[left], symbols[next[left]]) : MCC_TOKENS_NONE;
        mcc_tokens_rank(tree, leaves, left, pair == MCC_TOKENS_NONE ? pair : of->ranks[pair]);
        if (before[left] != MCC_TOKENS_NONE) {
            pair = mcc_tokens_pair(of, symbols[before[left]], symbols[left]);
            mcc_tokens_rank(tree, leaves, before[left], pair == MCC_TOKENS_NONE ? pair : of->ranks[pair]);
        }
    }
    for (i = 0u; i < count; i = next[i]) mcc_tokens_give(e, symbols[i]);
}

/* One word; `used` words of the scratch memory are taken already. */
MCC_INLINE void mcc_tokens_word(mcc_encoding *e, mcc_string word, size_t used)
{
    const mcc_tokenizer *const of = e->of;
    uint32_t *const symbols = e->scratch + used;
    const size_t words = e->words - used;
    size_t count = 0u;
    uint32_t at, size;
    const uint32_t whole = of->whole ? mcc_tokens_find(of, word) : MCC_TOKENS_NONE;
    if (of->scores != NULL) {
        mcc_tokens_cut(e, word, symbols, words);
        return;
    }
    if (whole != MCC_TOKENS_NONE) {
        mcc_tokens_give(e, whole);
        return;
    }
    for (at = 0u; at < word.size; at += size) {
        int32_t code = 0;
        uint32_t token = MCC_TOKENS_NONE, i;
        size = of->of_bytes ? 1u : mcc_text_code_point(word, at, &code);
        if (!of->of_bytes) token = mcc_tokens_find(of, mcc_string_part(word, at, at + size));
        if (words < count + size) {
            e->status = MCC_TOKENS_SCRATCH;
            return;
        }
        if (token != MCC_TOKENS_NONE) {
            symbols[count++] = token;
        } else {
            for (i = 0u; i < size; i++) symbols[count++] = of->bytes[(uint8_t)word.data[at + i]];
        }
    }
    mcc_tokens_join(e, symbols, words, count);
}

/* Where the match ends that begins at `at`; `at` if none does. */
MCC_INLINE uint32_t mcc_split_match(const mcc_split *split, mcc_string text, uint32_t at, uint32_t end)
{
    uint32_t state = 1u, found = at;
    while (state != 0u) {
        int32_t code = 0;
        const uint32_t size = at < end ? mcc_text_code_point(text, at, &code) : 0u;
        const uint32_t page = split->pages[(uint32_t)code >> 8];
        const uint32_t column = at < end ? split->classes[page * 256u + ((uint32_t)code & 255u)] : split->columns - 1u;
        const uint32_t move = split->moves[state * split->columns + column];
        if ((move & 1u) != 0u) found = at;
        state = at < end ? move >> 1 : 0u;
        at += size;
    }
    return found;
}

/* Where the word ends that begins at `at`: a match, or what stands in front of the next one. */
MCC_INLINE uint32_t mcc_split_end(const mcc_split *split, mcc_string text, uint32_t at, uint32_t end)
{
    const uint32_t found = mcc_split_match(split, text, at, end);
    if (found != at) return found;
    do {
        int32_t code = 0;
        at += mcc_text_code_point(text, at, &code);
    } while (at < end && mcc_split_match(split, text, at, end) == at);
    return at;
}

#define MCC_TOKENS_SPLITS 4

/* Each split cuts the words of the one before it. */
MCC_INLINE void mcc_tokens_words(mcc_encoding *e, mcc_string text, size_t used)
{
    const mcc_tokenizer *const of = e->of;
    uint32_t ends[MCC_TOKENS_SPLITS + 1] = {0u}, at = 0u, i;
    ends[0] = text.size;
    while (at < text.size && e->status == 0) {
        for (i = 0u; i < of->split_count; i++) {
            if (at == ends[i + 1u]) ends[i + 1u] = mcc_split_end(&of->splits[i], text, at, ends[i]);
        }
        mcc_tokens_word(e, mcc_string_part(text, at, ends[of->split_count]), used);
        at = ends[of->split_count];
    }
}

/* Text with its prefix and what stands for spaces, in the scratch memory. */
MCC_INLINE void mcc_tokens_spaced(mcc_encoding *e, mcc_string text, int first)
{
    const mcc_tokenizer *const of = e->of;
    const size_t before = of->prefix == NULL ? 0u : strlen(of->prefix);
    const size_t space = of->space == NULL ? 1u : strlen(of->space), room = e->words * 4u;
    char *const to = (char *)e->scratch;
    size_t size = before, begin = 0u;
    uint32_t i;
    for (i = 0u; i < text.size; i++) {
        const int is_space = text.data[i] == ' ' && of->space != NULL;
        const size_t more = is_space ? space : 1u;
        if (room - size < more || room < size) {
            e->status = MCC_TOKENS_SCRATCH;
            return;
        }
        (void)memcpy(to + size, is_space ? of->space : text.data + i, more);
        size += more;
    }
    if (before != 0u) {
        const int there = size >= 2u * before && memcmp(to + before, of->prefix, before) == 0;
        if ((of->prefix_if_missing && there) || (of->prefix_first && !first) || (e->more && first)) {
            begin = before;
        } else {
            (void)memcpy(to, of->prefix, before);
        }
    }
    mcc_tokens_words(e, mcc_string_of(to + begin, size - begin), (size + 3u) / 4u);
}

MCC_INLINE void mcc_tokens_piece(mcc_encoding *e, mcc_string text, int first)
{
    const mcc_tokenizer *const of = e->of;
    if (of->nfc != NULL) {
        const size_t size = mcc_nfc_normalized(of->nfc, text, e->scratch, e->words);
        if (size == MCC_NFC_SCRATCH) {
            e->status = MCC_TOKENS_SCRATCH;
        } else {
            mcc_tokens_words(e, mcc_string_of((const char *)e->scratch, size), (size + 3u) / 4u);
        }
    } else if (of->prefix != NULL || of->space != NULL) {
        mcc_tokens_spaced(e, text, first);
    } else {
        mcc_tokens_words(e, text, 0u);
    }
}

/* The longest of `count` added tokens that stands at `at`; its index, or MCC_TOKENS_NONE. */
MCC_INLINE uint32_t mcc_tokens_added(const mcc_tokenizer *of, uint32_t first, uint32_t count, mcc_string text,
                                     uint32_t at)
{
    uint32_t i, found = MCC_TOKENS_NONE, longest = 0u;
    for (i = first; i < first + count; i++) {
        const mcc_string own = mcc_tokens_text(of, of->added[i]);
        if (own.size <= longest || own.size > text.size - at || own.data[0] != text.data[at]) continue;
        if (memcmp(own.data, text.data + at, own.size) == 0) {
            found = i;
            longest = own.size;
        }
    }
    return found;
}

/* What is not text of its own in front of a text and behind it. */
MCC_INLINE int mcc_tokens_is_space(int32_t code)
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

/* Where the character begins that ends at `at`. */
MCC_INLINE uint32_t mcc_tokens_back(mcc_string text, uint32_t at)
{
    do at--;
    while (((uint8_t)text.data[at] & 0xC0u) == 0x80u);
    return at;
}

MCC_INLINE int mcc_tokens_is_letter(const mcc_tokenizer *of, mcc_string text, uint32_t at)
{
    return at < text.size && mcc_split_match(of->letter, text, at, text.size) != at;
}

/* An added token in a text, with the spaces that it takes. */
typedef struct {
    uint32_t begin, end, added;
} mcc_added;

/* The next one of a list behind `from`; it lies at the end of the text where there is none. */
MCC_INLINE mcc_added mcc_tokens_next(const mcc_tokenizer *of, uint32_t list, mcc_string text, uint32_t from)
{
    const uint32_t first = list == 0u ? 0u : of->added_count[0];
    mcc_added found = {0u, 0u, MCC_TOKENS_NONE};
    uint32_t at = from, ways;
    int32_t code = 0;
    for (; at < text.size; at = found.end) {
        found.begin = at;
        found.end = at + 1u;
        found.added = mcc_tokens_added(of, first, of->added_count[list], text, at);
        if (found.added == MCC_TOKENS_NONE) continue;
        ways = of->added_ways[found.added];
        found.end = at + mcc_tokens_text(of, of->added[found.added]).size;
        if ((ways & MCC_ADDED_ALONE) != 0u) {
            if (at > 0u && mcc_tokens_is_letter(of, text, mcc_tokens_back(text, at))) continue;
            if (mcc_tokens_is_letter(of, text, found.end)) continue;
        }
        while ((ways & MCC_ADDED_LEFT) != 0u && found.begin > from) {
            const uint32_t before = mcc_tokens_back(text, found.begin);
            (void)mcc_text_code_point(text, before, &code);
            if (!mcc_tokens_is_space(code)) break;
            found.begin = before;
        }
        while ((ways & MCC_ADDED_RIGHT) != 0u && found.end < text.size) {
            const uint32_t size = mcc_text_code_point(text, found.end, &code);
            if (!mcc_tokens_is_space(code)) break;
            found.end += size;
        }
        return found;
    }
    found.begin = found.end = text.size;
    found.added = MCC_TOKENS_NONE;
    return found;
}

/* Text between added tokens of the first list. */
MCC_INLINE void mcc_tokens_section(mcc_encoding *e, mcc_string text, int first)
{
    uint32_t at = 0u;
    while (at < text.size && e->status == 0) {
        const mcc_added next = mcc_tokens_next(e->of, 1u, text, at);
        if (next.begin > at) mcc_tokens_piece(e, mcc_string_part(text, at, next.begin), first && at == 0u);
        if (next.added != MCC_TOKENS_NONE && e->status == 0) mcc_tokens_give(e, e->of->added[next.added]);
        at = next.end;
    }
}

/* Tokens of a text, which must be UTF-8. */
MCC_INLINE void mcc_tokens_encode(mcc_encoding *e, mcc_string text)
{
    uint32_t at = 0u, size;
    for (at = 0u; at < text.size; at += size) {
        int32_t code = 0;
        size = mcc_text_code_point(text, at, &code);
        if (size == 0u || (code >= 0xD800 && code < 0xE000)) {
            e->status = MCC_TOKENS_TEXT;
            return;
        }
    }
    at = 0u;
    while (at < text.size && e->status == 0) {
        const mcc_added next = mcc_tokens_next(e->of, 0u, text, at);
        if (next.begin > at) mcc_tokens_section(e, mcc_string_part(text, at, next.begin), at == 0u);
        if (next.added != MCC_TOKENS_NONE && e->status == 0) mcc_tokens_give(e, e->of->added[next.added]);
        at = next.end;
    }
}

#endif
