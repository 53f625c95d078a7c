/* ADD and SUB on int16, with broadcasting, vectors. Constants as nn_add_s16's. */
#include "nn_riscv_v.h"
#include "nn_rvv_pairs.h"

NN_OUTLINE void add(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                    int32_t count) {
    const nn_rvv_pair *const pair = (const nn_rvv_pair *)plan;
    const nn_add_constants c = *(const nn_add_constants *)pair->constants;
    size_t vl;
    for (; count > 0; count -= (int32_t)vl, out += 2 * vl) {
        vl = __riscv_vsetvl_e32m8((size_t)count);
        const vint16m4_t x = nn_rvv_elements(&a, 1, pair->one1, vl);
        const vint16m4_t y = nn_rvv_elements(&b, 1, pair->one2, vl);
        const vint32m8_t result = nn_rvv_add(&c, x, y, vl);
        nn_rvv_wide_put((int16_t *)(void *)out, result, c.clamp_min, c.clamp_max, vl);
    }
}

void nn_add_s16_rvv(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window) {
    nn_rvv_for_pairs(2, add, constants, in1, in2, out, window);
}
