/* ADD and SUB on the VPU, 32 elements at a time, in lanes of 16 bits.
 *
 * Constants: nn_add_constants, then nn_add_lanes. The reference rounds each operand and their sum.
 * What it gives depends on two bytes alone; where one linear form gives the same for all 65,536
 * pairs of them, the packing has found it (packing.py):
 *
 *   output = clamp(floor((bias + a * A + b * B) / 2^(8 + shift)))
 *
 * with factors of 22 bits, each as a multiple of 128 or 256 and a small rest. Where no such form
 * was found, and for operands that repeat a channel, the plain kernel computes.
 */
#include <stddef.h>

#include "nn_split.h"
#include "nn_vpu_lanes.h"
#include "nn_vpu_offsets.h"
#include "nn_xcore_vpu.h"

/* Of the factors: of odd bytes * 128 and of the bytes; of even bytes * 256 and of the bytes. */
enum { ODD_128, ODD_1, EVEN_256, EVEN_1, FACTORS };

typedef struct {
    int32_t linear, bias, shift;
    int16_t first[FACTORS], second[FACTORS];
} nn_add_lanes;

/* An operand: its bytes as lanes. */
typedef struct {
    nn_vpu_row lanes[FACTORS];
} operand;

typedef struct {
    nn_vpu_row bias_high, bias_low, shift, by_256;
    operand first, second; /* factors */
    nn_vpu_clamp clamp;
} addition;

static void open_addition(addition *s, const nn_add_constants *head, const nn_add_lanes *c) {
    nn_vpu_splat_bias(&s->bias_high, &s->bias_low, c->bias);
    nn_vpu_splat(&s->shift, c->shift);
    nn_vpu_splat(&s->by_256, 256);
    for (int32_t i = 0; i < FACTORS; i++) {
        nn_vpu_splat(&s->first.lanes[i], c->first[i]);
        nn_vpu_splat(&s->second.lanes[i], c->second[i]);
    }
    nn_vpu_open_clamp(&s->clamp, head->clamp_min, head->clamp_max, (nn_vpu_step){256, 255});
}

#ifdef __XS3A__
typedef char addition_layout[offsetof(addition, clamp) == ADDITION_CLAMP &&
                                     offsetof(addition, second) == 8 * sizeof(nn_vpu_row)
                                 ? 1
                                 : -1];
void nn_vpu_add_xs3(const addition *s, const int8_t *a, const int8_t *b, int8_t *out,
                    int32_t blocks);
#else
static inline void widen(nn_vpu *v, const addition *s, const int8_t *bytes, operand *to) {
    nn_vpu_vlashr(v, bytes, 8);
    nn_vpu_vstr(v, &to->lanes[ODD_1]);
    nn_vpu_vlashr(v, &to->lanes[ODD_1], -7);
    nn_vpu_vstr(v, &to->lanes[ODD_128]);
    nn_vpu_vclrdr(v);
    nn_vpu_vldc(v, &s->by_256);
    nn_vpu_vlmacc(v, bytes);
    nn_vpu_vstr(v, &to->lanes[EVEN_256]);
    nn_vpu_vlashr(v, &to->lanes[EVEN_256], 8);
    nn_vpu_vstr(v, &to->lanes[EVEN_1]);
}

/* Sixteen sums in 256ths of an output step, from lanes `coarse` and `fine`. */
static inline void sum(nn_vpu *v, const addition *s, const operand *a, const operand *b,
                       int32_t coarse, int32_t fine) {
    nn_vpu_vldd(v, &s->bias_high);
    nn_vpu_vldr(v, &s->bias_low);
    nn_vpu_vldc(v, &s->first.lanes[coarse]);
    nn_vpu_vlmacc(v, &a->lanes[coarse]);
    nn_vpu_vldc(v, &s->first.lanes[fine]);
    nn_vpu_vlmacc(v, &a->lanes[fine]);
    nn_vpu_vldc(v, &s->second.lanes[coarse]);
    nn_vpu_vlmacc(v, &b->lanes[coarse]);
    nn_vpu_vldc(v, &s->second.lanes[fine]);
    nn_vpu_vlmacc(v, &b->lanes[fine]);
    nn_vpu_vlsat(v, &s->shift);
    nn_vpu_clamp_lanes(v, &s->clamp);
}

