/* MAXIMUM, with broadcasting, Helium: sixteen elements at a time. */
#include "nn_mve.h"

/* `count` elements; `single`: the second operand is one element. */
static inline void larger_as(const int8_t *a, const int8_t *b, int8_t *out, int32_t count,
                             int single) {
    int8x16_t second = vdupq_n_s8(*b);
    for (; count > 0; count -= 16, a += 16, out += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)count); /* nothing outside is read or written */
        if (!single) {
            second = vldrbq_z_s8(b, some);
            b += 16;
        }
        vstrbq_p_s8(out, vmaxq_s8(vldrbq_z_s8(a, some), second), some);
    }
}

static NN_NOINLINE void each(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                             int32_t count) {
    (void)plan;
    larger_as(a, b, out, count, 0);
}

static NN_NOINLINE void with_one(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                                 int32_t count) {
    (void)plan;
    larger_as(a, b, out, count, 1);
}

void nn_maximum_s8_mve(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window) {
    if (in1->channels != out->channels) { /* the operands change places */
        const nn_view *const other = in1;
        in1 = in2;
        in2 = other;
    }
    nn_mve_for_runs(in2->channels != out->channels ? with_one : each, NULL, in1, in2, out, window);
}
