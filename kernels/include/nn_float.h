/* What the plain kernels of float32 share: elements, clamps, roots, loops over views.
 *
 * Every sum, product and quotient is rounded to float32 in the order in which LiteRT's reference
 * kernels compute them. A product must not be fused with a sum, and numbers must not be reordered.
 */
#ifndef NN_FLOAT_H
#define NN_FLOAT_H

#include "nn_arith.h"
#include "nn_f32.h"

#if defined(__FAST_MATH__)
#error "these kernels compute as LiteRT only without -ffast-math"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* In every loop over elements: vector instructions of these cores flush subnormal numbers to zero,
 * so compilers must not compute several elements at once. */
#if defined(__ARM_FEATURE_MVE) || (defined(__ARM_NEON) && !defined(__aarch64__))
#define NN_ONE_BY_ONE() NN_BARRIER()
#else
#define NN_ONE_BY_ONE() ((void)0)
#endif

#define NN_FLOAT_MAX 3.40282346638528859812e+38F

typedef char nn_floats_are_singles[sizeof(float) == 4 ? 1 : -1];

/* The elements of row y from column x on. */
static inline const float *nn_float_in(const nn_view *view, int32_t y, int32_t x) {
    return (const float *)(const void *)nn_pixel(view, y, x);
}

static inline float *nn_float_out(const nn_view *out, int32_t y, int32_t x) {
    return (float *)(void *)nn_out_pixel(out, y, x);
}

static inline uint32_t nn_float_bits(float value) {
    uint32_t bits;
    NN_MEMCPY(&bits, &value, sizeof bits);
    return bits;
}

static inline float nn_float_of(uint32_t bits) {
    float value;
    NN_MEMCPY(&value, &bits, sizeof value);
    return value;
}

/* Keeps NaN. */
static inline float nn_float_clamp(float value, float low, float high) {
    const float above = value < low ? low : value;
    return high < above ? high : above;
}

/* `limits`: nn_float_limits. */
static inline float nn_float_limit(const void *limits, float value) {
    const nn_float_limits *ends = (const nn_float_limits *)limits;
    return nn_float_clamp(value, ends->low, ends->high);
}

static inline float nn_float_abs(float value) {
    return nn_float_of(nn_float_bits(value) & 0x7FFFFFFFU);
}

/* The root of a finite number above 0, bit by bit. It is never half-way between two floats. */
static inline float nn_float_root_bits(uint32_t bits) {
    int32_t exponent = (int32_t)(bits >> 23);
    uint32_t rest = bits & 0x7FFFFFU, root = 0, twice = 0;
    if (exponent == 0) {
        for (exponent = 1; (rest & 0x800000U) == 0; exponent--) {
            rest <<= 1;
        }
    }
    rest |= 0x800000U;
    rest <<= exponent % 2 == 0 ? 2 : 1; /* the exponent less 127 is odd: twice the number */
    for (uint32_t bit = 1U << 24; bit != 0; bit >>= 1) {
        const uint32_t next = twice + bit;
        if (next <= rest) {
            twice = next + bit;
            rest -= next;
            root += bit;
        }
        rest <<= 1;
    }
    return nn_float_of(((root + 1) >> 1) + ((uint32_t)((exponent + 125) >> 1) << 23));
}

static inline float nn_float_root(float value) {
#if defined(__ARM_FP) && (__ARM_FP & 4)
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(value));
    return root;
#elif defined(__riscv_flen)
    float root;
    __asm__("fsqrt.s %0, %1" : "=f"(root) : "f"(value));
    return root;
#else
    const uint32_t bits = nn_float_bits(value);
    if (bits << 1 == 0 || bits == 0x7F800000U) {
        return value;
    }
    if (bits > 0x7F800000U) { /* below 0, or NaN */
        return nn_float_of(0x7FC00000U);
    }
    return nn_float_root_bits(bits);
#endif
}

/* ---- layers with weights -------------------------------------------------------------------- */

typedef struct {
    float low, high;
    const float *bias, *weights;
} nn_float_layer;

static inline nn_float_layer nn_float_open(const void *constants, int32_t channels) {
    const nn_float_head *head = (const nn_float_head *)constants;
    nn_float_layer layer = {head->low, head->high, (const float *)(const void *)(head + 1), NULL};
    layer.weights = layer.bias + (channels + 3) / 4 * 4;
    return layer;
}

/* The output of a channel with this sum of products. */
static inline float nn_float_finish(const nn_float_layer *layer, float sum, int32_t channel) {
    return nn_float_clamp(sum + layer->bias[channel], layer->low, layer->high);
}

/* ---- loops ---------------------------------------------------------------------------------- */

/* One output element. */
typedef float nn_float_of_one(const void *constants, float x);
typedef float nn_float_of_two(const void *constants, float a, float b);

static inline __attribute__((always_inline)) void
nn_for_floats(nn_float_of_one *compute, const void *constants, const nn_view *in,
              const nn_view *out, const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const float *value = nn_float_in(in, y, x);
            float *result = nn_float_out(out, y, x);
            for (int32_t i = 0; i < out->channels; i++) {
                result[i] = compute(constants, value[i]);
                NN_ONE_BY_ONE();
            }
        }
    }
}

/* With broadcasting. */
static inline __attribute__((always_inline)) void
nn_for_float_pairs(nn_float_of_two *compute, const void *constants, const nn_view *in1,
                   const nn_view *in2, const nn_view *out, const nn_window *window) {
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const float *a = nn_float_in(in1, y, x), *b = nn_float_in(in2, y, x);
            float *result = nn_float_out(out, y, x);
            for (int32_t i = 0; i < out->channels; i++, a += step1, b += step2) {
                result[i] = compute(constants, *a, *b);
                NN_ONE_BY_ONE();
            }
        }
    }
}

#endif
