/* A function of int16 by a table of its values at 513 places, interpolated: EXP, LOG, GELU, RSQRT.
 */
#include "nn_elements.h"
#include "nn_wide.h"

void nn_lut_s16(const void *constants, const nn_view *in, const nn_view *out,
                const nn_window *window) {
    const int16_t *table = ((const nn_wide_lut_constants *)constants)->table;
    NN_ELEMENTS(int16_t, int16_t, nn_wide_interpolate(table, value))
}
