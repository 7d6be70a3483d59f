/* mcc_image.h - images from files: BMP without compression (1, 4, 8, 16, 24, 32 bits), and PBM, PGM, PPM, plain or raw.
 * A file is never read beyond its end, whatever it says of itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_IMAGE_H
#define MCC_IMAGE_H

#include "mcc_port.h"

typedef struct {
    const uint8_t *file;
    uint64_t size;
    uint64_t at; /* where the text is read on */
    uint8_t *image;
    int pixels; /* 0: red green blue, 1: blue green red, 2: one number, how bright */
} mcc_image;

MCC_INLINE void mcc_image_put(const mcc_image *m, uint64_t pixel, uint32_t red, uint32_t green, uint32_t blue)
{
    if (m->pixels == 2) {
        m->image[pixel] = (uint8_t)((red * 19595u + green * 38470u + blue * 7471u + 0x8000u) >> 16);
    } else {
        m->image[3u * pixel] = (uint8_t)(m->pixels == 0 ? red : blue);
        m->image[3u * pixel + 1u] = (uint8_t)green;
        m->image[3u * pixel + 2u] = (uint8_t)(m->pixels == 0 ? blue : red);
    }
}

MCC_INLINE uint32_t mcc_image_u16(const mcc_image *m, uint64_t at)
{
    return (uint32_t)m->file[at] | (uint32_t)m->file[at + 1u] << 8;
}

MCC_INLINE uint32_t mcc_image_u32(const mcc_image *m, uint64_t at)
{
    return mcc_image_u16(m, at) | mcc_image_u16(m, at + 2u) << 16;
}

/* The part of a pixel that a mask shows, from 0 to 255. */
MCC_INLINE uint32_t mcc_image_part(uint32_t pixel, uint32_t mask)
{
    uint64_t part = pixel & mask;
    if (mask == 0u) return 0u;
    while ((mask & 1u) == 0u) {
        mask >>= 1;
        part >>= 1;
    }
    return (uint32_t)(part * 255u / mask);
}

MCC_INLINE int mcc_image_bmp(const mcc_image *m, uint64_t height, uint64_t width)
{
    const int is_old = m->size >= 26u && mcc_image_u32(m, 14u) == 12u;
    uint64_t palette, entry, x, y, stride;
    uint32_t start, wide, high, bits, packing = 0u, upright = 0u;
    uint32_t red = 0x7C00u, green = 0x03E0u, blue = 0x001Fu;
    if (m->size < (is_old ? 26u : 54u)) return 0;
    start = mcc_image_u32(m, 10u);
    if (is_old) {
        wide = mcc_image_u16(m, 18u);
        high = mcc_image_u16(m, 20u);
        bits = mcc_image_u16(m, 24u);
    } else {
        wide = mcc_image_u32(m, 18u);
        high = mcc_image_u32(m, 22u);
        bits = mcc_image_u16(m, 28u);
        packing = mcc_image_u32(m, 30u);
        upright = high >> 31; /* a negative height: the first row is the top one */
        if (upright != 0u) high = 0u - high;
    }
    if (wide != width || high != height) return 0;
    if (packing != 0u && !((packing == 3u || packing == 6u) && (bits == 16u || bits == 32u))) return 0;
    if (bits != 1u && bits != 4u && bits != 8u && bits != 16u && bits != 24u && bits != 32u) return 0;
    if (bits == 32u) {
        red = 0x00FF0000u;
        green = 0x0000FF00u;
        blue = 0x000000FFu;
    }
    if (packing != 0u) {
        if (m->size < 66u) return 0;
        red = mcc_image_u32(m, 54u);
        green = mcc_image_u32(m, 58u);
        blue = mcc_image_u32(m, 62u);
    }
    entry = is_old ? 3u : 4u;
    palette = 14u + (uint64_t)mcc_image_u32(m, 14u);
    stride = (width * bits + 31u) / 32u * 4u;
    if (start > m->size || stride * height > m->size - start) return 0;
    for (y = 0; y < height; ++y) {
        const uint64_t row = start + stride * (upright != 0u ? y : height - 1u - y);
        for (x = 0; x < width; ++x) {
            const uint64_t pixel = y * width + x;
            if (bits <= 8u) {
                const uint32_t byte = m->file[row + x * bits / 8u];
                const uint32_t shift = 8u - bits - (uint32_t)(x * bits % 8u);
                const uint64_t color = palette + entry * ((byte >> shift) & ((1u << bits) - 1u));
                if (color + 3u > m->size) return 0;
                mcc_image_put(m, pixel, m->file[color + 2u], m->file[color + 1u], m->file[color]);
            } else if (bits == 24u) {
                const uint64_t place = row + 3u * x;
                mcc_image_put(m, pixel, m->file[place + 2u], m->file[place + 1u], m->file[place]);
            } else {
                const uint32_t all = bits == 16u ? mcc_image_u16(m, row + 2u * x) : mcc_image_u32(m, row + 4u * x);
                mcc_image_put(m, pixel, mcc_image_part(all, red), mcc_image_part(all, green),
                    mcc_image_part(all, blue));
            }
        }
    }
    return 1;
}

