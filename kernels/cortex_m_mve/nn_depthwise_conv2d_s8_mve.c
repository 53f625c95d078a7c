/* DEPTHWISE_CONV_2D, depth multiplier 1, kernels of up to 8 rows and 16 words, no dilation along
 * rows, Helium: a channel's taps as dot products of 16 bytes.
 *
 * constants: nn_mve_head; 16 zeros; then for each channel its taps as words of four rows, and
 * int32[4]. With g = ceil(kernel_h / 4), word x * g + i has rows 4 i to 4 i + 3 of column x, zeros
 * below the last row. A channel has n = ceil(kernel_w * g / 4) vectors of four words, filled up
 * with zeros. Its numbers are its bias, its factor less 1 as a fraction of 2^31, its shift to the
 * right (0 or less), and 0.
 *
 * A sum x is requantised to x + round(x * (factor - 1)), which VQRDMLAH computes: so factors of up
 * to 2, a shift to the left by one bit, cost what all others do. Layers with greater ones, or whose
 * sums may be 2^30 or more where there is such a shift, are NN_MVE_GENERAL: their numbers are bias,
 * multiplier and shift as in nn_channel.
 *
 * The inputs of some output columns and 16 channels are spread over scratch: for each input column
 * and each four rows, 16 words, one a channel, of these rows' bytes. So a channel's words are 64
 * bytes apart, and a gathering load brings in 16 taps. Padding is spread as well, as the zero
 * point: the sums know no border.
 */
#include "nn_mve.h"

#define CHANNELS 16   /* spread together */
#define FEW 3         /* output columns that are best computed one by one */
#define WORD_PITCH 64 /* bytes from a channel's word to its next */
#define MAX_GROUPS 2  /* of four rows */
/* Bytes from output to output that offsets of 16 bits hold seven of; else columns are computed one
 * by one. */
#define MAX_ACROSS (65535 / 7)

/* What the tiles of one call share. */
typedef struct {
    const nn_conv_geometry *geometry;
    const nn_mve_head *head;
    const int8_t *records;
    const nn_view *in, *out;
    int32_t groups, vectors; /* g and n */
    int32_t record;          /* bytes of a channel's constants */
    int32_t tile;            /* output columns computed together, at most */
    int small;               /* kernel and stride are the most common ones */
    int general;             /* some factor is 2 or more */
    int8_t *zeros;           /* scratch: 16 zero points */
    int8_t *words;           /* scratch: the spread inputs */
} depthwise;

/* The input rows under the taps of one output row: the address of column 0's channel 0, and bytes
 * from column to column. Where there is padding: 16 zero points, and 0. */
typedef struct {
    uint32_t row[4 * MAX_GROUPS];
    int32_t step[4 * MAX_GROUPS];
} tap_rows;

/* Some columns of four rows, of the 16 channels whose turn it is; the assembly knows the order. */
typedef struct {
    uint32_t row[4]; /* 0: addresses */
    int32_t step[4]; /* 16: from column to column */
    int32_t skip;    /* 32: words of other rows in between */
    int32_t count;   /* 36 */
    int32_t next[4]; /* 40: from a row's end to its start in the next 16 channels */
} source;

/* Spreads the source's columns, and moves it on to the next channels. By hand, as VST4 wants four
 * registers in order. Of three rows, the fourth is whatever was in the register. */
#define SPREAD(load, skip)                                                                         \
    "push {r1, r4-r11, lr}\n"                                                                      \
    "vmsr p0, r2\n"                                                                                \
    "ldr r3, [r1, #36]\n"                                                                          \
    "ldm r1, {r4-r12}\n"                                                                           \
    "dls lr, r3\n"                                                                                 \
    "1:\n" load "add r4, r4, r8\n"                                                                 \
    "add r5, r5, r9\n"                                                                             \
    "add r6, r6, r10\n"                                                                            \
    "vst40.8 {q0, q1, q2, q3}, [r0]\n"                                                             \
    "vst41.8 {q0, q1, q2, q3}, [r0]\n"                                                             \
    "vst42.8 {q0, q1, q2, q3}, [r0]\n"                                                             \
    "vst43.8 {q0, q1, q2, q3}, [r0]!\n" skip "le lr, 1b\n"                                         \
    "pop {r1}\n"                                                                                   \
    "add r3, r1, #40\n"                                                                            \
    "ldm r3, {r8-r11}\n"                                                                           \
    "add r4, r4, r8\n"                                                                             \
    "add r5, r5, r9\n"                                                                             \
    "add r6, r6, r10\n"                                                                            \
    "add r7, r7, r11\n"                                                                            \
    "stm r1, {r4-r7}\n"                                                                            \
    "pop {r4-r11, pc}\n"
