/* mcc_digits.h - numbers written as text and read from it, correctly rounded, without a library.
 *
 * A float is written with as few digits as lead back to it; plainly from 0.0001 up to 10^16, else with an exponent.
 * Types are told by `bits` of their significand and the exponent `lowest` of their smallest number. `work` is memory
 * for large numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_DIGITS_H
#define MCC_DIGITS_H

#include <math.h>

#include "mcc_text.h"

#define MCC_TEXT_OF_NUMBER 32u /* bytes that a number takes at most */
#define MCC_BIG_WORDS 128
#define MCC_BIG_DIGITS 760 /* significant digits of a text that are looked at: more than can matter to any type */

/* A natural number below 2^4096. */
typedef struct mcc_big {
    int count;
    uint32_t words[MCC_BIG_WORDS];
} mcc_big;

MCC_INLINE void mcc_big_set(mcc_big *a, uint64_t value)
{
    a->count = 0;
    for (; value != 0u; value >>= 32) a->words[a->count++] = (uint32_t)(value & 0xFFFFFFFFu);
}

/* a = a * factor + addend */
MCC_INLINE void mcc_big_scale(mcc_big *a, uint32_t factor, uint32_t addend)
{
    uint64_t carry = addend;
    int i;
    for (i = 0; i < a->count; i++) {
        carry += (uint64_t)a->words[i] * factor;
        a->words[i] = (uint32_t)(carry & 0xFFFFFFFFu);
        carry >>= 32;
    }
    if (carry != 0u && a->count < MCC_BIG_WORDS) a->words[a->count++] = (uint32_t)carry;
}

MCC_INLINE void mcc_big_times_power_of_ten(mcc_big *a, int power)
{
    for (; power >= 9; power -= 9) mcc_big_scale(a, 1000000000u, 0u);
    for (; power > 0; power--) mcc_big_scale(a, 10u, 0u);
}

MCC_INLINE void mcc_big_shift_left(mcc_big *a, int bits)
{
    const int words = bits / 32, rest = bits % 32;
    int i;
    if (a->count == 0) return;
    if (rest != 0) mcc_big_scale(a, (uint32_t)1u << rest, 0u);
    for (i = a->count - 1; i >= 0 && words > 0; i--)
        if (i + words < MCC_BIG_WORDS) a->words[i + words] = a->words[i];
    for (i = 0; i < words && i < MCC_BIG_WORDS; i++) a->words[i] = 0u;
    a->count = a->count + words < MCC_BIG_WORDS ? a->count + words : MCC_BIG_WORDS;
}

MCC_INLINE void mcc_big_halve(mcc_big *a)
{
    int i;
    for (i = 0; i < a->count; i++) a->words[i] = a->words[i] >> 1 | (i + 1 < a->count ? a->words[i + 1] << 31 : 0u);
    if (a->count > 0 && a->words[a->count - 1] == 0u) a->count--;
}

