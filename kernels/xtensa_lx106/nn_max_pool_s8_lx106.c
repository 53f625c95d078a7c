/* MAX_POOL_2D: four channels at a time, compared in the highest byte of a word each. */
#include "nn_lx106_reduce.h"
#include "nn_xtensa.h"

#define LEAST ((int32_t)0x80000000)

/* Keeps the greatest of `count` elements, `step` bytes apart, of `wide` channels side by side. */
static inline __attribute__((always_inline)) void take(int32_t greatest[NN_LX106_FOUR],
                                                       const int8_t *from, int32_t step,
                                                       int32_t count, const int32_t wide) {
    int32_t kept[NN_LX106_FOUR];
#pragma GCC unroll 4
    for (int32_t i = 0; i < wide; i++) {
        kept[i] = greatest[i];
    }
    for (; count > 0; count--, from += step) {
#pragma GCC unroll 4
        for (int32_t i = 0; i < wide; i++) {
            const int32_t value = (int32_t)((uint32_t)*(const uint8_t *)(from + i) << 24);
            if (value > kept[i]) {
                kept[i] = value;
            }
        }
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < wide; i++) {
        greatest[i] = kept[i];
    }
}

/* `wide` channels of an area from c on. */
static inline __attribute__((always_inline)) void block(const nn_lx106_area *a,
                                                        const nn_pool_constants *constants,
                                                        int8_t *out, int32_t c,
                                                        const int32_t wide) {
    const int32_t low = constants->clamp_min, high = constants->clamp_max;
    const int8_t *row = a->first + c;
    int32_t greatest[NN_LX106_FOUR] = {LEAST, LEAST, LEAST, LEAST};
    for (int32_t rows = a->rows; rows > 0; rows--) {
        take(greatest, row + a->column, a->step, a->run, wide);
        if (a->rest > 0) { /* the column window wraps around */
            take(greatest, row, a->step, a->rest, wide);
        }
        row = nn_lx106_next_row(a, row);
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < wide; i++) {
        out[c + i] = (int8_t)nn_clamp(greatest[i] >> 24, low, high);
    }
}

static void compute(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    const int32_t channels = area->in->channels;
    const nn_lx106_area a = nn_lx106_locate(area);
    int32_t c = 0;
    for (; c + NN_LX106_FOUR <= channels; c += NN_LX106_FOUR) {
        block(&a, constants, out, c, NN_LX106_FOUR);
    }
    for (; c < channels; c++) {
        block(&a, constants, out, c, 1);
    }
}

void nn_max_pool_s8_lx106(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_areas(compute, geometry, constants, in, out, window);
}