#define THREE_ROWS "vldrb.u8 q0, [r4]\n vldrb.u8 q1, [r5]\n vldrb.u8 q2, [r6]\n"
#define THREE_SOME "vpsttt\n vldrbt.u8 q0, [r4]\n vldrbt.u8 q1, [r5]\n vldrbt.u8 q2, [r6]\n"
#define FOUR_SOME                                                                                  \
    "vpstttt\n vldrbt.u8 q0, [r4]\n vldrbt.u8 q1, [r5]\n vldrbt.u8 q2, [r6]\n"                     \
    "vldrbt.u8 q3, [r7]\n add r7, r7, r11\n"
#define SKIP "add r0, r0, r12\n"

typedef int8_t *spreading(int8_t *to, source *from, uint32_t channels);

static NN_MVE_NAKED int8_t *spread_16_channels(NN_MVE_IN_ASM int8_t *to, NN_MVE_IN_ASM source *from,
                                               NN_MVE_IN_ASM uint32_t channels) {
    __asm volatile(SPREAD(THREE_ROWS, ""));
}

static NN_MVE_NAKED int8_t *spread_some_channels(NN_MVE_IN_ASM int8_t *to,
                                                 NN_MVE_IN_ASM source *from,
                                                 NN_MVE_IN_ASM uint32_t channels) {
    __asm volatile(SPREAD(THREE_SOME, ""));
}

static NN_MVE_NAKED int8_t *spread_three_of_more(NN_MVE_IN_ASM int8_t *to,
                                                 NN_MVE_IN_ASM source *from,
                                                 NN_MVE_IN_ASM uint32_t channels) {
    __asm volatile(SPREAD(THREE_SOME, SKIP));
}

static NN_MVE_NAKED int8_t *spread_four(NN_MVE_IN_ASM int8_t *to, NN_MVE_IN_ASM source *from,
                                        NN_MVE_IN_ASM uint32_t channels) {
    __asm volatile(SPREAD(FOUR_SOME, SKIP));
}

static inline spreading *spreading_for(const depthwise *d, int32_t group, mve_pred16_t channels) {
    if (d->geometry->kernel_h - 4 * group >= 4) {
        return spread_four;
    }
    if (d->groups > 1) {
        return spread_three_of_more;
    }
    return channels == 0xFFFF ? spread_16_channels : spread_some_channels;
}

/* A group of rows, `count` columns that begin `offset` bytes into them; offset -1: padding. */
static inline void set_source(source *s, const depthwise *d, const tap_rows *taps, int32_t group,
                              int32_t offset, int32_t count) {
    const uint32x4_t rows = vldrwq_u32(taps->row + 4 * group);
    const int32x4_t steps = vldrwq_s32(taps->step + 4 * group), none = vdupq_n_s32(0);
    const uint32x4_t zeros = vdupq_n_u32((uint32_t)(uintptr_t)d->zeros);
    const int32x4_t next = vmlaq_n_s32(vdupq_n_s32(CHANNELS), steps, -count);
    const uint32x4_t offsets = vdupq_n_u32((uint32_t)offset);
    const mve_pred16_t inside = offset < 0 ? 0 : vcmpneq_n_s32(steps, 0);
    vstrwq_u32(s->row, vaddq_m_u32(zeros, rows, offsets, inside));
    vstrwq_s32(s->step, vpselq_s32(steps, none, inside));
    vstrwq_s32(s->next, vpselq_s32(next, none, inside));
    s->skip = (d->groups - 1) * WORD_PITCH;
    s->count = count;
}

#define MAX_SOURCES 5 /* padding, up to three runs of a ring, padding */

/* Finds out where the columns [x, end) are: each group's sources, one group after the other. */
static inline int32_t find_sources(const depthwise *d, const tap_rows *taps, int32_t x, int32_t end,
                                   source *sources) {
    const nn_view *in = d->in;
    int32_t number = 0, count;
    for (; x < end; x += count, number++) {
        int32_t offset = -1;
        if (x < 0) {
            count = nn_min(end, 0) - x;
        } else if (x >= in->width) {
            count = end - x;
        } else {
            const int32_t place = nn_column(in, x);
            count = nn_min(nn_min(end, in->width) - x, in->ring_cols - place);
            offset = place * in->pixel_stride;
        }
        for (int32_t group = 0; group < d->groups; group++) {
            set_source(sources + group * MAX_SOURCES + number, d, taps, group, offset, count);
        }
    }
    return number;
}

/* Spreads the next `channels` channels of `number` sources of each group. */
static inline void spread(const depthwise *d, source *sources, int32_t number,
                          mve_pred16_t channels) {
    for (int32_t group = 0; group < d->groups; group++, sources += MAX_SOURCES) {
        int8_t *to = d->words + group * WORD_PITCH;
        spreading *const one = spreading_for(d, group, channels);
        for (int32_t i = 0; i < number; i++) {
            to = one(to, sources + i, channels);
        }
    }
}

#define DOT(x, w) vmladavq_s8(vreinterpretq_s8_u32(x), (w))

/* Up to 16 output columns of a channel at a time, what the assembly below reads: it knows the
 * order. */
