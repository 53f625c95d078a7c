// Networks of every form behind nn_tflm.h: prints the outputs of each for made-up inputs.
#include "nn_tflm.h"

#include "heard.h"
#include "seen.h"
#include "sides.h"
#include "wake.h"

extern "C" int printf(const char *format, ...);

NN_TFLM_MODEL(wake_model, wake, WAKE);
NN_TFLM_MODEL(seen_model, seen, SEEN);
NN_TFLM_MODEL(heard_model, heard, HEARD);
NN_TFLM_MODEL(sides_model, sides, SIDES);

namespace tflite = buildtool;
using namespace buildtool;

namespace {

alignas(16) uint8_t arena[96 * 1024];
uint32_t noise = 1;

void fill(int8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        noise = noise * 1664525U + 1013904223U;
        to[i] = static_cast<int8_t>(static_cast<int32_t>(noise >> 24) - 128);
    }
}

int deliver(void *rows, int32_t row, int8_t *data) {
    if (row != (*static_cast<int32_t *>(rows))++) {
        return -1;
    }
    fill(data, SEEN_ROW_BYTES);
    return 0;
}

bool is(bool condition, const char *what) {
    if (!condition) {
        printf("not: %s\n", what);
    }
    return condition;
}

void show(const char *name, tflite::MicroInterpreter &interpreter) {
    for (size_t i = 0; i < interpreter.outputs_size(); i++) {
        const TfLiteTensor *output = interpreter.output(i);
        printf("%s %u:", name, static_cast<unsigned>(i));
        for (size_t k = 0; k < output->bytes; k++) {
            printf(" %d", output->data.int8[k]);
        }
        printf("\n");
    }
}

void run(const char *name, tflite::MicroInterpreter &interpreter, int times) {
    noise = 1;
    for (int time = 0; time < times; time++) {
        for (size_t i = 0; i < interpreter.inputs_size(); i++) {
            noise = times == 1 ? 1 : noise; // of several inputs, each begins anew
            fill(interpreter.typed_input_tensor<int8_t>(i), interpreter.input(i)->bytes);
        }
        is(interpreter.Invoke() == kTfLiteOk, "invoked");
    }
    show(name, interpreter);
}

tflite::MicroInterpreter small(&wake_model, arena, 16);
tflite::MicroInterpreter wake(tflite::GetModel(wake_model), arena, sizeof arena);
tflite::MicroInterpreter seen(&seen_model, tflite::MicroMutableOpResolver<2>(), arena,
                              sizeof arena);
tflite::MicroInterpreter heard(&heard_model, arena, sizeof arena);
tflite::MicroInterpreter sides(&sides_model, arena, sizeof arena);

} // namespace

int main() {
    is(small.AllocateTensors() == kTfLiteError && small.status() == NN_ERROR_ARENA, "too small");
    is(small.input(0)->data.int8 == nullptr && small.Invoke() == kTfLiteError, "not initialised");

    is(wake.AllocateTensors() == kTfLiteOk, "wake has tensors");
    const TfLiteTensor *input = wake.input(0);
    is(input->type == kTfLiteInt8 && input->bytes == 490 && input->dims->size == 4,
       "type and shape");
    is(input->dims->data[1] == 49 && input->dims->data[3] == 1, "rows and channels");
    is(input->params.scale == wake_input_quantization(0).scale, "scale");
    is(input->params.zero_point == wake_input_quantization(0).zero_point, "zero point");
    is(wake.input(1) == nullptr && wake.output(1) == nullptr && wake.outputs_size() == 1,
       "no more");
    is(wake.arena_used_bytes() == WAKE_ARENA_BYTES, "bytes of the arena");
    is(wake.SetRowSource(deliver, nullptr) == kTfLiteError && wake.Reset() == kTfLiteOk, "neither");
    run("wake", wake, 1);

    int32_t rows = 0;
    is(seen.AllocateTensors() == kTfLiteOk && seen.input(0)->data.int8 == nullptr, "by rows");
    is(seen.Invoke() == kTfLiteError && seen.status() == NN_ERROR_NO_ROW_SOURCE, "no source");
    is(seen.SetRowSource(deliver, &rows) == kTfLiteOk, "a source");
    noise = 1;
    is(seen.Invoke() == kTfLiteOk && rows == SEEN_ROWS, "all rows");
    show("seen", seen);

    is(heard.AllocateTensors() == kTfLiteOk && heard.Reset() == kTfLiteOk, "state");
    run("heard", heard, 49);

    is(sides.AllocateTensors() == kTfLiteOk && sides.inputs_size() == 2, "two inputs");
    is(sides.input(1)->dims->size == 3 && sides.input(1)->dims->data[2] == 4, "the second shape");
    run("sides", sides, 1);
    return 0;
}
