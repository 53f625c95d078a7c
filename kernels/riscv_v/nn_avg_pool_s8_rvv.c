/* AVERAGE_POOL_2D: channels side by side in vectors; what lies outside the tensor does not count.
 */
#include "nn_rvv.h"

/* Halves away from zero. */
static inline vint32m4_t divide(vint32m4_t sums, int32_t count, size_t vl) {
    const vbool8_t above = __riscv_vmsgt(sums, 0, vl);
    const vint32m4_t down = __riscv_vsub(sums, count / 2, vl);
    const vint32m4_t up = __riscv_vadd(sums, count / 2, vl);
    return __riscv_vdiv(__riscv_vmerge(down, up, above, vl), count, vl);
}

void nn_avg_pool_s8_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    const nn_pool_geometry *g = geometry;
    const nn_pool_constants *clamp = (const nn_pool_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            const int32_t count = (rows.end - rows.first) * (columns.end - columns.first);
            int8_t *pixel = nn_pixel(out, y, x);
            size_t vl;
            for (int32_t c = 0; c < in->channels; c += (int32_t)vl) {
                vl = __riscv_vsetvl_e32m4((size_t)(in->channels - c));
                vint32m4_t sums = __riscv_vmv_v_x_i32m4(0, vl);
                for (int32_t row = rows.first; row < rows.end; row++) {
                    const int8_t *line = nn_row(in, top + row) + c;
                    for (int32_t k = columns.first; k < columns.end; k++) {
                        const int8_t *at = line + nn_column(in, left + k) * in->channels;
                        sums = __riscv_vwadd_wv(sums, nn_rvv_load(at, vl), vl);
                    }
                }
                const vint32m4_t mean = divide(sums, count, vl);
                __riscv_vse8(pixel + c,
                             nn_rvv_narrow(mean, 0, clamp->clamp_min, clamp->clamp_max, vl), vl);
            }
        }
    }
}