typedef struct {
    uint32x4_t place;     /* 0: of the words, less what the first load adds */
    uint16x8_t offsets;   /* 16: where eight outputs go */
    int16x8_t low, high;  /* 32, 48: clamps */
    uint16x8_t last_four; /* 64: where four outputs go, every other element */
    const int8_t *record; /* 80: the first channel's constants */
    int32_t channels;     /* 84 */
    int32_t zero_point;   /* 88 */
    int8_t *out;          /* 92 */
    int32_t down;         /* 96: from the first eight outputs to the others; see also below */
    int32_t next_place;   /* 100: from a channel's end to the next channel */
    int32_t next_out;     /* 104: likewise, from the second part of two */
    int32_t stored;       /* 108: predicate of the last store */
} tile_arguments;

/* Kernels of up to four rows and three columns, stride 1 or 2. By hand: compilers run out of
 * registers and reload what is used most. Two words of weights, the second one column later, make
 * two outputs of one load if the stride is 1: the bytes before a channel's words are 0. Sums become
 * elements 0, 2, 1, 3 of two vectors in turn, so that four registers do. */
#define BEGIN(stride_register)                                                                     \
    "push {r4-r11, lr}\n"                                                                          \
    "vpush {d8-d15}\n"                                                                             \
    "mov r3, r0\n"                                                                                 \
    "vldrw.u32 q0, [r3]\n"                                                                         \
    "vldrw.u32 q1, [r3, #16]\n"                                                                    \
    "vldrw.u32 q7, [r3, #32]\n"                                                                    \
    "ldr r0, [r3, #108]\n"                                                                         \
    "vmsr p0, r0\n"                                                                                \
    "ldrd r1, lr, [r3, #80]\n"                                                                     \
    "ldrd r5, r7, [r3, #88]\n"                                                                     \
    "ldr r11, [r3, #" stride_register "]\n"                                                        \
    "0:\n"                                                                                         \
    "vldrb.u8 q3, [r1, #-4]\n"                                                                     \
    "vldrb.u8 q2, [r1], #16\n"                                                                     \
    "ldm r1!, {r8-r10, r12}\n"                                                                     \
    "lsr r12, r10, #31\n"
#define WORDS "vldrw.u32 q4, [q0, #128]!\n"
#define PAIR_1(a, b) WORDS "vmladav.s8 " a ", q4, q2\n vmladav.s8 " b ", q4, q3\n"
#define PAIR_2(a, b) WORDS "vmladav.s8 " a ", q4, q2\n" WORDS "vmladav.s8 " b ", q4, q2\n"
#define FOUR_SUMS(pair, i, j)                                                                      \
    pair("r0", "r2") pair("r4", "r6") "vmov q5[" i "], q5[" j "], r0, r4\n"                        \
                                      "vmov q6[" i "], q6[" j "], r2, r6\n"
#define CLAMP                                                                                      \
    "vqadd.s16 q5, q5, r5\n"                                                                       \
    "vldrw.u32 q4, [r3, #48]\n"                                                                    \
    "vmax.s16 q5, q5, q7\n"                                                                        \
    "vmin.s16 q5, q5, q4\n"
#define EIGHT(pair, store)                                                                         \
    FOUR_SUMS(pair, "2", "0")                                                                      \
    FOUR_SUMS(pair, "3", "1")                                                                      \
    "vadd.i32 q5, q5, r8\n"                                                                        \
    "vadd.i32 q6, q6, r8\n"                                                                        \
    "vqrdmlah.s32 q5, q5, r9\n"                                                                    \
    "vqrdmlah.s32 q6, q6, r9\n"                                                                    \
    "vqdmlah.s32 q5, q5, r12\n"                                                                    \
    "vqdmlah.s32 q6, q6, r12\n"                                                                    \
    "vrshl.s32 q5, r10\n"                                                                          \
    "vrshl.s32 q6, r10\n"                                                                          \
    "vqmovnb.s32 q5, q5\n"                                                                         \
    "vqmovnt.s32 q5, q6\n" CLAMP store
#define LAST_FOUR(pair)                                                                            \
    pair("r0", "r2") pair("r4", "r6") "vmov q5[2], q5[0], r0, r4\n"                                \
                                      "vmov q5[3], q5[1], r2, r6\n"                                \
                                      "vadd.i32 q5, q5, r8\n"                                      \
                                      "vqrdmlah.s32 q5, q5, r9\n"                                  \
                                      "vqdmlah.s32 q5, q5, r12\n"                                  \
                                      "vrshl.s32 q5, r10\n"                                        \
                                      "vqmovnb.s32 q5, q5\n" CLAMP "vldrw.u32 q4, [r3, #64]\n"     \
                                      "vpst\n"                                                     \
                                      "vstrbt.16 q5, [r7, q4]\n"
