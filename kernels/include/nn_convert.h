/* QUANTIZE and CAST from one integer type to another, element by element. */
#ifndef NN_CONVERT_H
#define NN_CONVERT_H

#include "nn_arith.h"

/* The body of a kernel for a type of inputs and one of outputs. A CAST keeps the low bits. */
#define NN_CONVERT(in_type, out_type)                                                              \
    const nn_convert_constants c = *(const nn_convert_constants *)constants;                       \
    for (int32_t y = window->y0; y < window->y1; y++) {                                            \
        for (int32_t x = window->x0; x < window->x1; x++) {                                        \
            const in_type *value = (const in_type *)(const void *)nn_pixel(in, y, x);              \
            out_type *result = (out_type *)(void *)nn_out_pixel(out, y, x);                        \
            for (int32_t i = 0; i < out->channels; i++) {                                          \
                result[i] = (out_type)nn_convert(&c, (int32_t)value[i]);                           \
            }                                                                                      \
        }                                                                                          \
    }

static inline int32_t nn_convert(const nn_convert_constants *c, int32_t value) {
    if (c->casts) {
        return value;
    }
    const int32_t centred = nn_wrapping_add(value, -c->input_zero_point);
    const int32_t scaled = nn_requantise(centred, c->multiplier, c->shift);
    return nn_clamp(nn_wrapping_add(scaled, c->output_zero_point), c->clamp_min, c->clamp_max);
}

#endif
