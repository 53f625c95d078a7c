/* What compilers call for 64-bit integers on a 32-bit core where they do not put it in line. */
#include "names.h"

#include <stdint.h>

typedef union {
    int64_t whole;
    uint64_t natural;
    struct {
        uint32_t low, high;
    } half;
} wide;

int64_t __ashldi3(int64_t value, int32_t count);
int64_t __ashrdi3(int64_t value, int32_t count);
int64_t __lshrdi3(int64_t value, int32_t count);
int64_t __muldi3(int64_t a, int64_t b);
uint64_t __udivdi3(uint64_t dividend, uint64_t divisor);
uint64_t __umoddi3(uint64_t dividend, uint64_t divisor);
int64_t __divdi3(int64_t dividend, int64_t divisor);
int64_t __moddi3(int64_t dividend, int64_t divisor);

int64_t __ashldi3(int64_t value, int32_t count) {
    wide from = {value}, to;
    if (count >= 32) {
        to.half.low = 0;
        to.half.high = from.half.low << (count - 32);
    } else {
        to.half.low = from.half.low << count;
        to.half.high = from.half.high << count | from.half.low >> 1 >> (31 - count);
    }
    return to.whole;
}

int64_t __lshrdi3(int64_t value, int32_t count) {
    wide from = {value}, to;
    if (count >= 32) {
        to.half.high = 0;
        to.half.low = from.half.high >> (count - 32);
    } else {
        to.half.high = from.half.high >> count;
        to.half.low = from.half.low >> count | from.half.high << 1 << (31 - count);
    }
    return to.whole;
}

int64_t __ashrdi3(int64_t value, int32_t count) {
    wide from = {value}, to;
    const int32_t high = (int32_t)from.half.high;
    if (count >= 32) {
        to.half.high = (uint32_t)(high >> 31);
        to.half.low = (uint32_t)(high >> (count - 32));
    } else {
        to.half.high = (uint32_t)(high >> count);
        to.half.low = from.half.low >> count | from.half.high << 1 << (31 - count);
    }
    return to.whole;
}

#if !defined(__xtensa__) && !defined(__ARM_ARCH_6M__) &&                                           \
    (!defined(__riscv) || defined(__riscv_mul)) /* those: products.c */
/* The halves' products; the upper two only matter modulo 2^32. */
int64_t __muldi3(int64_t a, int64_t b) {
    wide x = {a}, y = {b}, product;
    product.natural = (uint64_t)x.half.low * y.half.low;
    product.half.high += x.half.low * y.half.high + x.half.high * y.half.low;
    return product.whole;
}
#endif

/* Bit by bit, as on paper. A divisor of 0 gives all ones and the dividend, as the core's own does.
 */
static uint64_t divide(uint64_t dividend, uint64_t divisor, uint64_t *rest) {
    wide quotient = {0}, left, from;
    left.natural = 0;
    from.natural = dividend;
    for (int32_t i = 0; i < 64; i++) {
        const uint32_t carry = left.half.high >> 31;
        left.half.high = left.half.high << 1 | left.half.low >> 31;
        left.half.low = left.half.low << 1 | from.half.high >> 31;
        from.half.high = from.half.high << 1 | from.half.low >> 31;
        from.half.low <<= 1;
        quotient.half.high = quotient.half.high << 1 | quotient.half.low >> 31;
        quotient.half.low <<= 1;
        if (carry || left.natural >= divisor) {
            left.natural -= divisor;
            quotient.half.low |= 1;
        }
    }
    *rest = divisor == 0 ? dividend : left.natural;
    return quotient.natural;
}

uint64_t __udivdi3(uint64_t dividend, uint64_t divisor) {
    uint64_t rest;
    return divide(dividend, divisor, &rest);
}

uint64_t __umoddi3(uint64_t dividend, uint64_t divisor) {
    uint64_t rest;
    (void)divide(dividend, divisor, &rest);
    return rest;
}

static uint64_t size_of(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

int64_t __divdi3(int64_t dividend, int64_t divisor) {
    uint64_t rest;
    const uint64_t quotient = divide(size_of(dividend), size_of(divisor), &rest);
    return (int64_t)((dividend < 0) != (divisor < 0) ? 0 - quotient : quotient);
}

int64_t __moddi3(int64_t dividend, int64_t divisor) {
    uint64_t rest;
    (void)divide(size_of(dividend), size_of(divisor), &rest);
    return (int64_t)(dividend < 0 ? 0 - rest : rest);
}