#define ALL "vstrb.16 q5, [r7, q1]\n"
#define SOME "vpst\n vstrbt.16 q5, [r7, q1]\n"
/* r11: next_place if there is one part, down if there are two. */
#define ONE_PART(part)                                                                             \
    BEGIN("100")                                                                                   \
    part "vadd.i32 q0, q0, r11\n"                                                                  \
         "add r7, r7, #1\n"                                                                        \
         "le lr, 0b\n"                                                                             \
         "vpop {d8-d15}\n"                                                                         \
         "pop {r4-r11, pc}\n"
#define TWO_PARTS(first, last)                                                                     \
    BEGIN("96")                                                                                    \
    first "add r7, r7, r11\n" last "ldrd r0, r2, [r3, #100]\n"                                     \
          "vadd.i32 q0, q0, r0\n"                                                                  \
          "add r7, r7, r2\n"                                                                       \
          "le lr, 0b\n"                                                                            \
          "vpop {d8-d15}\n"                                                                        \
          "pop {r4-r11, pc}\n"

static NN_MVE_NAKED void up_to_4_of_stride_1(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(ONE_PART(LAST_FOUR(PAIR_1)));
}

static NN_MVE_NAKED void up_to_8_of_stride_1(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(ONE_PART(EIGHT(PAIR_1, SOME)));
}

static NN_MVE_NAKED void up_to_12_of_stride_1(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(TWO_PARTS(EIGHT(PAIR_1, ALL), LAST_FOUR(PAIR_1)));
}

static NN_MVE_NAKED void up_to_16_of_stride_1(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(TWO_PARTS(EIGHT(PAIR_1, ALL), EIGHT(PAIR_1, SOME)));
}

static NN_MVE_NAKED void up_to_4_of_stride_2(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(ONE_PART(LAST_FOUR(PAIR_2)));
}

static NN_MVE_NAKED void up_to_8_of_stride_2(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(ONE_PART(EIGHT(PAIR_2, SOME)));
}

/* Any other kernel and stride: up to four columns, of each as many loads as there are vectors.
 * `down` is from one output's last load to the next one's first. */
#define NEXT(weights) "vldrw.u32 q4, [q0, #256]!\n vmladava.s8 r6, q4, " weights "\n"
#define SUM(sum, more)                                                                             \
    "vldrw.u32 q4, [q0]\n"                                                                         \
    "vmladav.s8 r6, q4, q1\n" more "mov " sum ", r6\n"                                             \
    "vadd.i32 q0, q0, r11\n"
#define ANY(loads, more)                                                                           \
    "push {r4-r11, lr}\n"                                                                          \
    "vpush {d8-d15}\n"                                                                             \
    "mov r3, r0\n"                                                                                 \
    "vldrw.u32 q0, [r3]\n"                                                                         \
    "ldr r0, [r3, #108]\n"                                                                         \
    "vmsr p0, r0\n"                                                                                \
    "ldrd r1, lr, [r3, #80]\n"                                                                     \
    "ldrd r5, r7, [r3, #88]\n"                                                                     \
    "ldr r11, [r3, #96]\n"                                                                         \
    "0:\n"                                                                                         \
    "vldrb.u8 q1, [r1], #16\n" loads                                                               \
    "ldm r1!, {r8-r10, r12}\n lsr r12, r10, #31\n" SUM("r0", more) SUM("r2", more) SUM("r4", more) \
        SUM("r6", more) "vmov q5[2], q5[0], r0, r4\n"                                              \
                        "vmov q5[3], q5[1], r2, r6\n"                                              \
                        "vadd.i32 q5, q5, r8\n"                                                    \
                        "vqrdmlah.s32 q5, q5, r9\n"                                                \
                        "vqdmlah.s32 q5, q5, r12\n"                                                \
                        "vrshl.s32 q5, r10\n"                                                      \
                        "vqmovnb.s32 q5, q5\n"                                                     \
                        "vldrw.u32 q7, [r3, #32]\n" CLAMP "vldrw.u32 q4, [r3, #64]\n"              \
                        "vpst\n"                                                                   \
                        "vstrbt.16 q5, [r7, q4]\n"                                                 \
                        "ldr r0, [r3, #100]\n"                                                     \
                        "add r7, r7, #1\n"                                                         \
                        "vadd.i32 q0, q0, r0\n"                                                    \
                        "le lr, 0b\n"                                                              \
                        "vpop {d8-d15}\n"                                                          \
                        "pop {r4-r11, pc}\n"

static NN_MVE_NAKED void up_to_4_of_1_vector(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(ANY("", ""));
}

static NN_MVE_NAKED void up_to_4_of_2_vectors(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(ANY("vldrb.u8 q2, [r1], #16\n", NEXT("q2")));
}

static NN_MVE_NAKED void up_to_4_of_3_vectors(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(ANY("vldrb.u8 q2, [r1], #16\n vldrb.u8 q3, [r1], #16\n", NEXT("q2") NEXT("q3")));
}

