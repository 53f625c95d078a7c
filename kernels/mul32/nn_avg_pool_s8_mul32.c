/* AVERAGE_POOL_2D: what lies outside the tensor does not count. Areas of up to 360 elements are
 * divided by multiplication. */
#include "nn_mul32.h"
#include "nn_mul32_reduce.h"

/* (|sum| + n / 2) * (floor(2^24 / n) + 1) stays below 2^32, and 2^24 above n times what is divided,
 * so that its bits from 24 on are the quotient. */
#define DIVIDED_BITS 24
#define MOST_ELEMENTS 360

typedef struct {
    uint32_t elements, half, reciprocal;
    int32_t low, high;
} divisor;

static inline int8_t average(uint32_t natural, const divisor *d) {
    const int32_t sum = (int32_t)(natural - 128 * d->elements);
    const uint32_t size = (sum < 0 ? 0U - (uint32_t)sum : (uint32_t)sum) + d->half;
    const int32_t quotient = d->reciprocal != 0 ? (int32_t)(size * d->reciprocal >> DIVIDED_BITS)
                                                : (int32_t)(size / d->elements);
    return (int8_t)nn_clamp(sum < 0 ? -quotient : quotient, d->low, d->high);
}

/* Four channels from c on of an area whose words lie as in the tensor. */
static inline void plain_block(const nn_mul32_area *a, const divisor *d, int8_t *out, int32_t c) {
    const int8_t *row = a->first + a->column + c;
    uint32_t even = 0, odd = 0;
    for (int32_t rows = a->rows; rows > 0; rows--, row += a->row_step) {
        const int8_t *from = row;
        for (int32_t left = a->run; left > 0; left--, from += a->step) {
            const uint32_t word = *(const uint32_t *)(const void *)from ^ NN_MUL32_BYTES;
            even += word & NN_MUL32_PAIRS;
            odd += word >> 8 & NN_MUL32_PAIRS;
        }
    }
    out[c] = average(even & 0xFFFF, d);
    out[c + 1] = average(odd & 0xFFFF, d);
    out[c + 2] = average(even >> 16, d);
    out[c + 3] = average(odd >> 16, d);
}

/* `wide` channels of any area from c on: 4 or 1. */
NN_OUTLINE void block(const nn_mul32_area *a, const divisor *d, int8_t *out, int32_t c,
                      int32_t wide) {
    const int8_t *row = a->first + c;
    uint32_t sums[NN_MUL32_FOUR] = {0, 0, 0, 0};
    for (int32_t rows = a->rows; rows > 0; rows--) {
        nn_mul32_take(sums, row + a->column, a->step, a->run, wide);
        nn_mul32_take(sums, row, a->step, a->rest, wide);
        row = nn_mul32_next_row(a, row);
    }
    for (int32_t i = 0; i < wide; i++) {
        out[c + i] = average(sums[i], d);
    }
}

static void compute(const nn_area *area, const nn_pool_constants *constants, int8_t *out) {
    static const uint32_t range = 1U << DIVIDED_BITS;
    const int32_t channels = area->in->channels;
    const uint32_t elements = (uint32_t)(area->rows * area->columns);
    const divisor d = {elements, elements / 2, elements > MOST_ELEMENTS ? 0 : range / elements + 1,
                       constants->clamp_min, constants->clamp_max};
    const nn_mul32_area a = nn_mul32_locate(area);
    int32_t c = 0;
    for (; c + NN_MUL32_FOUR <= channels; c += NN_MUL32_FOUR) {
        if (a.is_plain) {
            plain_block(&a, &d, out, c);
        } else {
            block(&a, &d, out, c, NN_MUL32_FOUR);
        }
    }
    for (; c < channels; c++) {
        block(&a, &d, out, c, 1);
    }
}

void nn_avg_pool_s8_mul32(const nn_pool_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window) {
    nn_for_areas(compute, geometry, constants, in, out, window);
}
