/* Fills a tensor with one value, vectors. */
#include "nn_riscv_v.h"

#include <riscv_vector.h>

void nn_fill_s8_rvv(const void *constants, int8_t *out, int32_t bytes) {
    const int8_t value = (int8_t)((const nn_pad_constants *)constants)->value;
    const vint8m8_t values = __riscv_vmv_v_x_i8m8(value, __riscv_vsetvlmax_e8m8());
    size_t vl;
    for (; bytes > 0; bytes -= (int32_t)vl, out += vl) {
        vl = __riscv_vsetvl_e8m8((size_t)bytes);
        __riscv_vse8(out, values, vl);
    }
}
