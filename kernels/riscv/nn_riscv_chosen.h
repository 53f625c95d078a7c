/* MAXIMUM and MINIMUM of operands with the output's channels; the plain kernel does the rest.
 *
 * A kernel that includes this says which of two elements is put out:
 *     static inline int32_t nn_riscv_chosen(int32_t a, int32_t b);
 */
#ifndef NN_RISCV_CHOSEN_H
#define NN_RISCV_CHOSEN_H

#include "nn_conv.h"
#include "nn_pixelwise.h"

static inline int32_t nn_riscv_chosen(int32_t a, int32_t b);

NN_OUTLINE void nn_riscv_choose(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                                int32_t count) {
    (void)plan;
    for (; count >= 4; count -= 4, a += 4, b += 4, out += 4) {
        const int32_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
        const int32_t b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
        out[0] = (int8_t)nn_riscv_chosen(a0, b0);
        out[1] = (int8_t)nn_riscv_chosen(a1, b1);
        out[2] = (int8_t)nn_riscv_chosen(a2, b2);
        out[3] = (int8_t)nn_riscv_chosen(a3, b3);
    }
    for (; count > 0; count--) {
        *out++ = (int8_t)nn_riscv_chosen(*a++, *b++);
    }
}

typedef void nn_riscv_plain_pair(const nn_view *in1, const nn_view *in2, const nn_view *out,
                                 const nn_window *window);

static inline void nn_riscv_choose_all(const nn_view *in1, const nn_view *in2, const nn_view *out,
                                       const nn_window *window, nn_riscv_plain_pair *plain) {
    if (in1->channels != out->channels || in2->channels != out->channels) {
        plain(in1, in2, out, window);
        return;
    }
    nn_for_blocks(1, nn_riscv_choose, NULL, in1, in2, out, window);
}

#endif