static NN_MVE_NAKED void up_to_4_of_4_vectors(NN_MVE_IN_ASM const tile_arguments *a) {
    __asm volatile(ANY("vldrb.u8 q2, [r1], #16\n vldrb.u8 q3, [r1], #16\n vldrb.u8 q6, [r1], #16\n",
                       NEXT("q2") NEXT("q3") NEXT("q6")));
}

/* A tile for one of the above: prepared once, run for each 16 channels. */
typedef struct {
    tile_arguments arguments;
    void (*compute)(const tile_arguments *);
} prepared_tile;

static inline void set_tile(prepared_tile *tile, const depthwise *d, uint32x4_t words, int8_t *out,
                            int32_t count) {
    static const uint16_t order[8] = {0, 1, 4, 5, 2, 3, 6, 7}, fours[8] = {0, 8, 1, 8, 2, 8, 3, 8};
    static void (*const computes[2][4])(const tile_arguments *) = {
        {up_to_4_of_stride_1, up_to_8_of_stride_1, up_to_12_of_stride_1, up_to_16_of_stride_1},
        {up_to_4_of_stride_2, up_to_8_of_stride_2, NULL, NULL}};
    static void (*const others[4])(const tile_arguments *) = {
        up_to_4_of_1_vector, up_to_4_of_2_vectors, up_to_4_of_3_vectors, up_to_4_of_4_vectors};
    const nn_conv_constants *common = &d->head->common;
    const int32_t across = d->out->pixel_stride, stride = d->geometry->stride_w,
                  quarter = (count - 1) >> 2;
    const uint16x8_t last = vldrhq_u16((quarter & 1) != 0 ? order : fours);
    tile_arguments *a = &tile->arguments;
    a->place = vsubq_n_u32(words, 2 * WORD_PITCH);
    a->offsets = vmulq_n_u16(vldrhq_u16(order), (uint16_t)across);
    a->low = vdupq_n_s16((int16_t)common->clamp_min);
    a->high = vdupq_n_s16((int16_t)common->clamp_max);
    a->last_four = vmulq_n_u16(vldrhq_u16(fours), (uint16_t)across);
    a->record = d->records;
    a->zero_point = common->output_zero_point;
    a->out = out;
    a->down = 8 * across;
    a->next_out = 1 - a->down;
    a->next_place = 4 - 4 * (quarter + 1) * stride * WORD_PITCH;
    if (!d->small) { /* up to four columns */
        const int32_t apart = stride * d->groups * WORD_PITCH;
        a->place = words;
        a->down = apart - 4 * WORD_PITCH * (d->vectors - 1);
        a->next_place = 4 - 4 * apart;
    }
    a->stored = vcmpltq_n_s16(vreinterpretq_s16_u16(last), (int16_t)(count - 8 * (quarter >> 1)));
    tile->compute = d->small ? computes[stride - 1][quarter] : others[d->vectors - 1];
}

/* The next `channels` channels of a tile. */
static inline void compute_channels(const depthwise *d, prepared_tile *tile, int32_t channels) {
    tile_arguments *a = &tile->arguments;
    a->channels = channels;
    tile->compute(a);
    a->record += channels * d->record;
    a->out += CHANNELS;
}

/* A part of a row: its words, the constants of its channels, where its outputs go. */
typedef struct {
    uint32x4_t words; /* of the first channel: addresses of four words in a row */
    const int8_t *constants;
    int8_t *out;
    int32_t channels; /* 16 or fewer */
    int32_t count;    /* columns */
} part;

/* Any kernel, stride and factor: `vectors` loads an output. */
static inline void compute_any(const depthwise *d, part l, int32_t vectors) {
    const nn_conv_constants *common = &d->head->common;
    const nn_channel *channel = (const nn_channel *)(const void *)(l.constants + 16 * vectors);
    const int32_t shift = channel->shift, multiplier = channel->multiplier, bias = channel->bias;
    const int32_t odd = shift < 0;
    const int32_t apart = d->geometry->stride_w * d->groups * WORD_PITCH;
    const int32x4_t low = vdupq_n_s32(common->clamp_min), high = vdupq_n_s32(common->clamp_max);
    const int32_t across = d->out->pixel_stride;
    const uint32x4_t offsets = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)across);
    const int8x16_t w0 = vldrbq_s8(l.constants), w1 = vldrbq_s8(l.constants + 16 * (vectors > 1));
    const int8x16_t w2 = vldrbq_s8(l.constants + 32 * (vectors > 2));
    const int8x16_t w3 = vldrbq_s8(l.constants + 48 * (vectors > 3));
    uint32x4_t place = l.words;
    for (; l.count > 0; l.count -= 4, l.out += 4 * across) {
        int32_t sum[4];
        for (int32_t i = 0; i < 4; i++) {
            sum[i] = DOT(vldrwq_gather_base_u32(place, 0), w0);
            if (vectors > 1) {
                sum[i] = vmladavaq_s8(sum[i],
                                      vreinterpretq_s8_u32(vldrwq_gather_base_u32(place, 256)), w1);
            }
            if (vectors > 2) {
                const uint32x4_t behind = vaddq_n_u32(place, 512);
                sum[i] = vmladavaq_s8(sum[i],
                                      vreinterpretq_s8_u32(vldrwq_gather_base_u32(behind, 0)), w2);
                if (vectors > 3) {
                    sum[i] = vmladavaq_s8(
                        sum[i], vreinterpretq_s8_u32(vldrwq_gather_base_u32(behind, 256)), w3);
                }
            }
            place = vaddq_n_u32(place, (uint32_t)apart);
        }
        int32x4_t sums = {sum[0], sum[1], sum[2], sum[3]};
        sums = vshlq_r_s32(vaddq_n_s32(sums, bias), nn_max(shift, 0));
        sums = vqrdmulhq_n_s32(sums, multiplier);
        sums = vrshlq_n_s32(vqdmlahq_n_s32(sums, sums, odd), nn_min(shift, 0));
        sums = vqaddq_n_s32(sums, common->output_zero_point);
        sums = vminq_s32(vmaxq_s32(sums, low), high);
        vstrbq_scatter_offset_p_s32(l.out, offsets, sums, vctp32q((uint32_t)l.count));
    }
}

