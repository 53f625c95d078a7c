/* QUANTIZE and CAST from one integer type to another, element by element. */
#ifndef NN_CONVERT_H
#define NN_CONVERT_H

#include "nn_elements.h"

/* The body of a kernel for a type of inputs and one of outputs. A CAST keeps the low bits. */
#define NN_CONVERT(in_type, out_type)                                                              \
    const nn_convert_constants c = *(const nn_convert_constants *)constants;                       \
    NN_ELEMENTS(in_type, out_type, nn_convert(&c, value))

static inline int32_t nn_convert(const nn_convert_constants *c, int32_t value) {
    if (c->casts) {
        return value;
    }
    const int32_t centred = nn_wrapping_add(value, -c->input_zero_point);
    const int32_t scaled = nn_requantise(centred, c->multiplier, c->shift);
    return nn_clamp(nn_wrapping_add(scaled, c->output_zero_point), c->clamp_min, c->clamp_max);
}

#endif
