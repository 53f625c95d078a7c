/* The network `dut` behind MLPerf Tiny's interface: its input, an inference, its results.
 *
 * TH_INPUT says what the runner sends: signed bytes as they are (TH_INT8: keyword spotting), pixels
 * (TH_UINT8: both image networks), or float features (TH_FLOAT: anomaly detection, whose result is
 * the mean squared difference of output and input). TH_MODEL_VERSION is the benchmark's name.
 */
#include "dut.h"
#include "protocol.h"
#include "th.h"

#include <string.h>

#define TH_INT8 0
#define TH_UINT8 1
#define TH_FLOAT 2

#define INPUTS DUT_INPUT0_ELEMENTS
#define OUTPUTS DUT_OUTPUT0_ELEMENTS
#define SENT_BYTES (TH_INPUT == TH_FLOAT ? 4 * INPUTS : INPUTS)

NN_STATIC_ASSERT(DUT_INPUTS == 1 && DUT_OUTPUTS == 1, "a network of the benchmark");
NN_STATIC_ASSERT(SENT_BYTES <= MAX_DB_INPUT_SIZE, "the runner can send the input");
NN_STATIC_ASSERT(TH_INPUT != TH_FLOAT || INPUTS == OUTPUTS, "an autoencoder");

DUT_DEFINE_ARENA_IN(arena, ".bss.nn_arena.dut");

static nn_status status;
static int has_input, has_output;

void th_final_initialize(void) {
    status = dut_init(arena, sizeof arena, dut_weights);
    if (status != NN_OK) {
        th_printf("e-[The network cannot be initialized: status %d]\r\n", (int)status);
    }
}

/* ---- input ------------------------------------------------------------------------------- */

#if TH_INPUT == TH_FLOAT
static float features[INPUTS];

/* round(value / scale) + zero point, halves away from zero, as the official firmware computes it.
 */
static int8_t quantised(float value, nn_quantization unit) {
    const float scaled = value / unit.scale;
    const float clamped = scaled < -512.0F ? -512.0F : scaled > 512.0F ? 512.0F : scaled;
    const int32_t whole = clamped == clamped ? (int32_t)clamped : 0; /* not a number: 0 */
    const float rest = clamped - (float)whole;
    const int32_t sum = whole + (rest >= 0.5F) - (rest <= -0.5F) + unit.zero_point;
    return (int8_t)(sum < -128 ? -128 : sum > 127 ? 127 : sum);
}

static void convert(int8_t *input) {
    const nn_quantization unit = dut_input_quantization(0);
    (void)ee_get_buffer((uint8_t *)features, sizeof features);
    for (int i = 0; i < INPUTS; i++) {
        input[i] = quantised(features[i], unit);
    }
}
#else
static void convert(int8_t *input) {
    (void)ee_get_buffer((uint8_t *)input, INPUTS);
    for (int i = 0; TH_INPUT == TH_UINT8 && i < INPUTS; i++) {
        input[i] = (int8_t)((uint8_t)input[i] - 128);
    }
}
#endif

void th_load_tensor(void) {
    const size_t bytes = ee_get_buffer(NULL, MAX_DB_INPUT_SIZE);
    has_input = bytes == SENT_BYTES;
    has_output = 0;
    if (has_input) {
        convert((int8_t *)(void *)dut_input(0));
    } else {
        th_printf("e-[Input db has %u bytes, expected %u]\r\n", (unsigned)bytes,
                  (unsigned)SENT_BYTES);
    }
}

/* ---- an inference ------------------------------------------------------------------------ */

/* The plan keeps the input (image=resident), so that every inference computes the same. */
void th_infer(void) {
    if (has_input && status == NN_OK) {
        status = dut_invoke();
        has_output = status == NN_OK;
        th_watch_clock();
    }
}

void th_pre(void) {
}

void th_post(void) {
}

/* ---- results ----------------------------------------------------------------------------- */

/* Prints a value with three digits, rounded as "%0.3f" does: exactly, ties to even. */
static void print_value(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    th_printf(bits >> 31 != 0 ? "-" : "");
    const int32_t exponent = (int32_t)(bits >> 23 & 255) - 150;
    const uint64_t thousand = (uint64_t)((bits & 0x7FFFFF) | 0x800000) * 1000;
    if (exponent >= 0) { /* 2^23 and more, or not a number: not a result of these networks */
        th_printf("inf");
        return;
    }
    const int32_t shift = -exponent < 40 ? -exponent : 40; /* from there on it is 0.000 */
    const uint64_t half = (uint64_t)1 << (shift - 1), rest = thousand & (2 * half - 1);
    uint32_t rounded = (uint32_t)(thousand >> shift);
    rounded += rest > half || (rest == half && (rounded & 1) != 0);
    th_printf("%u.%03u", (unsigned)(rounded / 1000), (unsigned)(rounded % 1000));
}

#if TH_INPUT == TH_FLOAT
static void print_results(const int8_t *output, nn_quantization unit) {
    float sum = 0.0F;
    for (int i = 0; i < OUTPUTS; i++) {
        const float difference = (float)(output[i] - unit.zero_point) * unit.scale - features[i];
        sum += difference * difference;
    }
    print_value(sum / (float)OUTPUTS);
}
#else
static void print_results(const int8_t *output, nn_quantization unit) {
    for (int i = 0; i < OUTPUTS; i++) {
        th_printf(i == 0 ? "" : ",");
        print_value((float)(output[i] - unit.zero_point) * unit.scale);
    }
}
#endif

void th_results(void) {
    if (!has_output) {
        th_printf("e-[No results: status %d]\r\n", (int)status);
        return;
    }
    th_printf("m-results-[");
    print_results((const int8_t *)(void *)dut_output(0), dut_output_quantization(0));
    th_printf("]\r\n");
}
