/* What compilers call for single precision where the core has no floating-point unit: IEEE 754,
 * rounded to nearest, halves to even; every NaN that comes out is the same quiet one. */
#include "names.h"

#include <stdint.h>

#define SIGN 0x80000000U
#define INFINITE 0x7F800000U
#define QUIET_NAN 0x7FC00000U
#define HIDDEN 0x00800000U
#define GUARD_BITS 7 /* below a significand while it is computed with */
#define LEADING 0x40000000U

typedef union {
    float value;
    uint32_t bits;
} single;

/* significand * 2^(exponent - 150), the significand's bit 23 set. */
typedef struct {
    uint32_t sign, significand;
    int32_t exponent;
} parts;

float __addsf3(float a, float b);
float __subsf3(float a, float b);
float __mulsf3(float a, float b);
float __divsf3(float a, float b);
float __floatsisf(int32_t value);
float __floatunsisf(uint32_t value);
int32_t __fixsfsi(float value);
int32_t __eqsf2(float a, float b);
int32_t __nesf2(float a, float b);
int32_t __ltsf2(float a, float b);
int32_t __lesf2(float a, float b);
int32_t __gtsf2(float a, float b);
int32_t __gesf2(float a, float b);
int32_t __unordsf2(float a, float b);

static uint32_t bits_of(float value) {
    const single s = {value};
    return s.bits;
}

static float from_bits(uint32_t bits) {
    single s;
    s.bits = bits;
    return s.value;
}

static int is_nan(uint32_t bits) {
    return (bits & ~SIGN) > INFINITE;
}

/* Of a finite number that is not zero. */
static parts split(uint32_t bits) {
    parts p = {bits & SIGN, bits & (HIDDEN - 1), (int32_t)(bits >> 23 & 255)};
    if (p.exponent != 0) {
        p.significand |= HIDDEN;
        return p;
    }
    p.exponent = 1;
    while ((p.significand & HIDDEN) == 0) {
        p.significand <<= 1;
        p.exponent--;
    }
    return p;
}

/* Shifts right; what is lost stays visible in the lowest bit. */
static uint32_t shift_sticky(uint32_t value, int32_t count) {
    if (count == 0) {
        return value;
    }
    return count > 31 ? value != 0 : value >> count | (value << (32 - count) != 0);
}

/* `significand`: the leading bit at 30. */
static float join(uint32_t sign, int32_t exponent, uint32_t significand) {
    if (exponent <= 0) {
        significand = shift_sticky(significand, 1 - exponent);
        exponent = 0;
    }
    const uint32_t rest = significand & ((1U << GUARD_BITS) - 1), half = 1U << (GUARD_BITS - 1);
    significand >>= GUARD_BITS;
    significand += rest > half || (rest == half && (significand & 1) != 0);
    if (exponent == 0) {
        return from_bits(sign | significand); /* a carry makes the least normal number */
    }
    if (significand == HIDDEN << 1) {
        significand >>= 1;
        exponent++;
    }
    if (exponent >= 255) {
        return from_bits(sign | INFINITE);
    }
    return from_bits(sign | (uint32_t)exponent << 23 | (significand & (HIDDEN - 1)));
}

static float add_finite(uint32_t larger, uint32_t smaller) {
    parts a = split(larger);
    const parts b = split(smaller);
    const uint32_t m = shift_sticky(b.significand << GUARD_BITS, a.exponent - b.exponent);
    a.significand <<= GUARD_BITS;
    if (a.sign == b.sign) {
        a.significand += m;
        if ((a.significand & SIGN) != 0) {
            a.significand = shift_sticky(a.significand, 1);
            a.exponent++;
        }
        return join(a.sign, a.exponent, a.significand);
    }
    a.significand -= m;
    if (a.significand == 0) {
        return from_bits(0);
    }
    while ((a.significand & LEADING) == 0) {
        a.significand <<= 1;
        a.exponent--;
    }
    return join(a.sign, a.exponent, a.significand);
}

float __addsf3(float a, float b) {
    const uint32_t x = bits_of(a), y = bits_of(b), x_size = x & ~SIGN, y_size = y & ~SIGN;
    if (is_nan(x) || is_nan(y) || (x_size == INFINITE && y_size == INFINITE && x != y)) {
        return from_bits(QUIET_NAN);
    }
    if (x_size == INFINITE || y_size == 0) {
        return from_bits(x_size == 0 ? x & y : x); /* -0 + -0 alone is -0 */
    }
    if (y_size == INFINITE || x_size == 0) {
        return from_bits(y);
    }
    return x_size >= y_size ? add_finite(x, y) : add_finite(y, x);
}

float __subsf3(float a, float b) {
    return __addsf3(a, from_bits(bits_of(b) ^ SIGN));
}

float __mulsf3(float a, float b) {
    const uint32_t x = bits_of(a), y = bits_of(b), x_size = x & ~SIGN, y_size = y & ~SIGN;
    const uint32_t sign = (x ^ y) & SIGN;
    if (is_nan(x) || is_nan(y)) {
        return from_bits(QUIET_NAN);
    }
    if (x_size == INFINITE || y_size == INFINITE) {
        return from_bits(x_size == 0 || y_size == 0 ? QUIET_NAN : sign | INFINITE);
    }
    if (x_size == 0 || y_size == 0) {
        return from_bits(sign);
    }
    const parts p = split(x), q = split(y);
    const uint64_t product = (uint64_t)p.significand * q.significand;
    uint32_t significand = (uint32_t)(product >> 16) | ((product & 0xFFFF) != 0);
    int32_t exponent = p.exponent + q.exponent - 127;
    if ((significand & SIGN) != 0) {
        significand = shift_sticky(significand, 1);
        exponent++;
    }
    return join(sign, exponent, significand);
}

