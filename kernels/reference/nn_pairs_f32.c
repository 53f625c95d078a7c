/* Functions of two numbers of float32, with broadcasting. */
#include "nn_float.h"

static inline float clamped(const void *constants, float value) {
    const nn_float_limits *c = (const nn_float_limits *)constants;
    return nn_float_clamp(value, c->low, c->high);
}

static inline float sum(const void *constants, float a, float b) {
    return clamped(constants, a + b);
}

static inline float difference(const void *constants, float a, float b) {
    return clamped(constants, a - b);
}

static inline float product(const void *constants, float a, float b) {
    return clamped(constants, a * b);
}

static inline float quotient(const void *constants, float a, float b) {
    return clamped(constants, a / b);
}

static inline float larger(const void *constants, float a, float b) {
    (void)constants;
    return a > b ? a : b;
}

static inline float smaller(const void *constants, float a, float b) {
    (void)constants;
    return a < b ? a : b;
}

static inline float squared_difference(const void *constants, float a, float b) {
    const float apart = a - b;
    (void)constants;
    return apart * apart;
}

static inline float leaky(const void *constants, float x, float alpha) {
    (void)constants;
    return x >= 0.0F ? x : x * alpha;
}

#define FLOAT_PAIR(kernel, function)                                                               \
    void kernel(const nn_view *in1, const nn_view *in2, const nn_view *out,                        \
                const nn_window *window) {                                                         \
        nn_for_float_pairs(function, NULL, in1, in2, out, window);                                 \
    }
#define CLAMPED_PAIR(kernel, function)                                                             \
    void kernel(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out, \
                const nn_window *window) {                                                         \
        const nn_float_limits limits = *(const nn_float_limits *)constants;                        \
        nn_for_float_pairs(function, &limits, in1, in2, out, window);                              \
    }

CLAMPED_PAIR(nn_add_f32, sum)
CLAMPED_PAIR(nn_sub_f32, difference)
CLAMPED_PAIR(nn_mul_f32, product)
CLAMPED_PAIR(nn_div_f32, quotient)
FLOAT_PAIR(nn_maximum_f32, larger)
FLOAT_PAIR(nn_minimum_f32, smaller)
FLOAT_PAIR(nn_squared_difference_f32, squared_difference)
FLOAT_PAIR(nn_prelu_f32, leaky)
