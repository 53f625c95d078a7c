/* CONV_2D of one group with few output channels: taps side by side in vectors, one sum at a time.
 *
 * Constants as nn_conv2d_s8_rvv's, but all weights of a channel, then those of the next. */
#include "nn_patch.h"
#include "nn_riscv_v.h"
#include "nn_rvv.h"

#define PIXELS 4
#define MOST 8 /* channels */
#define SHORTEST_RUN 4

static inline vint16m4_t load(const int8_t *from, size_t vl) {
    return __riscv_vsext_vf2(__riscv_vle8_v_i8m2(from, vl), vl);
}

static inline int32_t total(vint32m8_t sums, size_t vl) {
    return __riscv_vmv_x(__riscv_vredsum(sums, __riscv_vmv_s_x_i32m1(0, 1), vl));
}

/* The sums of an output channel whose weights these are, and, if `two`, of the next one, of the
 * pixel whose taps begin at `run`. */
static inline __attribute__((always_inline)) void sum_taps(int32_t sums[2], const nn_runs *runs,
                                                           const int8_t *run, const int8_t *weights,
                                                           const int two) {
    const size_t most = __riscv_vsetvlmax_e32m8();
    const int8_t *next = weights + runs->count * runs->bytes;
    vint32m8_t s0 = __riscv_vmv_v_x_i32m8(0, most), s1 = s0;
    for (int32_t i = runs->count; i > 0; i--) {
        const int8_t *x = run;
        size_t vl;
        for (int32_t left = runs->bytes; left > 0; left -= (int32_t)vl) {
            vl = __riscv_vsetvl_e16m4((size_t)left);
            const vint16m4_t values = load(x, vl);
            s0 = __riscv_vwmacc_tu(s0, values, load(weights, vl), vl);
            x += vl;
            weights += vl;
            if (two) {
                s1 = __riscv_vwmacc_tu(s1, values, load(next, vl), vl);
                next += vl;
            }
        }
        run = nn_next_run(runs, run);
    }
    sums[0] = total(s0, most);
    if (two) {
        sums[1] = total(s1, most);
    }
}

/* All output channels of a pixel. */
NN_OUTLINE void compute(const nn_rvv_block *b, const nn_runs *runs, const int8_t *run, int8_t *out,
                        int32_t channels) {
    const int32_t taps = runs->count * runs->bytes;
    const int8_t *weights = b->weights;
    int32_t sums[MOST], c = 0;
    for (; c + 2 <= channels; c += 2, weights += 2 * taps) {
        sum_taps(sums + c, runs, run, weights, 1);
    }
    if (c < channels) {
        sum_taps(sums + c, runs, run, weights, 0);
    }
    const size_t vl = __riscv_vsetvl_e32m4((size_t)channels);
    vint32m4_t all = __riscv_vle32_v_i32m4(sums, vl);
    all = __riscv_vadd(all, __riscv_vle32_v_i32m4(b->biases, vl), vl);
    nn_rvv_put_pixels(b, 0, out, 0, all, all, all, all, 1, vl);
}

#define TILE(name, pixels)                                                                         \
    static void name(const void *constants, const nn_runs *runs, int8_t *out, int32_t channels) {  \
        const nn_rvv_block b = nn_rvv_open(constants, channels, 3);                                \
        for (int32_t p = 0; p < pixels; p++) {                                                     \
            compute(&b, runs, runs->first + p * runs->step, out + p * runs->out_step, channels);   \
        }                                                                                          \
    }

TILE(tile1, 1)
TILE(tile2, 2)
TILE(tile3, 3)
TILE(tile4, 4)

void nn_few_outputs_conv2d_s8_rvv(const nn_conv_geometry *geometry, const void *constants,
                                  const nn_view *in, const nn_view *out, const nn_window *window,
                                  void *scratch) {
    static nn_tile *const tiles[PIXELS] = {tile1, tile2, tile3, tile4};
    nn_patch_walk(geometry, constants, in, out, window, (int8_t *)scratch, tiles, PIXELS,
                  SHORTEST_RUN);
}

int32_t nn_few_outputs_conv2d_s8_rvv_scratch_bytes(const nn_conv_geometry *geometry,
                                                   const nn_view *in, const nn_view *out) {
    return nn_patch_bytes(geometry, in, out, PIXELS);
}
