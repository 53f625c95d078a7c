/* What gcc calls on an LX106 for products of 64 bits and for 32-bit quotients: Debian's libgcc for
 * the core lacks them, and the chip has them in its ROM. The core multiplies 32 bits to 32. */
#include <stdint.h>

uint64_t __umulsidi3(uint32_t a, uint32_t b);
int64_t __muldi3(int64_t a, int64_t b);
uint32_t __udivsi3(uint32_t dividend, uint32_t divisor);
uint32_t __umodsi3(uint32_t dividend, uint32_t divisor);
int32_t __divsi3(int32_t dividend, int32_t divisor);
int32_t __modsi3(int32_t dividend, int32_t divisor);

/* The high word of a product, from four of halves. */
static inline __attribute__((always_inline)) uint32_t high(uint32_t a, uint32_t b) {
    const uint32_t a0 = a & 0xFFFF, a1 = a >> 16, b0 = b & 0xFFFF, b1 = b >> 16;
    const uint32_t low = a0 * b0, middle = a1 * b0 + (low >> 16);
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

/* Bit by bit from the dividend's highest that can matter; NSAU counts leading zeros. A divisor of 0
 * gives all ones and the dividend. */
static inline __attribute__((always_inline)) uint32_t divide(uint32_t dividend, uint32_t divisor,
                                                             uint32_t *rest) {
    uint32_t quotient = 0;
    *rest = dividend;
    if (divisor == 0) {
        return ~quotient;
    }
    if (dividend >= divisor) {
        int32_t shift = __builtin_clz(divisor) - __builtin_clz(dividend);
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

static uint32_t size_of(int32_t value) {
    return value < 0 ? 0 - (uint32_t)value : (uint32_t)value;
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
