/* CONV_2D of one group: output channels side by side in vectors, four pixels at a time. */
#include "nn_patch.h"
#include "nn_riscv_v.h"
#include "nn_rvv.h"

#define PIXELS 4
#define SHORTEST_RUN 4

/* Channels [c, c + vl) of `pixels`. */
static inline __attribute__((always_inline)) void compute(const nn_rvv_block *b,
                                                          const nn_runs *runs, int32_t pixels,
                                                          int8_t *out, int32_t channels, int32_t c,
                                                          size_t vl) {
    const int8_t *weights = b->weights + c, *run = runs->first;
    const int32_t step = runs->out_step;
    vint32m4_t s0 = __riscv_vle32_v_i32m4(b->biases + c, vl), s1 = s0, s2 = s0, s3 = s0;
    for (int32_t i = runs->count; i > 0; i--) {
        const int8_t *x0 = run, *x1 = x0 + (pixels > 1 ? runs->step : 0);
        const int8_t *x2 = x1 + (pixels > 2 ? runs->step : 0);
        const int8_t *x3 = x2 + (pixels > 3 ? runs->step : 0), *end = run + runs->bytes;
#pragma GCC unroll 2
        while (x0 != end) {
            const vint16m2_t w = nn_rvv_load(weights, vl);
            weights += channels;
            s0 = __riscv_vwmacc(s0, (int16_t)*x0++, w, vl);
            if (pixels > 1) {
                s1 = __riscv_vwmacc(s1, (int16_t)*x1++, w, vl);
            }
            if (pixels > 2) {
                s2 = __riscv_vwmacc(s2, (int16_t)*x2++, w, vl);
            }
            if (pixels > 3) {
                s3 = __riscv_vwmacc(s3, (int16_t)*x3++, w, vl);
            }
        }
        run = nn_next_run(runs, run);
    }
    nn_rvv_put_pixels(b, c, out + c, step, s0, s1, s2, s3, pixels, vl);
}

/* `pixels` of all output channels. */
#define TILE(name, pixels)                                                                         \
    NN_OUTLINE void name(const void *constants, const nn_runs *runs, int8_t *out,                  \
                         int32_t channels) {                                                       \
        const nn_rvv_block b = nn_rvv_open(constants, channels, 3);                                \
        size_t vl;                                                                                 \
        for (int32_t c = 0; c < channels; c += (int32_t)vl) {                                      \
            vl = __riscv_vsetvl_e32m4((size_t)(channels - c));                                     \
            compute(&b, runs, pixels, out, channels, c, vl);                                       \
        }                                                                                          \
    }

TILE(tile4, 4)
TILE(tile3, 3)
TILE(tile2, 2)
TILE(tile1, 1)

void nn_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                      const nn_view *out, const nn_window *window, void *scratch) {
    static nn_tile *const tiles[PIXELS] = {tile1, tile2, tile3, tile4};
    nn_patch_walk(geometry, constants, in, out, window, (int8_t *)scratch, tiles, PIXELS,
                  SHORTEST_RUN);
}

int32_t nn_conv2d_s8_rvv_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                       const nn_view *out) {
    return nn_patch_bytes(geometry, in, out, PIXELS);
}
