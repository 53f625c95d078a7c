/* EXP, LOG, TANH and LOGISTIC of float32. */
#include "nn_float.h"
#include "nn_real.h"

static inline float exponential(const void *constants, float x) {
    (void)constants;
    return nn_real_exp(x);
}

static inline float logarithm(const void *constants, float x) {
    (void)constants;
    return nn_real_log(x);
}

static inline float tangent(const void *constants, float x) {
    (void)constants;
    return nn_real_tanh(x);
}

/* The two ends are LiteRT's. */
static inline float sigmoid(const void *constants, float x) {
    (void)constants;
    if (x > 16.619047164916992188F) {
        return 1.0F;
    }
    if (x < -9.0F) {
        return nn_real_exp(x);
    }
    return 1.0F / (1.0F + nn_real_exp(-x));
}

NN_FLOAT_FUNCTION(nn_exp_f32, exponential)
NN_FLOAT_FUNCTION(nn_log_f32, logarithm)
NN_FLOAT_FUNCTION(nn_tanh_f32, tangent)
NN_FLOAT_FUNCTION(nn_logistic_f32, sigmoid)
