/* LOGISTIC on int16. */
#include "nn_elements.h"
#include "nn_sigmoid.h"

void nn_logistic_s16(const void *constants, const nn_view *in, const nn_view *out,
                     const nn_window *window) {
    const nn_sigmoid_constants *c = (const nn_sigmoid_constants *)constants;
    NN_ELEMENTS(int16_t, int16_t, nn_sigmoid(c->table, nn_sigmoid_place(c, value)))
}
