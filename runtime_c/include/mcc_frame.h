/* mcc_frame.h - bytes as frames on a line that may lose, double or break some: CRC-32 tells which are whole, COBS frees
 * them of zero bytes, and a zero ends each. So after any harm the next frame is whole again, which lengths in front
 * cannot promise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_FRAME_H
#define MCC_FRAME_H

#include "mcc.h"

#define MCC_FRAME_SLACK(count) ((count) / 254u + 1u) /* what COBS adds at most */

MCC_INLINE uint32_t mcc_frame_crc(const uint8_t *p, size_t count)
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

MCC_INLINE uint32_t mcc_frame_get(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

MCC_INLINE void mcc_frame_put(uint8_t *p, uint32_t value)
{
    int i;
    for (i = 0; i < 4; i++) p[i] = (uint8_t)(value >> (8 * i));
}

/* Takes the zeros out of place, and the checksum off: what a frame held, or 0 where it is none. */
MCC_INLINE size_t mcc_frame_decoded(uint8_t *p, size_t count)
{
    size_t from = 0u, to = 0u, i;
    while (from < count) {
        const size_t group = p[from++];
        if (group == 0u || group - 1u > count - from) return 0u;
        for (i = 1u; i < group; i++) p[to++] = p[from++];
        if (from < count && group < 255u) p[to++] = 0u;
    }
    if (to < 4u || mcc_frame_crc(p, to - 4u) != mcc_frame_get(p + to - 4u)) return 0u;
    return to - 4u;
}

/* Makes a frame of what lies from `slack` on, with four bytes of room behind it for the checksum; `slack` is at least
 * MCC_FRAME_SLACK of both. The frame begins at `p`; behind it another byte is a zero. */
MCC_INLINE size_t mcc_frame_encoded(uint8_t *p, size_t slack, size_t count)
{
    size_t from = slack, code = 0u, to = 1u;
    const size_t end = slack + count + 4u;
    mcc_frame_put(p + slack + count, mcc_frame_crc(p + slack, count));
    while (from < end) {
        const uint8_t byte = p[from++];
        if (byte != 0u) p[to++] = byte;
        if (byte == 0u || to - code == 255u) {
            p[code] = (uint8_t)(to - code);
            code = to++;
        }
    }
    p[code] = (uint8_t)(to - code);
    p[to++] = 0u;
    return to;
}

#endif /* MCC_FRAME_H */
