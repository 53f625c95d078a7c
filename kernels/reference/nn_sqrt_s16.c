/* SQRT of int16, in float32, rounded down. No core is asked for a root: it is computed bit by bit.
 */
#include "nn_elements.h"

#define FRACTION 23 /* bits of a float's fraction */

static inline float power_of_two(int32_t exponent) {
    const uint32_t bits = (uint32_t)(exponent + 127) << FRACTION;
    float result;
    NN_MEMCPY(&result, &bits, sizeof(result));
    return result;
}

/* The square root of a normal float above 0, rounded to the nearest float. A root of 25 bits says
 * which one that is, since no root lies in the middle between two floats. */
static float root(float square) {
    uint32_t bits;
    NN_MEMCPY(&bits, &square, sizeof(bits));
    const int32_t exponent = (int32_t)(bits >> FRACTION) - 127, odd = exponent & 1;
    uint64_t rest = (uint64_t)((bits & 0x7FFFFFU) | 0x800000U) << (FRACTION + 2 + odd);
    uint64_t found = 0;
    for (uint64_t bit = (uint64_t)1 << 48; bit != 0; bit >>= 2) {
        const int fits = rest >= found + bit;
        rest -= fits ? found + bit : 0;
        found = (found >> 1) + (fits ? bit : 0);
    }
    return (float)(int32_t)((found + 1) >> 1) * power_of_two((exponent - odd) / 2 - FRACTION);
}

static inline int32_t quantised_root(const nn_sqrt_constants *c, int32_t value) {
    if (value <= 0) {
        return value < 0 ? -32768 : 0;
    }
    const float quotient = root(c->input_scale * (float)value) / c->output_scale;
    return quotient < 32767.0f ? (int32_t)quotient : 32767;
}

void nn_sqrt_s16(const void *constants, const nn_view *in, const nn_view *out,
                 const nn_window *window) {
    const nn_sqrt_constants c = *(const nn_sqrt_constants *)constants;
    NN_ELEMENTS(int16_t, int16_t, quantised_root(&c, value))
}