static NN_NOINLINE void compute_part(const depthwise *d, part p) {
    for (; p.channels > 0; p.channels--) {
        switch (d->vectors) {
        case 1:
            compute_any(d, p, 1);
            break;
        case 2:
            compute_any(d, p, 2);
            break;
        case 3:
            compute_any(d, p, 3);
            break;
        default:
            compute_any(d, p, 4);
        }
        p.words = vaddq_n_u32(p.words, 4);
        p.constants += d->record;
        p.out++;
    }
}

/* ---- one column -------------------------------------------------------------------------------
 */

/* One output column of some channels, a multiple of four: where columns are few it is the channels
 * that fill vectors. The assembly knows the order. */
typedef struct {
    uint32x4_t place;     /* 0: of the words, less what the first load adds */
    uint32x4_t numbers;   /* 16: of four channels' numbers, less what the first load adds */
    int16x8_t low, high;  /* 32, 48: clamps */
    const int8_t *record; /* 64: the first channel's constants */
    int32_t fours;        /* 68: of channels */
    int32_t zero_point;   /* 72 */
    int8_t *out;          /* 76 */
} column_arguments;

/* A load moves on to its words: from a channel's last ones to the next channel's first, but that of
 * four vectors every other channel's are read from the last to the first. */
#define FIRST(sum, words, weights)                                                                 \
    "vldrw.u32 q4, [q0, #" words "]!\n"                                                            \
    "vldrb.u8 q1, [r1" weights "\n"                                                                \
    "vmladav.s8 " sum ", q4, q1\n"
#define THEN(sum, words, weights)                                                                  \
    "vldrw.u32 q4, [q0, #" words "]!\n"                                                            \
    "vldrb.u8 q1, [r1" weights "\n"                                                                \
    "vmladava.s8 " sum ", q4, q1\n"
#define NEXT_16 "], #16"
#define NEXT_32 "], #32"
#define OF_1(sum) FIRST(sum, "4", NEXT_32)
#define OF_2(sum) FIRST(sum, "-252", NEXT_16) THEN(sum, "256", NEXT_32)
#define OF_3(sum) FIRST(sum, "-508", NEXT_16) THEN(sum, "256", NEXT_16) THEN(sum, "256", NEXT_32)
#define OF_4(sum)                                                                                  \
    FIRST(sum, "4", NEXT_16)                                                                       \
    THEN(sum, "256", NEXT_16) THEN(sum, "256", NEXT_16) THEN(sum, "256", NEXT_32)
#define BACK_4(sum)                                                                                \
    FIRST(sum, "4", ", #48]")                                                                      \
    THEN(sum, "-256", ", #32]") THEN(sum, "-256", ", #16]") THEN(sum, "-256", "], #80")
