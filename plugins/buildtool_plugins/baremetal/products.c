/* What compilers call for products of 64 bits and for 32-bit quotients on a core without
 * instructions for them: Arm's v6-M, RISC-V without M, Xtensa's LX106 (Debian's libgcc lacks them;
 * the chip has them in its ROM). */
#include "names.h"

#include <stdint.h>

#if !defined(__riscv_mul) && (!defined(__arm__) || defined(__ARM_ARCH_6M__))

uint64_t __umulsidi3(uint32_t a, uint32_t b);
int64_t __muldi3(int64_t a, int64_t b);
uint32_t __udivsi3(uint32_t dividend, uint32_t divisor);
uint32_t __umodsi3(uint32_t dividend, uint32_t divisor);
int32_t __divsi3(int32_t dividend, int32_t divisor);
int32_t __modsi3(int32_t dividend, int32_t divisor);
uint32_t __mulsi3(uint32_t a, uint32_t b);
uint64_t __aeabi_uidivmod(uint32_t dividend, uint32_t divisor);
uint64_t __aeabi_idivmod(int32_t dividend, int32_t divisor);
int32_t __clzsi2(uint32_t value);

static uint32_t size_of(int32_t value) {
    return value < 0 ? 0 - (uint32_t)value : (uint32_t)value;
}

#if !defined(__arm__) && !defined(__xtensa__) /* which have an instruction for it */
/* Bit by bit, as many as the smaller factor has: eight at most for an int8. */
uint32_t __mulsi3(uint32_t a, uint32_t b) {
    const uint32_t x = size_of((int32_t)a), y = size_of((int32_t)b);
    uint32_t left = x < y ? x : y, shifted = x < y ? y : x, product = 0;
    for (; left != 0; left >>= 1, shifted <<= 1) {
        product += (left & 1) != 0 ? shifted : 0;
    }
    return ((a ^ b) >> 31) != 0 ? 0 - product : product;
}
#endif

/* The high word of a product, from four of halves. The assembly keeps the compiler from seeing
 * that, and from calling the function that this is part of. */
static inline __attribute__((always_inline)) uint32_t high(uint32_t a, uint32_t b) {
    const uint32_t a0 = a & 0xFFFF, a1 = a >> 16, b0 = b & 0xFFFF, b1 = b >> 16;
    const uint32_t low = a0 * b0;
    uint32_t middle = a1 * b0 + (low >> 16);
    __asm("" : "+r"(middle));
    const uint32_t other = a0 * b1 + (middle & 0xFFFF);
    return a1 * b1 + (middle >> 16) + (other >> 16);
}

static inline __attribute__((always_inline)) uint64_t joined(uint32_t upper, uint32_t lower) {
    union {
        uint32_t half[2];
        uint64_t whole;
    } result = {{lower, upper}};
    return result.whole;
}

uint64_t __umulsidi3(uint32_t a, uint32_t b) {
    return joined(high(a, b), a * b);
}

int64_t __muldi3(int64_t a, int64_t b) {
    const uint32_t a0 = (uint32_t)a, b0 = (uint32_t)b;
    const uint32_t a1 = (uint32_t)((uint64_t)a >> 32), b1 = (uint32_t)((uint64_t)b >> 32);
    return (int64_t)joined(high(a0, b0) + a0 * b1 + a1 * b0, a0 * b0);
}

#if defined(__xtensa__) /* NSAU */
#define leading_zeros(value) __builtin_clz(value)
#else
static inline int32_t leading_zeros(uint32_t value) {
    int32_t zeros = 0;
    for (int32_t step = 16; step > 0; step >>= 1) {
        if (value >> (32 - step) == 0) {
            zeros += step;
            value <<= step;
        }
    }
    return zeros;
}
#endif

/* Bit by bit from the dividend's highest that can matter. A divisor of 0 gives all ones and the
 * dividend. */
static inline __attribute__((always_inline)) uint32_t divide(uint32_t dividend, uint32_t divisor,
                                                             uint32_t *rest) {
    uint32_t quotient = 0;
    *rest = dividend;
    if (divisor == 0) {
        return ~quotient;
    }
    if (dividend >= divisor) {
        int32_t shift = leading_zeros(divisor) - leading_zeros(dividend);
        divisor <<= shift;
        for (; shift >= 0; shift--, divisor >>= 1) {
            quotient <<= 1;
            if (dividend >= divisor) {
                dividend -= divisor;
                quotient |= 1;
            }
        }
        *rest = dividend;
    }
    return quotient;
}

uint32_t __udivsi3(uint32_t dividend, uint32_t divisor) {
    uint32_t rest;
    return divide(dividend, divisor, &rest);
}

uint32_t __umodsi3(uint32_t dividend, uint32_t divisor) {
    uint32_t rest;
    (void)divide(dividend, divisor, &rest);
    return rest;
}

int32_t __divsi3(int32_t dividend, int32_t divisor) {
    uint32_t rest;
    const uint32_t quotient = divide(size_of(dividend), size_of(divisor), &rest);
    return (int32_t)((dividend < 0) != (divisor < 0) ? 0 - quotient : quotient);
}

int32_t __modsi3(int32_t dividend, int32_t divisor) {
    uint32_t rest;
    (void)divide(size_of(dividend), size_of(divisor), &rest);
    return (int32_t)(dividend < 0 ? 0 - rest : rest);
}

#if defined(__arm__)
/* Both results in registers: the quotient in r0, the rest in r1. */
uint64_t __aeabi_uidivmod(uint32_t dividend, uint32_t divisor) {
    uint32_t rest;
    const uint32_t quotient = divide(dividend, divisor, &rest);
    return joined(rest, quotient);
}

uint64_t __aeabi_idivmod(int32_t dividend, int32_t divisor) {
    const int32_t quotient = __divsi3(dividend, divisor);
    return joined((uint32_t)dividend - (uint32_t)quotient * (uint32_t)divisor, (uint32_t)quotient);
}

int32_t __clzsi2(uint32_t value) {
    return value == 0 ? 32 : leading_zeros(value);
}
#endif

#endif
