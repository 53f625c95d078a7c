/* MAX_POOL_2D: channels side by side in vectors; what lies outside the tensor does not count. */
#include "nn_rvv.h"

void nn_max_pool_s8_rvv(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    const nn_pool_geometry *g = geometry;
    const nn_pool_constants *clamp = (const nn_pool_constants *)constants;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * g->stride_h - g->pad_top;
        const nn_taps rows = nn_valid_taps(top, in->height, g->kernel_h, 1);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * g->stride_w - g->pad_left;
            const nn_taps columns = nn_valid_taps(left, in->width, g->kernel_w, 1);
            int8_t *pixel = nn_pixel(out, y, x);
            size_t vl;
            for (int32_t c = 0; c < in->channels; c += (int32_t)vl) {
                vl = __riscv_vsetvl_e8m4((size_t)(in->channels - c));
                vint8m4_t found = __riscv_vmv_v_x_i8m4(-128, vl);
                for (int32_t row = rows.first; row < rows.end; row++) {
                    const int8_t *line = nn_row(in, top + row) + c;
                    for (int32_t k = columns.first; k < columns.end; k++) {
                        const int8_t *at = line + nn_column(in, left + k) * in->channels;
                        found = __riscv_vmax(found, __riscv_vle8_v_i8m4(at, vl), vl);
                    }
                }
                found = __riscv_vmax(found, (int8_t)clamp->clamp_min, vl);
                found = __riscv_vmin(found, (int8_t)clamp->clamp_max, vl);
                __riscv_vse8(pixel + c, found, vl);
            }
        }
    }
}