/* `records`: bytes of four channels' constants. */
#define COLUMN(of, other, records)                                                                 \
    "push {r4-r8, lr}\n"                                                                           \
    "vpush {d8-d15}\n"                                                                             \
    "vldrw.u32 q0, [r0]\n"                                                                         \
    "vldrw.u32 q3, [r0, #16]\n"                                                                    \
    "vldrw.u32 q6, [r0, #32]\n"                                                                    \
    "vldrw.u32 q7, [r0, #48]\n"                                                                    \
    "ldrd r1, lr, [r0, #64]\n"                                                                     \
    "ldrd r5, r7, [r0, #72]\n"                                                                     \
    "0:\n" of("r0") other("r2") of("r4") other("r6") "vmov q5[2], q5[0], r0, r4\n"                 \
                                                     "vmov q5[3], q5[1], r2, r6\n"                 \
                                                     "vldrw.u32 q1, [q3, #" records "]!\n"         \
                                                     "vldrw.u32 q4, [q3, #4]\n"                    \
                                                     "vldrw.u32 q2, [q3, #8]\n"                    \
                                                     "vadd.i32 q5, q5, q1\n"                       \
                                                     "vqrdmulh.s32 q4, q5, q4\n"                   \
                                                     "vadd.i32 q5, q5, q4\n"                       \
                                                     "vand q1, q5, q2\n"                           \
                                                     "vshr.s32 q1, q1, #31\n"                      \
                                                     "vadd.i32 q5, q5, q1\n"                       \
                                                     "vrshl.s32 q5, q5, q2\n"                      \
                                                     "vqmovnb.s32 q5, q5\n"                        \
                                                     "vqadd.s16 q5, q5, r5\n"                      \
                                                     "vmax.s16 q5, q5, q6\n"                       \
                                                     "vmin.s16 q5, q5, q7\n"                       \
                                                     "vstrb.32 q5, [r7], #4\n"                     \
                                                     "le lr, 0b\n"                                 \
                                                     "vpop {d8-d15}\n"                             \
                                                     "pop {r4-r8, pc}\n"

static NN_MVE_NAKED void column_of_1_vector(NN_MVE_IN_ASM const column_arguments *a) {
    __asm volatile(COLUMN(OF_1, OF_1, "128"));
}

static NN_MVE_NAKED void column_of_2_vectors(NN_MVE_IN_ASM const column_arguments *a) {
    __asm volatile(COLUMN(OF_2, OF_2, "192"));
}

static NN_MVE_NAKED void column_of_3_vectors(NN_MVE_IN_ASM const column_arguments *a) {
    __asm volatile(COLUMN(OF_3, OF_3, "256"));
}

static NN_MVE_NAKED void column_of_4_vectors(NN_MVE_IN_ASM const column_arguments *a) {
    __asm volatile(COLUMN(OF_4, BACK_4, "320"));
}

static inline void set_column(column_arguments *a, const depthwise *d) {
    const nn_conv_constants *common = &d->head->common;
    const int8_t *numbers = d->records + 16 * d->vectors - 4 * d->record;
    const uint32x4_t four = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)d->record);
    a->numbers = vaddq_n_u32(four, (uint32_t)(uintptr_t)numbers);
    a->low = vdupq_n_s16((int16_t)common->clamp_min);
    a->high = vdupq_n_s16((int16_t)common->clamp_max);
    a->record = d->records;
    a->zero_point = common->output_zero_point;
}

/* The next `channels` channels of `count` output columns, the first of which goes to `out`. */
static inline void compute_columns(const depthwise *d, column_arguments *a, uint32x4_t words,
                                   int32_t channels, int32_t count, int8_t *out) {
    static void (*const computes[4])(const column_arguments *) = {
        column_of_1_vector, column_of_2_vectors, column_of_3_vectors, column_of_4_vectors};
    const uint32_t apart = (uint32_t)(d->geometry->stride_w * d->groups * WORD_PITCH);
    a->fours = channels >> 2;
    a->out = out;
    for (; count > 0; count--, a->out += d->out->pixel_stride) {
        a->place = words;
        computes[d->vectors - 1](a);
        words = vaddq_n_u32(words, apart);
    }
    a->record += channels * d->record;
    a->numbers = vaddq_n_u32(a->numbers, (uint32_t)(channels * d->record));
}

/* ---- tiles ------------------------------------------------------------------------------------
 */

/* The sources of the columns under `count` outputs, and what spreads a group's 16 channels. */
typedef struct {
    source sources[MAX_GROUPS * MAX_SOURCES];
    int32_t number;
    uint32x4_t words; /* of the first channel: addresses of the first four */
} tile_inputs;

/* A few columns. */
static NN_NOINLINE void compute_few(const depthwise *d, tile_inputs *in, int32_t count,
                                    int8_t *out) {
    column_arguments a;
    const int32_t ahead = d->vectors < 4 ? 4 * WORD_PITCH * (d->vectors - 1) - 4 : -4;
    const uint32x4_t words = vaddq_n_u32(in->words, (uint32_t)ahead);
    set_column(&a, d);
    for (int32_t left = d->in->channels; left > 0; left -= CHANNELS, out += CHANNELS) {
        const int32_t some = nn_min(CHANNELS, left);
        spread(d, in->sources, in->number, vctp8q((uint32_t)some));
        compute_columns(d, &a, words, some, count, out);
    }
}

/* Many columns. */
static NN_NOINLINE void compute_many(const depthwise *d, tile_inputs *in, int32_t count,
                                     int8_t *out) {
    prepared_tile tile;
    set_tile(&tile, d, in->words, out, count);
    for (int32_t left = d->in->channels; left > 0; left -= CHANNELS) {
        const int32_t some = nn_min(CHANNELS, left);
        spread(d, in->sources, in->number, vctp8q((uint32_t)some));
        compute_channels(d, &tile, some);
    }
}

