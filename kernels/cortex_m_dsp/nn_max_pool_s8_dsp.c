/* MAX_POOL_2D, four channels at a time; the plain kernel serves fewer. */
#include "nn_dsp_pool.h"

static inline void take(void *state, const int8_t *from, int32_t step, int32_t count) {
    uint32_t largest = *(uint32_t *)state;
    for (; count > 0; count--, from += step) {
        largest = nn_max8(nn_load4(from), largest);
    }
    *(uint32_t *)state = largest;
}

static void compute(const nn_dsp_area *area, int32_t c, int8_t *out) {
    uint32_t largest = nn_times4(-128);
    nn_dsp_walk(area, c, take, &largest);
    nn_store4(out, largest);
}

void nn_max_pool_s8_dsp(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window) {
    if (in->channels < NN_DSP_BLOCK) {
        nn_max_pool_s8(geometry, constants, in, out, window);
    } else {
        nn_dsp_pool(compute, geometry, (const nn_pool_constants *)constants, in, out, window);
    }
}
