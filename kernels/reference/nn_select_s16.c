/* SELECT_V2 of int16. */
#include "nn_select.h"

void nn_select_s16(const nn_view *in1, const nn_view *in2, const nn_view *in3, const nn_view *out,
                   const nn_window *window) {
    NN_SELECT(int16_t)
}
