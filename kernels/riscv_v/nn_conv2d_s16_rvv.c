/* CONV_2D of one group on int16: output channels side by side in vectors, four pixels at a time. */
#include "nn_patch.h"
#include "nn_riscv_v.h"
#include "nn_rvv_wide.h"

#define PIXELS 4
#define SHORTEST_RUN 8 /* bytes */

static inline const int16_t *elements(const int8_t *bytes) {
    return (const int16_t *)(const void *)bytes;
}

/* Channels [c, c + vl) of `pixels`, whose sums fit an int32. */
static inline __attribute__((always_inline)) void compute(const nn_rvv_block *b,
                                                          const nn_runs *runs, int32_t pixels,
                                                          int8_t *out, int32_t channels, int32_t c,
                                                          size_t vl) {
    const int8_t *weights = b->weights + c, *run = runs->first;
    vint32m4_t s0 = nn_rvv_wide_begin(b, c, vl), s1 = s0, s2 = s0, s3 = s0;
    for (int32_t i = runs->count; i > 0; i--) {
        const int8_t *const second = run + (pixels > 1 ? runs->step : 0);
        const int8_t *const third = second + (pixels > 2 ? runs->step : 0);
        const int16_t *x0 = elements(run), *x1 = elements(second), *x2 = elements(third);
        const int16_t *x3 = elements(third + (pixels > 3 ? runs->step : 0));
        const int16_t *const end = elements(run + runs->bytes);
#pragma GCC unroll 2
        while (x0 != end) {
            const vint16m2_t w = nn_rvv_load(weights, vl);
            weights += channels;
            s0 = __riscv_vwmacc(s0, *x0++, w, vl);
            if (pixels > 1) {
                s1 = __riscv_vwmacc(s1, *x1++, w, vl);
            }
            if (pixels > 2) {
                s2 = __riscv_vwmacc(s2, *x2++, w, vl);
            }
            if (pixels > 3) {
                s3 = __riscv_vwmacc(s3, *x3++, w, vl);
            }
        }
        run = nn_next_run(runs, run);
    }
    nn_rvv_wide_put_pixels(b, c, out, runs->out_step, s0, s1, s2, s3, pixels, vl);
}

/* Channels [c, c + vl) of the pixel whose taps begin at `run`, with sums of 64 bits: as many
 * products as fit are added up in 32. */
NN_OUTLINE void compute_long(const nn_rvv_block *b, const nn_runs *runs, const int8_t *run,
                             int8_t *out, int32_t channels, int32_t c, size_t vl) {
    const int8_t *weights = b->weights + c;
    vint32m4_t low = __riscv_vmv_v_x_i32m4(0, vl), high = low;
    for (int32_t i = runs->count; i > 0; i--) {
        const int16_t *x = elements(run), *const end = elements(run + runs->bytes);
        while (x != end) {
            vint32m4_t part = __riscv_vmv_v_x_i32m4(0, vl);
            for (int32_t left = NN_RVV_WIDE_MOST; left > 0 && x != end; left--) {
                part = __riscv_vwmacc(part, *x++, nn_rvv_load(weights, vl), vl);
                weights += channels;
            }
            nn_rvv_wide_add(&low, &high, part, vl);
        }
        run = nn_next_run(runs, run);
    }
    nn_rvv_wide_put_long(b, c, (int16_t *)(void *)out + c, low, high, vl);
}

static inline __attribute__((always_inline)) void compute_tile(const void *constants,
                                                               const nn_runs *runs, int32_t pixels,
                                                               int8_t *out, int32_t channels) {
    const nn_rvv_block b = nn_rvv_open(constants, channels, NN_RVV_WIDE_WORDS);
    size_t vl;
    for (int32_t c = 0; c < channels; c += (int32_t)vl) {
        vl = __riscv_vsetvl_e32m4((size_t)(channels - c));
        if (b.head->mode == 32) {
            compute(&b, runs, pixels, out, channels, c, vl);
            continue;
        }
        for (int32_t p = 0; p < pixels; p++) {
            compute_long(&b, runs, runs->first + p * runs->step, out + p * runs->out_step, channels,
                         c, vl);
        }
    }
}

#define TILE(name, pixels)                                                                         \
    NN_OUTLINE void name(const void *constants, const nn_runs *runs, int8_t *out,                  \
                         int32_t channels) {                                                       \
        compute_tile(constants, runs, pixels, out, channels);                                      \
    }

TILE(tile4, 4)
TILE(tile3, 3)
TILE(tile2, 2)
TILE(tile1, 1)

/* The tensor with bytes for channels, as tiles are walked. */
static inline nn_view bytes_of(const nn_view *in) {
    nn_view bytes = *in;
    bytes.channels = 2 * in->channels;
    return bytes;
}

void nn_conv2d_s16_rvv(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                       const nn_view *out, const nn_window *window, void *scratch) {
    static nn_tile *const tiles[PIXELS] = {tile1, tile2, tile3, tile4};
    const nn_view bytes = bytes_of(in);
    nn_patch_walk(geometry, constants, &bytes, out, window, (int8_t *)scratch, tiles, PIXELS,
                  SHORTEST_RUN);
}

int32_t nn_conv2d_s16_rvv_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                        const nn_view *out) {
    const nn_view bytes = bytes_of(in);
    return nn_patch_bytes(geometry, &bytes, out, PIXELS);
}
