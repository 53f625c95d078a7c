/* Loops over the elements of a window, for kernels whose output element depends on the elements at
 * its place. Each is the body of a kernel; `expression` gives an output element. */
#ifndef NN_ELEMENTS_H
#define NN_ELEMENTS_H

#include "nn_arith.h"

/* One operand, `in`, whose element is `value`. */
#define NN_ELEMENTS(in_type, out_type, expression)                                                 \
    for (int32_t y = window->y0; y < window->y1; y++) {                                            \
        for (int32_t x = window->x0; x < window->x1; x++) {                                        \
            const in_type *values = (const in_type *)(const void *)nn_pixel(in, y, x);             \
            out_type *results = (out_type *)(void *)nn_out_pixel(out, y, x);                       \
            for (int32_t i = 0; i < out->channels; i++) {                                          \
                const int32_t value = (int32_t)values[i];                                          \
                results[i] = (out_type)(expression);                                               \
            }                                                                                      \
        }                                                                                          \
    }

/* Two operands, `in1` and `in2`, that broadcast. Their elements are `a` and `b`. */
#define NN_PAIRS(type1, type2, out_type, expression)                                               \
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1;                            \
    const int32_t channels = out->channels;                                                        \
    for (int32_t y = window->y0; y < window->y1; y++) {                                            \
        for (int32_t x = window->x0; x < window->x1; x++) {                                        \
            const type1 *first = (const type1 *)(const void *)nn_pixel(in1, y, x);                 \
            const type2 *second = (const type2 *)(const void *)nn_pixel(in2, y, x);                \
            out_type *results = (out_type *)(void *)nn_out_pixel(out, y, x);                       \
            for (int32_t i = 0; i < channels; i++, first += step1, second += step2) {              \
                const int32_t a = *first, b = *second;                                             \
                results[i] = (out_type)(expression);                                               \
            }                                                                                      \
        }                                                                                          \
    }

#endif
