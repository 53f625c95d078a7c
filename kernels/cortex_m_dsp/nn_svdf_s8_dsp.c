/* SVDF: four features of a step at a time, then what each of them kept of the last steps. */
#include "nn_dsp_rows.h"

#include "nn_svdf.h"

void nn_svdf_s8_dsp(const nn_svdf_geometry *geometry, const void *constants, const int8_t *in,
                    void *state, int8_t *out, void *scratch) {
    nn_svdf_run(geometry, constants, in, (int16_t *)state, out, scratch);
}
