/* Functions of one byte by a table, four bytes at a time: the VPU has no look-up. */
#include "nn_split.h"
#include "nn_vpu_lanes.h"
#include "nn_xcore_vpu.h"

#ifdef __XS3A__
void nn_vpu_lut_xs3(const uint8_t *table, const int8_t *in, int8_t *out, int32_t words);
#else
static inline uint32_t look_up(const uint8_t *table, uint32_t four) {
    const uint32_t a = table[four & 255], b = table[four >> 8 & 255];
    const uint32_t c = table[four >> 16 & 255], d = table[four >> 24];
    return a | b << 8 | c << 16 | d << 24;
}
#endif

static void run(const void *plan, const int8_t *in, const int8_t *unused, int8_t *out,
                int32_t count) {
    const uint8_t *table = (const uint8_t *)plan;
    (void)unused;
#ifdef __XS3A__
    nn_vpu_lut_xs3(table, in, out, count / 4);
#else
    NN_VPU_SCALAR(18);
    for (int32_t i = 0; i < count; i += 4) {
        const uint32_t four = *(const uint32_t *)(const void *)(in + i);
        *(uint32_t *)(void *)(out + i) = look_up(table, four);
        NN_VPU_SCALAR(12);
    }
#endif
}

static void piece(const nn_call *call, const nn_piece *own) {
    nn_vpu_for_runs(run, call->constants, call->in, call->in, call->out, &own->window);
}

static void plain(const nn_call *call, const nn_piece *own) {
    nn_lut_s8(call->constants, call->in, call->out, &own->window);
}

void nn_lut_s8_vpu(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window) {
    const int by_words = out->channels % 4 == 0 && nn_vpu_can_load(in) && nn_vpu_can_load(out);
    const nn_call call = {.body = by_words ? piece : plain,
                          .constants = constants,
                          .in = in,
                          .out = out,
                          .kernel_h = 1,
                          .stride_h = 1,
                          .pixelwise = 1,
                          .issues = 5 * out->channels};
    nn_split(&call, window);
}
