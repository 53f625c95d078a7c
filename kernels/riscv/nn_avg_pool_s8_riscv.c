/* AVERAGE_POOL_2D: what lies outside the tensor does not count. */
#include "nn_riscv.h"
#include "nn_riscv_reduce.h"

#define BYTES 1 /* of an element */

static inline __attribute__((always_inline)) void block(const nn_area *area,
                                                        const nn_pool_constants *constants,
                                                        int8_t *out, int32_t c, int32_t wide) {
    const int32_t low = constants->clamp_min, high = constants->clamp_max;
    const int32_t elements = area->rows * area->columns;
    int32_t sums[NN_RISCV_WIDE];
    nn_riscv_take_area(sums, area, c, wide, 0, BYTES);
    for (int32_t i = 0; i < wide; i++) {
        nn_riscv_put(out, c + i, nn_clamp(nn_divide(sums[i], elements), low, high), BYTES);
    }
}

static void compute(const nn_area *area, int32_t channels, const nn_pool_constants *constants,
                    int8_t *out) {
    nn_riscv_for_blocks(block, area, channels, constants, out);
}

void nn_avg_pool_s8_riscv(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_joined_areas(compute, BYTES, geometry, constants, in, out, window);
}