static inline void add_block(nn_vpu *v, const addition *s, const int8_t *a, const int8_t *b,
                             int8_t *out) {
    operand first, second;
    nn_vpu_row lanes;
    widen(v, s, a, &first);
    widen(v, s, b, &second);
    sum(v, s, &first, &second, ODD_128, ODD_1);
    nn_vpu_vstrpv(v, out, NN_VPU_ODD_BYTES);
    sum(v, s, &first, &second, EVEN_256, EVEN_1);
    nn_vpu_vstr(v, &lanes);
    nn_vpu_vlashr(v, &lanes, 8);
    nn_vpu_vstrpv(v, out, NN_VPU_EVEN_BYTES);
}

#endif

/* Blocks of 32 elements. */
static inline void add_blocks(nn_vpu *v, const addition *s, const int8_t *a, const int8_t *b,
                              int8_t *out, int32_t blocks) {
#ifdef __XS3A__
    (void)v;
    nn_vpu_add_xs3(s, a, b, out, blocks);
#else
    for (int32_t i = 0; i < blocks; i++) {
        add_block(v, s, a + 32 * i, b + 32 * i, out + 32 * i);
        NN_VPU_SCALAR(2);
    }
#endif
}

/* A run of elements; their number is a multiple of 4. */
static void add_run(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                    int32_t count) {
    const addition *s = (const addition *)plan;
    nn_vpu v;
    nn_vpu_vsetc(&v, NN_VPU_S16);
    NN_VPU_SCALAR(16);
    if (count >= 32) {
        const int32_t whole = count / 32 * 32;
        add_blocks(&v, s, a, b, out, count / 32);
        a += whole;
        b += whole;
        out += whole;
        count -= whole;
    }
    if (count > 0) { /* nothing outside is read or written */
        nn_vpu_row ends[3] = {{{0}}, {{0}}, {{0}}};
        int8_t *const end = (int8_t *)&ends[2];
        nn_vpu_copy_words((int8_t *)&ends[0], a, count);
        nn_vpu_copy_words((int8_t *)&ends[1], b, count);
        add_blocks(&v, s, (int8_t *)&ends[0], (int8_t *)&ends[1], end, 1);
        nn_vpu_copy_words(out, end, count);
    }
}

static const nn_add_lanes *lanes_of(const void *constants) {
    return (const nn_add_lanes *)(const void *)((const nn_add_constants *)constants + 1);
}

static void piece(const nn_call *call, const nn_piece *own) {
    addition s;
    open_addition(&s, (const nn_add_constants *)call->constants, lanes_of(call->constants));
    nn_vpu_for_runs(add_run, &s, call->in, call->in2, call->out, &own->window);
}

static void plain(const nn_call *call, const nn_piece *own) {
    nn_add_s8(call->constants, call->in, call->in2, call->out, &own->window);
}

void nn_add_s8_vpu(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window) {
    const int on_vpu = lanes_of(constants)->linear && in1->channels == out->channels &&
                       in2->channels == out->channels && out->channels % 4 == 0 &&
                       nn_vpu_can_load(in1) && nn_vpu_can_load(in2) && nn_vpu_can_load(out);
    const nn_call call = {.body = on_vpu ? piece : plain,
                          .constants = constants,
                          .in = in1,
                          .in2 = in2,
                          .out = out,
                          .kernel_h = 1,
                          .stride_h = 1,
                          .pixelwise = 1,
                          .issues = on_vpu ? 2 * out->channels : 40 * out->channels};
    nn_split(&call, window);
}
