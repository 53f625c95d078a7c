/* Operators that make features of sound, and what they are told.
 *
 * They compute whole tensors. Where the results differ between libraries, they are those of
 * TensorFlow Lite Micro's signal library. `state` is the operator's own memory, which lives from
 * call to call, is 0 at first, and which a call brings up to date where it lies. Sums and products
 * wrap around.
 */
#ifndef NN_SIGNAL_H
#define NN_SIGNAL_H

#include "nn.h"

typedef struct {
    int32_t frames, samples; /* of a frame */
    int32_t shift;           /* of the products, to the right */
} nn_signal_window_geometry;

/* constants: an int16 for each sample of a frame. */
void nn_signal_window_s16(const nn_signal_window_geometry *geometry, const void *constants,
                          const int8_t *in, int8_t *out);

/* The number of elements, of operators that are told nothing else. */
typedef struct {
    int32_t count;
} nn_signal_count_geometry;

/* Outputs: the samples, shifted to the left, and by how many bits, an int32. */
void nn_signal_auto_scale_s16(const nn_signal_count_geometry *geometry, const int8_t *in,
                              int8_t *const *outputs);

#define NN_MAX_RADICES 16

typedef struct {
    int32_t frames;
    int32_t samples; /* of a frame of the input; zeros follow it up to `points` */
    int32_t points;  /* of the transform: real samples */
    int32_t stages;
    int32_t radices[NN_MAX_RADICES]; /* 4, 2, 3 or 5 each, the first stage the last to run */
} nn_fft_geometry;

/* From samples to pairs (real, imaginary) of the frequencies 0 to points / 2, and back. constants:
 * points / 2 pairs of the stages, then points / 4 pairs, rounded down, which separate even from odd
 * samples; all in the type of the samples. scratch of the inverse: `points` elements. */
void nn_signal_rfft_s16(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                        int8_t *out);
void nn_signal_rfft_s32(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                        int8_t *out);
void nn_signal_rfft_f32(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                        int8_t *out);
void nn_signal_irfft_s16(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                         int8_t *out, void *scratch);
void nn_signal_irfft_s32(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                         int8_t *out, void *scratch);
void nn_signal_irfft_f32(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                         int8_t *out, void *scratch);

typedef struct {
    int32_t bins;       /* of the spectrum */
    int32_t first, end; /* bins that count; the others become 0 */
} nn_signal_energy_geometry;

void nn_signal_energy_s16(const nn_signal_energy_geometry *geometry, const int8_t *in, int8_t *out);

/* `channels` of the output. */
typedef struct {
    int32_t channels, weights;
} nn_signal_bank_geometry;

/* constants: int16 tables: for channels + 1 entries the first bin, the first weight and the number
 * of bins; then the weights of rising sides, and those of falling sides. */
void nn_signal_filter_bank_u32(const nn_signal_bank_geometry *geometry, const void *constants,
                               const int8_t *in, int8_t *out);

/* in1: uint64; in2: an int32, by which the roots are shifted to the right. */
void nn_signal_square_root_u64(const nn_signal_count_geometry *geometry, const nn_view *in1,
                               const nn_view *in2, int8_t *out);

typedef struct {
    int32_t channels;
    uint32_t smoothing[2], remaining[2]; /* of even and odd channels */
    uint32_t least;
    int32_t smoothing_bits, bits;
    int32_t clamps;
} nn_signal_subtraction_geometry;

/* Outputs: the signal without noise, and the noise, which is the state as well. */
void nn_signal_subtraction_u32(const nn_signal_subtraction_geometry *geometry, const int8_t *in,
                               void *state, int8_t *const *outputs);

typedef struct {
    int32_t channels, shift;
} nn_signal_pcan_geometry;

/* in1: the signal; in2: the noise. constants: 125 int16, which the gain depends on. */
void nn_signal_pcan_u32(const nn_signal_pcan_geometry *geometry, const void *constants,
                        const nn_view *in1, const nn_view *in2, int8_t *out);

typedef struct {
    int32_t channels, bits;
    uint32_t scale;
} nn_signal_log_geometry;

/* constants: 129 uint16, the logarithms of an octave less their line, and a 0. */
void nn_signal_log_u32(const nn_signal_log_geometry *geometry, const void *constants,
                       const int8_t *in, int8_t *out);

/* ---- samples that are kept ------------------------------------------------------------------ */

typedef struct {
    int32_t channels; /* each with its own samples */
    int32_t samples;  /* of a channel, in a call */
    int32_t size, step;
    int32_t kept;   /* samples of a channel in the state; after them, a count of steps */
    int32_t needed; /* steps until a frame is valid */
} nn_signal_framer_geometry;

/* Outputs: the frames, and a byte: whether all are valid. Others are 0. */
void nn_signal_framer_s16(const nn_signal_framer_geometry *geometry, const int8_t *in, void *state,
                          int8_t *const *outputs);

typedef struct {
    int32_t channels, frames, size, step;
} nn_signal_overlap_geometry;

/* state: (channels, size) in the type of the samples. */
void nn_signal_overlap_add_s16(const nn_signal_overlap_geometry *geometry, const int8_t *in,
                               void *state, int8_t *out);
void nn_signal_overlap_add_f32(const nn_signal_overlap_geometry *geometry, const int8_t *in,
                               void *state, int8_t *out);

typedef struct {
    int32_t channels; /* of a frame */
    int32_t before, after, step;
} nn_signal_stacker_geometry;

/* Outputs: the frames, and a byte: whether they are valid. state: the frames but the last one, and
 * a counter: 0 before the first frame, else the number of frames that count, and 1. */
void nn_signal_stacker_s16(const nn_signal_stacker_geometry *geometry, const int8_t *in,
                           void *state, int8_t *const *outputs);

typedef struct {
    int32_t channels, samples, length;
} nn_signal_delay_geometry;

/* state: (channels, max(length, 1)). */
void nn_signal_delay_s16(const nn_signal_delay_geometry *geometry, const int8_t *in, void *state,
                         int8_t *out);

#endif
