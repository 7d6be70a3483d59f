/* mcc_nfc.h - text in Unicode's normalization form C, with tables of the compiler's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_NFC_H
#define MCC_NFC_H

#include "mcc_text.h"

#define MCC_NFC_SCRATCH SIZE_MAX
#define MCC_NFC_SAME 0xC0 /* no character below is composed */

typedef struct {
    const uint16_t *pages; /* of 256 code points: which row of `classes` they have */
    const uint8_t *classes; /* of combining characters */
    const uint32_t *whole; /* characters that are decomposed, in their order */
    const uint16_t *ends;  /* where the parts of each end */
    const uint32_t *parts;
    uint32_t whole_count;
    const uint32_t *firsts; /* pairs that are composed, in their order */
    const uint32_t *seconds;
    const uint32_t *composed;
    uint32_t pair_count;
} mcc_nfc;

MCC_INLINE uint32_t mcc_nfc_class(const mcc_nfc *nfc, uint32_t code)
{
    return nfc->classes[(uint32_t)nfc->pages[code >> 8] * 256u + (code & 255u)];
}

/* What two characters are together; 0: nothing. */
MCC_INLINE uint32_t mcc_nfc_pair(const mcc_nfc *nfc, uint32_t first, uint32_t second)
{
    uint32_t low = 0u, high = nfc->pair_count;
    if (first - 0x1100u < 19u && second - 0x1161u < 21u) {
        return 0xAC00u + ((first - 0x1100u) * 21u + (second - 0x1161u)) * 28u;
    }
    if (first - 0xAC00u < 11172u && (first - 0xAC00u) % 28u == 0u && second - 0x11A8u < 27u) {
        return first + (second - 0x11A7u);
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2u;
        const uint32_t own = nfc->firsts[middle];
        if (own < first || (own == first && nfc->seconds[middle] < second)) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low < nfc->pair_count && nfc->firsts[low] == first && nfc->seconds[low] == second ? nfc->composed[low] : 0u;
}

/* Which decomposition it is that a character has. */
MCC_INLINE uint32_t mcc_nfc_whole(const mcc_nfc *nfc, uint32_t code)
{
    uint32_t low = 0u, high = nfc->whole_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2u;
        if (nfc->whole[middle] < code) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low < nfc->whole_count && nfc->whole[low] == code ? low : nfc->whole_count;
}

/* Puts a character behind others, combining ones in the order of their classes. */
MCC_INLINE size_t mcc_nfc_put(const mcc_nfc *nfc, uint32_t *codes, size_t count, uint32_t code)
{
    const uint32_t own = mcc_nfc_class(nfc, code);
    size_t at = count;
    while (own != 0u && at > 0u && mcc_nfc_class(nfc, codes[at - 1u]) > own) {
        codes[at] = codes[at - 1u];
        at--;
    }
    codes[at] = code;
    return count + 1u;
}

/* Characters in their order as composed ones; how many these are. */
MCC_INLINE size_t mcc_nfc_compose(const mcc_nfc *nfc, uint32_t *codes, size_t count)
{
    size_t i, starter = SIZE_MAX, made = 0u;
    uint32_t before = 0u;
    for (i = 0u; i < count; i++) {
        const uint32_t own = mcc_nfc_class(nfc, codes[i]);
        const int is_next = starter != SIZE_MAX && (made - 1u == starter || before < own);
        const uint32_t pair = is_next ? mcc_nfc_pair(nfc, codes[starter], codes[i]) : 0u;
        if (pair != 0u) {
            codes[starter] = pair;
        } else {
            if (own == 0u) starter = made;
            before = own;
            codes[made++] = codes[i];
        }
    }
    return made;
}

/* The bytes of the normalized text, which begins where the scratch memory does; MCC_NFC_SCRATCH: that is too small. */
MCC_INLINE size_t mcc_nfc_normalized(const mcc_nfc *nfc, mcc_string text, uint32_t *scratch, size_t words)
{
    const size_t bytes = 3u * ((size_t)text.size / 4u + 1u); /* words of the result: three times the text */
    uint32_t *const codes = scratch + bytes;
    size_t count = 0u, made = 0u, i;
    uint32_t at, size, part;
    for (at = 0u; at < text.size; at += size) {
        int32_t code = 0;
        uint32_t whole;
        size = mcc_text_code_point(text, at, &code);
        if (words < bytes + count + 4u) return MCC_NFC_SCRATCH;
        whole = code < MCC_NFC_SAME ? nfc->whole_count : mcc_nfc_whole(nfc, (uint32_t)code);
        if (code < MCC_NFC_SAME || whole == nfc->whole_count) {
            count = mcc_nfc_put(nfc, codes, count, (uint32_t)code);
        } else {
            for (part = whole == 0u ? 0u : nfc->ends[whole - 1u]; part < nfc->ends[whole]; part++) {
                count = mcc_nfc_put(nfc, codes, count, nfc->parts[part]);
            }
        }
    }
    count = mcc_nfc_compose(nfc, codes, count);
    for (i = 0u; i < count; i++) made += mcc_text_put((char *)scratch + made, (int32_t)codes[i]);
    return made;
}

#endif