static NN_NOINLINE void compute_general(const depthwise *d, tile_inputs *in, int32_t count,
                                        int8_t *out) {
    for (int32_t c = 0; c < d->in->channels; c += CHANNELS) {
        const int32_t some = nn_min(CHANNELS, d->in->channels - c);
        const part p = {in->words, d->records + c * d->record, out + c, some, count};
        spread(d, in->sources, in->number, vctp8q((uint32_t)some));
        compute_part(d, p);
    }
}

/* Output columns [x, x + count), a run from `out` on. */
static inline void compute_tile(const depthwise *d, const tap_rows *taps, int32_t x, int32_t count,
                                int8_t *out) {
    const nn_conv_geometry *g = d->geometry;
    const int32_t left = x * g->stride_w - g->pad_left;
    const int32_t end = left + (count - 1) * g->stride_w + g->kernel_w;
    tile_inputs in;
    in.words =
        vaddq_n_u32(vmulq_n_u32(vidupq_n_u32(0, 1), WORD_PITCH), (uint32_t)(uintptr_t)d->words);
    in.number = find_sources(d, taps, left, end, in.sources);
    if (d->general) {
        compute_general(d, &in, count, out);
    } else if (count <= FEW && d->in->channels % 4 == 0) {
        compute_few(d, &in, count, out);
    } else {
        compute_many(d, &in, count, out);
    }
}

static inline int32_t row_groups(const nn_conv_geometry *g) {
    return (g->kernel_h + 3) >> 2;
}

static inline int32_t tap_vectors(const nn_conv_geometry *g) {
    return (g->kernel_w * row_groups(g) + 3) >> 2;
}

/* Up to four rows and three columns, stride 1 or 2. */
static inline int is_small(const nn_conv_geometry *g) {
    return g->kernel_h <= 4 && g->kernel_w <= 3 && g->stride_w <= 2;
}

/* Output columns that are computed together: as many as fit about 1 KB of scratch. */
static inline int32_t tile_columns(const nn_conv_geometry *g) {
    if (!is_small(g)) {
        return 4;
    }
    return g->stride_w == 1 ? 16 : 8;
}

/* Where the parts of constants and scratch begin. */
static inline depthwise open(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, void *scratch) {
    depthwise d;
    d.geometry = geometry;
    d.head = (const nn_mve_head *)constants;
    d.records = (const int8_t *)(d.head + 1) + 16;
    d.in = in;
    d.out = out;
    d.groups = row_groups(geometry);
    d.vectors = tap_vectors(geometry);
    d.record = 16 * d.vectors + 16;
    d.tile = out->pixel_stride > MAX_ACROSS ? 1 : tile_columns(geometry);
    d.small = is_small(geometry);
    d.general = d.head->mode == NN_MVE_GENERAL;
    d.zeros = (int8_t *)scratch;
    d.words = d.zeros + 16;
    return d;
}

int32_t nn_depthwise_conv2d_s8_mve_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    const int32_t columns = nn_min(tile_columns(geometry), (out->width + 7) & ~7);
    const int32_t before_last = (columns - 1) * geometry->stride_w * row_groups(geometry);
    (void)in;
    return 16 + WORD_PITCH * (before_last + 4 * tap_vectors(geometry));
}

/* The rows under the taps of an output row whose first one is `top`. */
static inline void find_rows(const depthwise *d, int32_t top, tap_rows *taps) {
    const nn_conv_geometry *g = d->geometry;
    const nn_view *in = d->in;
    const nn_taps valid = nn_valid_taps(top, in->height, g->kernel_h, g->dilation_h);
    const int8_t *row = in->data, *end = in->data + in->ring_rows * in->row_stride;
    const int32_t step = g->dilation_h % in->ring_rows * in->row_stride;
    if (valid.first < valid.end) {
        row = nn_row(in, top + valid.first * g->dilation_h);
    }
    for (int32_t ky = 0; ky < 4 * d->groups; ky++) {
        const int inside = ky >= valid.first && ky < valid.end;
        taps->row[ky] = (uint32_t)(uintptr_t)(inside ? row : d->zeros);
        taps->step[ky] = inside ? in->pixel_stride : 0;
        if (inside) {
            row += step;
            row -= row >= end ? end - in->data : 0;
        }
    }
}

void nn_depthwise_conv2d_s8_mve(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_conv_geometry *g = geometry;
    const depthwise d = open(geometry, constants, in, out, scratch);
    vstrbq_s8(d.zeros, vdupq_n_s8((int8_t)d.head->common.input_zero_point));
    for (int32_t y = window->y0; y < window->y1; y++) {
        tap_rows taps;
        int32_t count;
        find_rows(&d, y * g->stride_h - g->pad_top, &taps);
        for (int32_t x = window->x0; x < window->x1; x += count) {
            count = nn_run(out, x, nn_min(d.tile, window->x1 - x));
            compute_tile(&d, &taps, x, count, nn_out_pixel(out, y, x));
        }
    }
}