/* The next number of a text; `digits` at most (0: all). False at the end, and where there is no number. */
MCC_INLINE int mcc_image_number(mcc_image *m, uint32_t digits, uint32_t *number)
{
    uint32_t count = 0u, value = 0u;
    while (m->at < m->size) {
        const uint8_t c = m->file[m->at];
        if (c == '#') {
            while (m->at < m->size && m->file[m->at] != '\n' && m->file[m->at] != '\r') ++m->at;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            ++m->at;
        } else {
            break;
        }
    }
    while (m->at < m->size && m->file[m->at] >= '0' && m->file[m->at] <= '9' && (digits == 0u || count < digits)) {
        value = value > 99999999u ? value : value * 10u + (uint32_t)(m->file[m->at] - '0');
        ++m->at;
        ++count;
    }
    *number = value;
    return count > 0u;
}

MCC_INLINE int mcc_image_pnm(mcc_image *m, uint64_t height, uint64_t width)
{
    const uint32_t type = (uint32_t)(m->file[1] - '0'); /* 1 to 3 as text, 4 to 6 as bytes; bits, greys, colors */
    const uint32_t parts = type % 3u == 0u ? 3u : 1u;
    uint32_t wide, high, most = 1u, values[3];
    uint64_t x, y;
    m->at = 2u;
    if (!mcc_image_number(m, 0u, &wide) || !mcc_image_number(m, 0u, &high)) return 0;
    if (type % 3u != 1u && !mcc_image_number(m, 0u, &most)) return 0;
    if (wide != width || high != height || most == 0u || most > 65535u) return 0;
    if (type > 3u) {
        const uint64_t row = type == 4u ? (width + 7u) / 8u : width * parts * (most > 255u ? 2u : 1u);
        m->at += 1u; /* one blank ends the text */
        if (m->at > m->size || row * height > m->size - m->at) return 0;
    }
    for (y = 0; y < height; ++y) {
        for (x = 0; x < width; ++x) {
            uint32_t part;
            for (part = 0u; part < parts; ++part) {
                uint32_t value;
                if (type <= 3u) {
                    if (!mcc_image_number(m, type == 1u ? 1u : 0u, &value)) return 0;
                } else if (type == 4u) {
                    value = (uint32_t)m->file[m->at + y * ((width + 7u) / 8u) + x / 8u];
                    value = value >> (7u - (uint32_t)(x % 8u)) & 1u;
                } else {
                    value = m->file[m->at++];
                    if (most > 255u) value = value << 8 | m->file[m->at++];
                }
                if (value > most) value = most;
                values[part] = (value * 255u + most / 2u) / most;
            }
            if (type % 3u == 1u) values[0] = 255u - values[0]; /* a bit that is set is black */
            mcc_image_put(m, y * width + x, values[0], values[parts == 3u ? 1 : 0], values[parts == 3u ? 2 : 0]);
        }
    }
    return 1;
}

/* True where the file is an image of this size, and `image` has its pixels. */
MCC_INLINE int mcc_decode_image(
    const uint8_t *file, uint64_t size, uint64_t height, uint64_t width, int pixels, uint8_t *image)
{
    mcc_image m;
    m.file = file;
    m.size = size;
    m.at = 0u;
    m.image = image;
    m.pixels = pixels;
    if (size >= 2u && file[0] == 'B' && file[1] == 'M') return mcc_image_bmp(&m, height, width);
    if (size >= 2u && file[0] == 'P' && file[1] >= '1' && file[1] <= '6') return mcc_image_pnm(&m, height, width);
    return 0;
}

#endif /* MCC_IMAGE_H */
