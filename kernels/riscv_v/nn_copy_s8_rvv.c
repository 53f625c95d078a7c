/* Copies a box of elements from one layout to another, vectors: lines of neighbours; the plain
 * kernel does the rest. */
#include "nn_lines.h"
#include "nn_riscv_v.h"

#include <riscv_vector.h>

void nn_copy_s8_rvv(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out) {
    nn_lines l;
    if (!nn_lines_open(&l, geometry, in, out)) {
        nn_copy_s8(geometry, in, out);
        return;
    }
    const size_t all = __riscv_vsetvl_e8m8((size_t)l.count);
    for (; l.lines > 0; l.lines--, l.in += l.in_stride, l.out += l.out_stride) {
        size_t vl;
        if (all == (size_t)l.count) {
            __riscv_vse8(l.out, __riscv_vle8_v_i8m8(l.in, all), all);
            continue;
        }
        for (int32_t done = 0; done < l.count; done += (int32_t)vl) {
            vl = __riscv_vsetvl_e8m8((size_t)(l.count - done));
            __riscv_vse8(l.out + done, __riscv_vle8_v_i8m8(l.in + done, vl), vl);
        }
    }
}
