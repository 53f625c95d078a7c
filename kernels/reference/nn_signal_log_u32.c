/* SignalFilterBankLog: natural logarithms, by lines between 128 places of an octave. */
#include "nn_signal.h"

#include "nn_fixed.h"

#define BITS 16        /* fractional bits */
#define SEGMENT_BITS 9 /* of those, within one of 128 segments */
#define LN_2 45426U    /* with BITS */
#define HALF (1U << (BITS - 1))

static uint32_t scaled_log(const uint16_t *table, uint32_t value, uint32_t scale) {
    const int32_t whole = 31 - nn_leading_zeros(value);
    const uint32_t rest = value - (1U << whole);
    const uint32_t part = whole < BITS ? rest << (BITS - whole) : rest >> (whole - BITS);
    const uint16_t *place = table + (part >> SEGMENT_BITS);
    const int32_t within = (int32_t)(part & ((1U << SEGMENT_BITS) - 1));
    const int32_t bend = place[0] + (((place[1] - place[0]) * within) >> BITS);
    const uint32_t log2 = ((uint32_t)whole << BITS) + part + (uint32_t)bend;
    const uint32_t natural = (uint32_t)(((uint64_t)LN_2 * log2 + HALF) >> BITS);
    return (scale * natural + HALF) >> BITS;
}

void nn_signal_log_u32(const nn_signal_log_geometry *geometry, const void *constants,
                       const int8_t *in, int8_t *out) {
    const uint32_t *values = (const uint32_t *)(const void *)in;
    int16_t *logs = (int16_t *)(void *)out;
    for (int32_t i = 0; i < geometry->channels; i++) {
        const uint32_t value = values[i] << geometry->bits;
        const uint32_t log = value > 1 ? scaled_log(constants, value, geometry->scale) : 0;
        logs[i] = (int16_t)(log < INT16_MAX ? log : INT16_MAX);
    }
}
