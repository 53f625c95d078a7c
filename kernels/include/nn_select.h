/* SELECT_V2, with broadcasting: the element of the second operand where the byte of the first is
 * true, else of the third. */
#ifndef NN_SELECT_H
#define NN_SELECT_H

#include "nn_arith.h"

/* The body of a kernel for elements of one type. */
#define NN_SELECT(type)                                                                            \
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1, step3 = in3->channels > 1; \
    const int32_t channels = out->channels;                                                        \
    for (int32_t y = window->y0; y < window->y1; y++) {                                            \
        for (int32_t x = window->x0; x < window->x1; x++) {                                        \
            const int8_t *condition = nn_pixel(in1, y, x);                                         \
            const type *a = (const type *)(const void *)nn_pixel(in2, y, x);                       \
            const type *b = (const type *)(const void *)nn_pixel(in3, y, x);                       \
            type *result = (type *)(void *)nn_out_pixel(out, y, x);                                \
            for (int32_t i = 0; i < channels; i++) {                                               \
                result[i] = *condition ? *a : *b;                                                  \
                condition += step1;                                                                \
                a += step2;                                                                        \
                b += step3;                                                                        \
            }                                                                                      \
        }                                                                                          \
    }

#endif
