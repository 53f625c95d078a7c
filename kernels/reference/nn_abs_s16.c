/* ABS of int16. */
#include "nn_elements.h"

void nn_abs_s16(const void *constants, const nn_view *in, const nn_view *out,
                const nn_window *window) {
    const nn_leaky_constants c = *(const nn_leaky_constants *)constants;
    NN_ELEMENTS(
        int16_t, int16_t,
        nn_min(nn_requantise(value < 0 ? -value : value, c.positive_multiplier, c.positive_shift),
               c.clamp_max))
}
