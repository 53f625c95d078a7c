/* MAXIMUM and MINIMUM: bytes side by side in vectors.
 *
 * A kernel that includes this says which of two elements is put out:
 *     static inline vint8m8_t nn_rvv_chosen(vint8m8_t a, vint8m8_t b, size_t vl);
 */
#ifndef NN_RVV_CHOSEN_H
#define NN_RVV_CHOSEN_H

#include <riscv_vector.h>

#include "nn_conv.h"
#include "nn_pixelwise.h"

static inline vint8m8_t nn_rvv_chosen(vint8m8_t a, vint8m8_t b, size_t vl);

/* `plan`: where it is not NULL, b is one element. */
NN_OUTLINE void nn_rvv_choose(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                              int32_t count) {
    size_t vl;
    for (; count > 0; count -= (int32_t)vl, a += vl, out += vl) {
        vl = __riscv_vsetvl_e8m8((size_t)count);
        const vint8m8_t second =
            plan != NULL ? __riscv_vmv_v_x_i8m8(*b, vl) : __riscv_vle8_v_i8m8(b, vl);
        b += plan != NULL ? 0 : vl;
        __riscv_vse8(out, nn_rvv_chosen(__riscv_vle8_v_i8m8(a, vl), second, vl), vl);
    }
}

static inline void nn_rvv_choose_all(const nn_view *in1, const nn_view *in2, const nn_view *out,
                                     const nn_window *window) {
    const int turned = in1->channels != out->channels; /* the operands change places */
    const nn_view *const first = turned ? in2 : in1, *const second = turned ? in1 : in2;
    nn_for_blocks(1, nn_rvv_choose, second->channels != out->channels ? second : NULL, first,
                  second, out, window);
}

#endif