float __divsf3(float a, float b) {
    const uint32_t x = bits_of(a), y = bits_of(b), x_size = x & ~SIGN, y_size = y & ~SIGN;
    const uint32_t sign = (x ^ y) & SIGN;
    if (is_nan(x) || is_nan(y) || (x_size == INFINITE && y_size == INFINITE) ||
        (x_size == 0 && y_size == 0)) {
        return from_bits(QUIET_NAN);
    }
    if (x_size == INFINITE || y_size == 0) {
        return from_bits(sign | INFINITE);
    }
    if (x_size == 0 || y_size == INFINITE) {
        return from_bits(sign);
    }
    const parts p = split(x), q = split(y);
    uint32_t significand = 0, rest = p.significand; /* bit by bit, the quotient of rest * 2^31 */
    for (int32_t i = 0; i < 32; i++) {
        significand <<= 1;
        if (rest >= q.significand) {
            rest -= q.significand;
            significand |= 1;
        }
        rest <<= 1;
    }
    significand |= rest != 0;
    int32_t exponent = p.exponent - q.exponent + 126;
    if ((significand & SIGN) != 0) {
        significand = shift_sticky(significand, 1);
        exponent++;
    }
    return join(sign, exponent, significand);
}

static float from_size(uint32_t sign, uint32_t size) {
    int32_t exponent = 127 + 31;
    if (size == 0) {
        return from_bits(0);
    }
    while ((size & SIGN) == 0) {
        size <<= 1;
        exponent--;
    }
    return join(sign, exponent, shift_sticky(size, 1));
}

float __floatsisf(int32_t value) {
    return value < 0 ? from_size(SIGN, 0U - (uint32_t)value) : from_size(0, (uint32_t)value);
}

float __floatunsisf(uint32_t value) {
    return from_size(0, value);
}

#if __riscv_xlen == 64 /* by which clang converts an unsigned int, too */
float __floatundisf(uint64_t value);

float __floatundisf(uint64_t value) {
    int32_t shift = 0;
    uint32_t lost = 0;
    for (; value >> 32 != 0; value >>= 1, shift++) {
        lost |= (uint32_t)value & 1;
    }
    const uint32_t bits = bits_of(from_size(0, (uint32_t)value | lost));
    return from_bits(bits + ((uint32_t)shift << 23));
}
#endif

/* Toward zero; what does not fit saturates. */
int32_t __fixsfsi(float value) {
    const uint32_t bits = bits_of(value), size = bits & ~SIGN;
    const int32_t exponent = (int32_t)(size >> 23) - 150;
    const uint32_t significand = (size & (HIDDEN - 1)) | HIDDEN;
    if (exponent < -23) {
        return 0;
    }
    if (exponent > 7) {
        return (bits & SIGN) != 0 && !is_nan(bits) ? INT32_MIN : INT32_MAX;
    }
    const uint32_t whole = exponent < 0 ? significand >> -exponent : significand << exponent;
    return (bits & SIGN) != 0 ? (int32_t)(0U - whole) : (int32_t)whole;
}

/* -1, 0 or 1; `unordered` with a NaN. */
static int32_t compare(float a, float b, int32_t unordered) {
    const uint32_t x = bits_of(a), y = bits_of(b);
    const int32_t p = (x & SIGN) != 0 ? -(int32_t)(x & ~SIGN) : (int32_t)x;
    const int32_t q = (y & SIGN) != 0 ? -(int32_t)(y & ~SIGN) : (int32_t)y;
    if (is_nan(x) || is_nan(y)) {
        return unordered;
    }
    return (p > q) - (p < q);
}

int32_t __eqsf2(float a, float b) {
    return compare(a, b, 1);
}

int32_t __nesf2(float a, float b) {
    return compare(a, b, 1);
}

int32_t __ltsf2(float a, float b) {
    return compare(a, b, 1);
}

int32_t __lesf2(float a, float b) {
    return compare(a, b, 1);
}

int32_t __gtsf2(float a, float b) {
    return compare(a, b, -1);
}

int32_t __gesf2(float a, float b) {
    return compare(a, b, -1);
}

int32_t __unordsf2(float a, float b) {
    return is_nan(bits_of(a)) || is_nan(bits_of(b));
}

#if defined(__arm__)
/* Comparisons by the names of Arm's run-time ABI: whether the relation holds, which it never does
 * with a NaN. */
#define HOLDS(name, relation)                                                                      \
    int32_t name(float a, float b);                                                                \
    int32_t name(float a, float b) {                                                               \
        return relation;                                                                           \
    }

HOLDS(__aeabi_fcmpeq, compare(a, b, 1) == 0)
HOLDS(__aeabi_fcmplt, compare(a, b, 1) < 0)
HOLDS(__aeabi_fcmple, compare(a, b, 1) <= 0)
HOLDS(__aeabi_fcmpgt, compare(a, b, -1) > 0)
HOLDS(__aeabi_fcmpge, compare(a, b, -1) >= 0)
#endif
