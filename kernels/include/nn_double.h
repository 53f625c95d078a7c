/* Double precision by integers, for cores without it: sums and products as IEEE 754 rounds them, to
 * nearest, halves to even. Values are finite. Those below the smallest normal double count as 0. */
#ifndef NN_DOUBLE_H
#define NN_DOUBLE_H

#include "nn_compiler.h"

#include <stdint.h>

#define NN_DOUBLE_GUARD 10 /* bits below the 53 of a double */

/* significand * 2^exponent. The significand is 0, or has bit 62 as its highest one. */
typedef struct {
    uint64_t significand;
    int32_t exponent, negative;
} nn_double;

/* The value with these bits. */
static inline nn_double nn_double_of_bits(uint64_t bits) {
    const int32_t field = (int32_t)(bits >> 52 & 2047);
    nn_double value = {0, 0, (int32_t)(bits >> 63)};
    if (field != 0) {
        value.significand = ((bits & ((1ULL << 52) - 1)) | 1ULL << 52) << NN_DOUBLE_GUARD;
        value.exponent = field - 1023 - 62;
    }
    return value;
}

static inline nn_double nn_double_of_float(float single) {
    uint32_t bits;
    NN_MEMCPY(&bits, &single, sizeof bits);
    const int32_t field = (int32_t)(bits >> 23 & 255);
    nn_double value = {bits & 0x7FFFFF, 0, (int32_t)(bits >> 31)};
    if (field == 0 && value.significand == 0) {
        return value;
    }
    value.significand = (value.significand | (field != 0 ? 1U << 23 : 0)) << 39;
    value.exponent = (field != 0 ? field : 1) - 127 - 62;
    while ((value.significand >> 62) == 0) {
        value.significand <<= 1;
        value.exponent--;
    }
    return value;
}

/* Rounded to 53 bits; the lowest bit stands for all that were cut off. */
static inline nn_double nn_double_rounded(nn_double value) {
    const uint64_t unit = 1ULL << NN_DOUBLE_GUARD, rest = value.significand & (unit - 1);
    value.significand -= rest;
    if (rest > unit / 2 || (rest == unit / 2 && (value.significand & unit) != 0)) {
        value.significand += unit;
    }
    if (value.significand >> 63 != 0) {
        value.significand >>= 1;
        value.exponent++;
    }
    return value;
}

static inline nn_double nn_double_product(nn_double a, nn_double b) {
    const uint64_t a_high = a.significand >> 32, a_low = a.significand & 0xFFFFFFFFU;
    const uint64_t b_high = b.significand >> 32, b_low = b.significand & 0xFFFFFFFFU;
    const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    const uint64_t other = a_low * b_high + (middle & 0xFFFFFFFFU);
    uint64_t high = a_high * b_high + (middle >> 32) + (other >> 32);
    uint64_t low = other << 32 | ((a_low * b_low) & 0xFFFFFFFFU);
    nn_double value = {0, a.exponent + b.exponent + 64, a.negative ^ b.negative};
    if (high == 0) { /* one of them is 0 */
        return value;
    }
    for (; (high >> 62) == 0; low <<= 1, value.exponent--) {
        high = high << 1 | low >> 63;
    }
    value.significand = high | (low != 0);
    return nn_double_rounded(value);
}

static inline nn_double nn_double_sum(nn_double a, nn_double b) {
    if (a.significand == 0 || b.significand == 0) {
        nn_double value = a.significand == 0 ? b : a;
        value.negative = value.significand == 0 ? a.negative & b.negative : value.negative;
        return value;
    }
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
        const nn_double smaller = a;
        a = b;
        b = smaller;
    }
    const int32_t shift = a.exponent - b.exponent;
    uint64_t part = 1;
    if (shift < 63) {
        part = b.significand >> shift;
        part |= (part << shift) != b.significand;
    }
    if (a.negative == b.negative) {
        a.significand += part;
        if (a.significand >> 63 != 0) {
            a.significand = a.significand >> 1 | (a.significand & 1);
            a.exponent++;
        }
        return nn_double_rounded(a);
    }
    a.significand -= part;
    if (a.significand == 0) {
        a.negative = 0;
        return a;
    }
    for (; (a.significand >> 62) == 0; a.exponent--) {
        a.significand <<= 1;
    }
    return nn_double_rounded(a);
}

static inline float nn_double_to_float(nn_double value) {
    const int32_t field = value.exponent + 62 + 127;
    const int32_t shift = field > 0 ? 39 : 40 - field;
    uint32_t bits = 0;
    float single;
    if (value.significand != 0 && shift < 64) {
        const uint64_t half = 1ULL << (shift - 1), rest = value.significand & (2 * half - 1);
        bits = (uint32_t)((value.significand - rest) >> (shift - 1) >> 1);
        bits += rest > half || (rest == half && (bits & 1) != 0);
        bits += field > 0 ? (uint32_t)(field - 1) << 23 : 0;
    }
    bits |= (uint32_t)value.negative << 31;
    NN_MEMCPY(&single, &bits, sizeof single);
    return single;
}

#endif
