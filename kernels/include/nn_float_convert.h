/* QUANTIZE, DEQUANTIZE and CAST from float32 and to it, element by element. */
#ifndef NN_FLOAT_CONVERT_H
#define NN_FLOAT_CONVERT_H

#include "nn_float.h"

/* An element in steps of the scale, to the nearest whole number, halves away from zero. NaN counts
 * as 0. */
static inline int32_t nn_float_quantise(const nn_float_scale *c, float value, int32_t low,
                                        int32_t high) {
    float steps = value / c->scale, rest;
    int32_t whole;
    if (steps != steps) {
        return c->zero_point;
    }
    steps = nn_float_clamp(steps, -131072.0F, 131072.0F); /* beyond both types */
    whole = (int32_t)steps;
    rest = steps - (float)whole;
    whole += (rest >= 0.5F) - (rest <= -0.5F);
    return nn_clamp(whole + c->zero_point, low, high);
}

/* The next whole number towards 0 between two ends; NaN counts as infinite. */
static inline int32_t nn_float_cut(float value, int32_t low, int32_t high) {
    if (!(value < (float)high)) {
        return high;
    }
    return value < (float)low ? low : (int32_t)value;
}

/* The body of a kernel to integers of a type; `expression` gives one for value[i]. */
#define NN_OF_FLOATS(type, expression)                                                             \
    for (int32_t y = window->y0; y < window->y1; y++) {                                            \
        for (int32_t x = window->x0; x < window->x1; x++) {                                        \
            const float *value = nn_float_in(in, y, x);                                            \
            type *result = (type *)(void *)nn_out_pixel(out, y, x);                                \
            for (int32_t i = 0; i < out->channels; i++) {                                          \
                result[i] = (type)(expression);                                                    \
                NN_ONE_BY_ONE();                                                                   \
            }                                                                                      \
        }                                                                                          \
    }

/* The body of a kernel of QUANTIZE. */
#define NN_FROM_FLOATS(type, low, high)                                                            \
    const nn_float_scale c = *(const nn_float_scale *)constants;                                   \
    NN_OF_FLOATS(type, nn_float_quantise(&c, value[i], low, high))

/* The body of a kernel from integers of a type. */
#define NN_TO_FLOATS(type)                                                                         \
    const nn_float_scale c = *(const nn_float_scale *)constants;                                   \
    for (int32_t y = window->y0; y < window->y1; y++) {                                            \
        for (int32_t x = window->x0; x < window->x1; x++) {                                        \
            const type *value = (const type *)(const void *)nn_pixel(in, y, x);                    \
            float *result = nn_float_out(out, y, x);                                               \
            for (int32_t i = 0; i < out->channels; i++) {                                          \
                result[i] = (float)(value[i] - c.zero_point) * c.scale;                            \
                NN_ONE_BY_ONE();                                                                   \
            }                                                                                      \
        }                                                                                          \
    }

#endif
