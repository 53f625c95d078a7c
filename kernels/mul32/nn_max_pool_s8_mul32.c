/* MAX_POOL_2D: four channels at a time, compared in the highest byte of a word each where the core
 * loads no signed bytes at an offset. */
#include "nn_mul32.h"
#include "nn_mul32_reduce.h"

#if defined(__thumb2__)
#define UP 0 /* bits by which a value is shifted to be compared */
#else
#define UP 24
#endif
#define LEAST ((int32_t)(0x80U << 24) >> (24 - UP))

/* Keeps the greatest of `count` elements, `step` bytes apart, of `wide` channels side by side. */
static inline __attribute__((always_inline)) void take(int32_t greatest[NN_MUL32_FOUR],
                                                       const int8_t *from, int32_t step,
                                                       int32_t count, const int32_t wide) {
    int32_t kept[NN_MUL32_FOUR];
#pragma GCC unroll 4
    for (int32_t i = 0; i < wide; i++) {
        kept[i] = greatest[i];
    }
#pragma GCC unroll 1 /* most areas are small */
    for (; count > 0; count--, from += step) {
#pragma GCC unroll 4
        for (int32_t i = 0; i < wide; i++) {
            const int32_t value =
                UP == 0 ? from[i] : (int32_t)((uint32_t)*(const uint8_t *)(from + i) << 24);
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
static inline __attribute__((always_inline)) void block(const nn_mul32_area *a,
                                                        const nn_pool_constants *constants,
                                                        int8_t *out, int32_t c,
                                                        const int32_t wide) {
    const int32_t low = constants->clamp_min, high = constants->clamp_max;
    const int8_t *row = a->first + c;
    int32_t greatest[NN_MUL32_FOUR] = {LEAST, LEAST, LEAST, LEAST};
    for (int32_t rows = a->rows; rows > 0; rows--) {
        take(greatest, row + a->column, a->step, a->run, wide);
        if (a->rest > 0) { /* the column window wraps around */
            take(greatest, row, a->step, a->rest, wide);
        }
        row = nn_mul32_next_row(a, row);
    }
#pragma GCC unroll 4
    for (int32_t i = 0; i < wide; i++) {
        out[c + i] = (int8_t)nn_clamp(greatest[i] >> UP, low, high);
    }
}

/* All channels of a square of four pixels: `next` is the second row. */
NN_OUTLINE void square(const int8_t *row, const int8_t *next, int32_t step,
                       const nn_pool_constants *constants, int8_t *out, int32_t channels) {
    const int32_t low = constants->clamp_min, high = constants->clamp_max;
    const int8_t *row1 = row + step, *next1 = next + step;
#pragma GCC unroll 1
    for (int32_t c = 0; c < channels; c++) {
        int32_t greatest = nn_max(row[c], row1[c]);
        greatest = nn_max(greatest, next[c]);
        greatest = nn_max(greatest, next1[c]);
        out[c] = (int8_t)nn_clamp(greatest, low, high);
    }
}

static void compute(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    const int32_t channels = area->in->channels;
    const nn_mul32_area a = nn_mul32_locate(area);
    int32_t c = 0;
    if (a.rows == 2 && a.run == 2 && a.rest == 0) {
        square(a.first + a.column, nn_mul32_next_row(&a, a.first) + a.column, a.step, constants,
               out, channels);
        return;
    }
    for (; c + NN_MUL32_FOUR <= channels; c += NN_MUL32_FOUR) {
        block(&a, constants, out, c, NN_MUL32_FOUR);
    }
    for (; c < channels; c++) {
        block(&a, constants, out, c, 1);
    }
}

void nn_max_pool_s8_mul32(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_areas(compute, geometry, constants, in, out, window);
}
