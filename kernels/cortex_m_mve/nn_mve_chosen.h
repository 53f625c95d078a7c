/* MAXIMUM and MINIMUM, with broadcasting, Helium: sixteen elements at a time.
 *
 * A kernel that includes this says which of two elements is put out:
 *     static inline int8x16_t nn_mve_chosen(int8x16_t a, int8x16_t b);
 */
#ifndef NN_MVE_CHOSEN_H
#define NN_MVE_CHOSEN_H

#include "nn_mve.h"

static inline int8x16_t nn_mve_chosen(int8x16_t a, int8x16_t b);

/* `count` elements; `single`: the second operand is one element. */
static inline void nn_mve_choose(const int8_t *a, const int8_t *b, int8_t *out, int32_t count,
                                 int single) {
    int8x16_t second = vdupq_n_s8(*b);
#pragma GCC unroll 4
    for (; count >= 16; count -= 16, a += 16, out += 16) {
        second = single ? second : vldrbq_s8(b);
        b += single ? 0 : 16;
        vstrbq_s8(out, nn_mve_chosen(vldrbq_s8(a), second));
    }
    for (; count > 0; count -= 16, a += 16, out += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)count); /* nothing outside is read or written */
        if (!single) {
            second = vldrbq_z_s8(b, some);
            b += 16;
        }
        vstrbq_p_s8(out, nn_mve_chosen(vldrbq_z_s8(a, some), second), some);
    }
}

static NN_NOINLINE void nn_mve_choose_each(const void *plan, const int8_t *a, const int8_t *b,
                                           int8_t *out, int32_t count) {
    (void)plan;
    nn_mve_choose(a, b, out, count, 0);
}

static NN_NOINLINE void nn_mve_choose_with_one(const void *plan, const int8_t *a, const int8_t *b,
                                               int8_t *out, int32_t count) {
    (void)plan;
    nn_mve_choose(a, b, out, count, 1);
}

static inline void nn_mve_choose_all(const nn_view *in1, const nn_view *in2, const nn_view *out,
                                     const nn_window *window) {
    if (in1->channels != out->channels) { /* the operands change places */
        const nn_view *const other = in1;
        in1 = in2;
        in2 = other;
    }
    nn_mve_for_runs_of(1,
                       in2->channels != out->channels ? nn_mve_choose_with_one : nn_mve_choose_each,
                       NULL, in1, in2, out, window);
}

#endif