MCC_INLINE int mcc_big_order(const mcc_big *a, const mcc_big *b)
{
    int i;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (i = a->count - 1; i >= 0; i--)
        if (a->words[i] != b->words[i]) return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

MCC_INLINE void mcc_big_add(mcc_big *a, const mcc_big *b)
{
    uint64_t carry = 0u;
    int i;
    for (i = 0; i < b->count || i < a->count || carry != 0u; i++) {
        if (i == MCC_BIG_WORDS) return;
        carry += (uint64_t)(i < a->count ? a->words[i] : 0u) + (i < b->count ? b->words[i] : 0u);
        a->words[i] = (uint32_t)(carry & 0xFFFFFFFFu);
        carry >>= 32;
    }
    a->count = i;
}

/* a = a - b, for b that is not larger */
MCC_INLINE void mcc_big_subtract(mcc_big *a, const mcc_big *b)
{
    uint64_t borrow = 0u;
    int i;
    for (i = 0; i < a->count; i++) {
        const uint64_t taken = (uint64_t)(i < b->count ? b->words[i] : 0u) + borrow;
        borrow = a->words[i] < taken;
        a->words[i] = (uint32_t)((a->words[i] - taken) & 0xFFFFFFFFu);
    }
    while (a->count > 0 && a->words[a->count - 1] == 0u) a->count--;
}

MCC_INLINE int mcc_big_bits(const mcc_big *a)
{
    int bits = a->count * 32;
    uint32_t top;
    if (a->count == 0) return 0;
    for (top = a->words[a->count - 1]; (top & 0x80000000u) == 0u; top <<= 1) bits--;
    return bits;
}

/* The order of a + b and c; needs one more number. */
MCC_INLINE int mcc_big_order_of_sum(const mcc_big *a, const mcc_big *b, const mcc_big *c, mcc_big *sum)
{
    *sum = *a;
    mcc_big_add(sum, b);
    return mcc_big_order(sum, c);
}

/* The shortest digits of fraction * 2^exponent, at most 17; the number is 0.d1d2d3... * 10^point. */
MCC_INLINE int mcc_digits_of(uint64_t fraction, int exponent, int is_power, char digits[20], int *point,
    mcc_big work[5])
{
    /* The number is value / unit, its neighbours' middles lie above and below it. */
    mcc_big *const value = &work[0], *const unit = &work[1], *const above = &work[2], *const below = &work[3],
        *const sum = &work[4];
    const int even = (fraction & 1u) == 0u;
    int count = 0, power = 0;
    mcc_big_set(value, fraction);
    mcc_big_set(unit, 1u);
    mcc_big_set(above, 1u);
    mcc_big_shift_left(value, (exponent > 0 ? exponent : 0) + 1 + is_power);
    mcc_big_shift_left(unit, (exponent < 0 ? -exponent : 0) + 1 + is_power);
    mcc_big_shift_left(above, exponent > 0 ? exponent : 0);
    *below = *above;
    if (is_power) mcc_big_shift_left(above, 1);
    power = (mcc_big_bits(value) - mcc_big_bits(unit)) * 30103 / 100000;
    mcc_big_times_power_of_ten(unit, power);
    mcc_big_times_power_of_ten(value, -power);
    mcc_big_times_power_of_ten(above, -power);
    mcc_big_times_power_of_ten(below, -power);
    while (mcc_big_order_of_sum(value, above, unit, sum) >= (even ? 0 : 1)) {
        mcc_big_scale(unit, 10u, 0u);
        ++power;
    }
    for (;;) {
        int digit = 0, is_low, is_high;
        mcc_big_scale(value, 10u, 0u);
        mcc_big_scale(above, 10u, 0u);
        mcc_big_scale(below, 10u, 0u);
        while (mcc_big_order(value, unit) >= 0) {
            mcc_big_subtract(value, unit);
            ++digit;
        }
        is_low = mcc_big_order(value, below) < (even ? 1 : 0);
        is_high = mcc_big_order_of_sum(value, above, unit, sum) >= (even ? 0 : 1);
        if (!is_low && !is_high) {
            if (count > 0 || digit > 0) digits[count++] = (char)('0' + digit);
            else --power; /* the estimate was too large */
            continue;
        }
        if (is_low && is_high) {
            const int order = mcc_big_order_of_sum(value, value, unit, sum);
            digit += order > 0 || (order == 0 && digit % 2 != 0);
        } else if (is_high) {
            ++digit;
        }
        digits[count++] = (char)('0' + digit);
        *point = power;
        return count;
    }
}

/* Writes a number and gives its length. */
MCC_INLINE uint32_t mcc_text_of_float(char *to, double x, int bits, int lowest, mcc_big work[5])
{
    char digits[20];
    uint64_t word, fraction;
    int exponent, count, point, i, drop;
    uint32_t n = 0u;
    memcpy(&word, &x, sizeof word);
    fraction = word & UINT64_C(0xFFFFFFFFFFFFF);
    exponent = (int)(word >> 52 & 0x7FFu);
    if (exponent == 0x7FF && fraction != 0u) {
        memcpy(to, "nan", 3u);
        return 3u;
    }
    if (word >> 63 != 0u) to[n++] = '-';
    if (exponent == 0x7FF) {
        memcpy(to + n, "inf", 3u);
        return n + 3u;
    }
    if (exponent == 0 && fraction == 0u) {
        memcpy(to + n, "0.0", 3u);
        return n + 3u;
    }
    if (exponent != 0) fraction |= UINT64_C(1) << 52;
    exponent = (exponent == 0 ? 1 : exponent) - 1075;
    while (fraction >> 52 == 0u) { /* a subnormal double */
        fraction <<= 1;
        exponent--;
    }
    drop = 53 - bits > lowest - exponent ? 53 - bits : lowest - exponent;
    fraction >>= drop;
    exponent += drop;
    i = fraction == UINT64_C(1) << (bits - 1) && exponent > lowest;
    count = mcc_digits_of(fraction, exponent, i, digits, &point, work);
    if (point > -4 && point <= 16) {
        if (point <= 0) {
            to[n++] = '0';
            to[n++] = '.';
            for (i = point; i < 0; i++) to[n++] = '0';
        }
        for (i = 0; i < count || i < point; i++) {
            if (i == point && point > 0) to[n++] = '.';
            to[n++] = i < count ? digits[i] : '0';
        }
        if (count <= point) {
            to[n++] = '.';
            to[n++] = '0';
        }
        return n;
    }
    to[n++] = digits[0];
    if (count > 1) to[n++] = '.';
    for (i = 1; i < count; i++) to[n++] = digits[i];
    to[n++] = 'e';
    to[n++] = point <= 0 ? '-' : '+';
    i = point <= 0 ? 1 - point : point - 1;
    if (i >= 100) to[n++] = (char)('0' + i / 100);
    to[n++] = (char)('0' + i / 10 % 10);
    to[n++] = (char)('0' + i % 10);
    return n;
}

MCC_INLINE uint32_t mcc_text_of_integer(char *to, uint64_t magnitude, int is_negative)
{
    char digits[20];
    uint32_t n = 0u, count = 0u;
    do {
        digits[count++] = (char)('0' + (int)(magnitude % 10u));
        magnitude /= 10u;
    } while (magnitude != 0u);
    if (is_negative) to[n++] = '-';
    while (count > 0u) to[n++] = digits[--count];
    return n;
}

/* Space at both ends does not matter; *sign becomes 1 where there is a minus. */
MCC_INLINE mcc_string mcc_text_unsigned(mcc_string s, int *sign)
{
    s = mcc_text_without_space(s);
    while (s.size != 0u && mcc_text_is_space(s.data[s.size - 1u])) s.size--;
    *sign = s.size != 0u && s.data[0] == '-';
    return s.size != 0u && (s.data[0] == '-' || s.data[0] == '+') ? mcc_string_part(s, 1u, s.size) : s;
}

MCC_INLINE int mcc_text_is(mcc_string s, const char *lower)
{
    uint32_t i;
    for (i = 0u; i < s.size; i++)
        if (lower[i] == '\0' || (s.data[i] | 0x20) != lower[i]) return 0;
    return lower[i] == '\0';
}

/* The integer that a text says, if that is one between low and high (as magnitudes). 0: it is not. */
MCC_INLINE int mcc_text_to_integer(mcc_string s, uint64_t low, uint64_t high, uint64_t *magnitude, int *sign)
{
    uint64_t value = 0u;
    uint32_t i;
    s = mcc_text_unsigned(s, sign);
    for (i = 0u; i < s.size; i++) {
        const uint64_t digit = (uint64_t)(unsigned char)s.data[i] - '0';
        if (digit > 9u || value > (UINT64_MAX - digit) / 10u) return 0;
        value = value * 10u + digit;
    }
    *magnitude = value;
    return s.size != 0u && value <= (*sign ? low : high);
}

/* value * 2^exponent, where `inexact` says that there is a little more, rounded half-even to a type. */
MCC_INLINE double mcc_digits_round(uint64_t value, int exponent, int inexact, int bits, int lowest, int highest)
{
    int length = 0, drop;
    while (length < 64 && value >> length != 0u) length++;
    drop = length - bits > lowest - exponent ? length - bits : lowest - exponent;
    if (drop > 63) return 0.0;
    if (drop > 0) {
        const uint64_t half = UINT64_C(1) << (drop - 1), rest = value & (2u * half - 1u);
        value >>= drop;
        exponent += drop;
        if (rest > half || (rest == half && (inexact || (value & 1u) != 0u))) value++;
    }
    const double found = ldexp((double)value, exponent);
    return value != 0u && found >= ldexp(1.0, highest - 1) * 2.0 ? (double)INFINITY : found;
}

/* The float that a text says; 0: it is none. Numbers from 2^highest on are infinite. */
MCC_INLINE int mcc_text_to_float(mcc_string s, int bits, int lowest, int highest, double *x, mcc_big work[2])
{
    mcc_big *const number = &work[0], *const unit = &work[1];
    int sign, power = 0, written = 0, digits = 0, seen = 0, after_point = 0, extra = 0, has_exponent = 0, minus = 0,
        shift, i;
    uint64_t quotient = 0u;
    uint32_t at;
    s = mcc_text_unsigned(s, &sign);
    if (mcc_text_is(s, "nan")) {
        *x = (double)NAN;
        return 1;
    }
    if (mcc_text_is(s, "inf") || mcc_text_is(s, "infinity")) {
        *x = sign ? -(double)INFINITY : (double)INFINITY;
        return 1;
    }
    mcc_big_set(number, 0u);
    for (at = 0u; at < s.size && (s.data[at] | 0x20) != 'e'; at++) {
        const char c = s.data[at];
        if (c == '.' && !after_point) {
            after_point = 1;
            continue;
        }
        if (c < '0' || c > '9') return 0;
        seen = 1;
        power -= after_point;
        if (digits == 0 && c == '0') continue;
        if (digits < MCC_BIG_DIGITS) {
            mcc_big_scale(number, 10u, (uint32_t)(c - '0'));
            ++digits;
        } else {
            ++power;
            extra |= c != '0';
        }
    }
    if (!seen) return 0;
    if (at < s.size) { /* an exponent */
        at++;
        if (at < s.size && (s.data[at] == '-' || s.data[at] == '+')) minus = s.data[at++] == '-';
        for (; at < s.size; at++) {
            if (s.data[at] < '0' || s.data[at] > '9') return 0;
            has_exponent = 1;
            if (written < 100000) written = written * 10 + (s.data[at] - '0');
        }
        if (!has_exponent) return 0;
    }
    power += minus ? -written : written;
    *x = 0.0;
    if (digits != 0 && digits + power > 310) *x = (double)INFINITY;
    if (digits != 0 && digits + power <= 310 && digits + power > -400) {
        mcc_big_set(unit, 1u);
        mcc_big_times_power_of_ten(number, power);
        mcc_big_times_power_of_ten(unit, -power);
        shift = mcc_big_bits(number) - mcc_big_bits(unit) - bits - 2;
        mcc_big_shift_left(number, shift < 0 ? -shift : 0);
        mcc_big_shift_left(unit, (shift > 0 ? shift : 0) + bits + 3);
        for (i = 0; i <= bits + 3; i++) {
            quotient <<= 1;
            if (mcc_big_order(number, unit) >= 0) {
                mcc_big_subtract(number, unit);
                quotient |= 1u;
            }
            mcc_big_halve(unit);
        }
        *x = mcc_digits_round(quotient, shift, extra || number->count != 0, bits, lowest, highest);
    }
    if (sign) *x = -*x;
    return 1;
}

#endif /* MCC_DIGITS_H */
