/* MAXIMUM and MINIMUM, with broadcasting, Helium: sixteen elements at a time.
 *
 * A kernel that includes this says which of two elements is put out:
 *     static inline int8x16_t nn_mve_chosen(int8x16_t a, int8x16_t b);
 *     #define NN_MVE_CHOOSE "vmax.s8" or another instruction, the same
 */
#ifndef NN_MVE_CHOSEN_H
#define NN_MVE_CHOSEN_H

#include "nn_mve.h"

static inline int8x16_t nn_mve_chosen(int8x16_t a, int8x16_t b);

static NN_NOINLINE void nn_mve_choose_each(const void *plan, const nn_mve_strip *s) {
    (void)plan;
    for (nn_mve_strip at = *s; at.pixels > 0; nn_mve_next_pixel(&at)) {
        const int8_t *a = at.a, *b = at.b;
        int8_t *out = at.out;
        const int32_t count = at.count;
        __asm volatile("wlstp.8 lr, %[count], 2f\n"
                       "1:\n"
                       "vldrb.u8 q0, [%[a]], #16\n"
                       "vldrb.u8 q1, [%[b]], #16\n" NN_MVE_CHOOSE " q0, q0, q1\n"
                       "vstrb.8 q0, [%[out]], #16\n"
                       "letp lr, 1b\n"
                       "2:\n"
                       : [a] "+r"(a), [b] "+r"(b), [out] "+r"(out)
                       : [count] "r"(count)
                       : "q0", "q1", "lr", "memory");
    }
}

/* A second operand that is the same for all pixels: `step` elements, of as many pixels as there is
 * room for. */
typedef struct {
    int8_t elements[16];
    int32_t step;
} nn_mve_pattern;

/* The second operand is what `plan` says, or, where that is NULL, one element a pixel. */
static NN_NOINLINE void nn_mve_choose_repeated(const void *plan, const nn_mve_strip *s) {
    const nn_mve_pattern *const p = (const nn_mve_pattern *)plan;
    const int32_t step = p != NULL ? p->step : 16;
    for (int32_t i = 0; i < s->pixels; i++) {
        const int8x16_t second =
            p != NULL ? vldrbq_s8(p->elements) : vdupq_n_s8(s->b[i * s->b_step]);
        const int8_t *a = s->a + i * s->a_step;
        int8_t *out = s->out + i * s->out_step;
        int32_t count = s->count;
        for (; step == 16 && count > 0; count -= 16, a += 16, out += 16) {
            const mve_pred16_t some = vctp8q((uint32_t)count);
            vstrbq_p_s8(out, nn_mve_chosen(vldrbq_z_s8(a, some), second), some);
        }
        for (; count > 0; count -= step, a += step, out += step) {
            const mve_pred16_t some = vctp8q((uint32_t)nn_min(count, step));
            vstrbq_p_s8(out, nn_mve_chosen(vldrbq_z_s8(a, some), second), some);
        }
    }
}

/* Whether the operand is one pixel that fits a pattern. */
static inline int nn_mve_fits_pattern(const nn_view *in) {
    return (in->ring_rows | in->ring_cols) == 1 && in->channels <= 16;
}

static inline void nn_mve_choose_all(const nn_view *in1, const nn_view *in2, const nn_view *out,
                                     const nn_window *window) {
    nn_mve_compute_strip *compute = nn_mve_choose_each;
    const void *plan = NULL;
    nn_mve_pattern pattern;
    if (in1->channels != out->channels ||
        (nn_mve_fits_pattern(in1) &&
         in2->channels == out->channels)) { /* the operands change places */
        const nn_view *const other = in1;
        in1 = in2;
        in2 = other;
    }
    if (nn_mve_fits_pattern(in2) && in1->channels == out->channels) {
        const int32_t channels = in2->channels;
        const uint8x16_t places = viwdupq_n_u8(0, (uint32_t)channels, 1);
        vstrbq_s8(pattern.elements, vldrbq_gather_offset_s8(in2->data, places));
        pattern.step = 16 / channels * channels;
        plan = &pattern;
        in2 = in1; /* is not read, and repeats itself as the first operand does */
        compute = nn_mve_choose_repeated;
    } else if (in2->channels != out->channels) {
        compute = nn_mve_choose_repeated;
    }
    nn_mve_for_strips(1, compute, plan, in1, in2, out, window);
}

#endif
