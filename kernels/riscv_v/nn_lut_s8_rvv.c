/* Any function of one byte: a vector of bytes gathers its results from the table. */
#include "nn_riscv_v.h"
#include "nn_rvv.h"

void nn_lut_s8_rvv(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window) {
    const uint8_t *table = (const uint8_t *)constants;
    const int dense = nn_one_column(window) || (nn_dense(in) && nn_dense(out));
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0, run; x < window->x1; x += run) {
            const uint8_t *from = (const uint8_t *)nn_pixel(in, y, x);
            uint8_t *to = (uint8_t *)nn_out_pixel(out, y, x);
            size_t vl;
            run = nn_run(in, x, nn_run(out, x, dense ? window->x1 - x : 1));
            for (int32_t left = run * out->channels; left > 0; left -= (int32_t)vl) {
                vl = __riscv_vsetvl_e8m8((size_t)left);
                const vuint8m8_t index = __riscv_vle8_v_u8m8(from, vl);
                __riscv_vse8(to, __riscv_vluxei8(table, index, vl), vl);
                from += vl;
                to += vl;
            }
        }
    }
}
