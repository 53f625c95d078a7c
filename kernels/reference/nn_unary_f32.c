/* Functions of one number of float32 that need no more than sums, products, quotients and roots. */
#include "nn_float.h"

static inline float absolute(const void *constants, float x) {
    (void)constants;
    return nn_float_abs(x);
}

static inline float negated(const void *constants, float x) {
    (void)constants;
    return nn_float_of(nn_float_bits(x) ^ 0x80000000U);
}

static inline float squared(const void *constants, float x) {
    (void)constants;
    return x * x;
}

static inline float rooted(const void *constants, float x) {
    (void)constants;
    return nn_float_root(x);
}

static inline float inverse_root(const void *constants, float x) {
    (void)constants;
    return 1.0F / nn_float_root(x);
}

static inline float rectified(const void *constants, float x) {
    (void)constants;
    return x < 0.0F ? 0.0F : x;
}

static inline float up_to_6(const void *constants, float x) {
    (void)constants;
    return nn_float_clamp(x, 0.0F, 6.0F);
}

static inline float around_0(const void *constants, float x) {
    (void)constants;
    return nn_float_clamp(x, -1.0F, 1.0F);
}

static inline float up_to_1(const void *constants, float x) {
    (void)constants;
    return nn_float_clamp(x, 0.0F, 1.0F);
}

static inline float hard_swish(const void *constants, float x) {
    (void)constants;
    return x * nn_float_clamp(x + 3.0F, 0.0F, 6.0F) / 6.0F;
}

static inline float leaky(const void *constants, float x) {
    return x > 0.0F ? x : x * ((const nn_float_factor *)constants)->factor;
}

NN_FLOAT_FUNCTION(nn_abs_f32, absolute)
NN_FLOAT_FUNCTION(nn_neg_f32, negated)
NN_FLOAT_FUNCTION(nn_square_f32, squared)
NN_FLOAT_FUNCTION(nn_sqrt_f32, rooted)
NN_FLOAT_FUNCTION(nn_rsqrt_f32, inverse_root)
NN_FLOAT_FUNCTION(nn_relu_f32, rectified)
NN_FLOAT_FUNCTION(nn_relu6_f32, up_to_6)
NN_FLOAT_FUNCTION(nn_relu_n1_to_1_f32, around_0)
NN_FLOAT_FUNCTION(nn_relu_0_to_1_f32, up_to_1)
NN_FLOAT_FUNCTION(nn_hard_swish_f32, hard_swish)

void nn_leaky_relu_f32(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window) {
    nn_for_floats(leaky, constants, in, out, window);
}
