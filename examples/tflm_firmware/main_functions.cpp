// Person detection, written for TFLM's MicroInterpreter: nothing in this file knows of buildtool.
#include "main_functions.h"

#include "interpreter.h"
#include "print.h"

namespace {

constexpr int kTensorArenaSize = 136 * 1024;
alignas(16) uint8_t tensor_arena[kTensorArenaSize];

const tflite::Model *model = nullptr;
tflite::MicroInterpreter *interpreter = nullptr;
TfLiteTensor *input = nullptr;
uint32_t pixels = 1; // the state of the camera below

void print_number(long value) {
    char digits[24] = {};
    char *at = digits + sizeof digits - 1;
    unsigned long rest =
        value < 0 ? 0UL - static_cast<unsigned long>(value) : static_cast<unsigned long>(value);
    do {
        *--at = static_cast<char>('0' + rest % 10UL);
        rest /= 10UL;
    } while (rest != 0);
    if (value < 0) {
        *--at = '-';
    }
    print(" ");
    print(at);
}

// Where a camera would deliver a picture: a linear congruential generator's upper byte.
TfLiteStatus get_image(int8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        pixels = pixels * 1664525U + 1013904223U;
        to[i] = static_cast<int8_t>(static_cast<int32_t>(pixels >> 24) - 128);
    }
    return kTfLiteOk;
}

} // namespace

void setup() {
    model = tflite::GetModel(g_person_detect_model_data);
    if (model->version() != TFLITE_SCHEMA_VERSION) {
        print("the model has another schema\n");
        return;
    }
    static tflite::MicroMutableOpResolver<5> resolver;
    resolver.AddAveragePool2D();
    resolver.AddConv2D();
    resolver.AddDepthwiseConv2D();
    resolver.AddReshape();
    resolver.AddSoftmax();
    static tflite::MicroInterpreter static_interpreter(model, resolver, tensor_arena,
                                                       kTensorArenaSize);
    if (static_interpreter.AllocateTensors() != kTfLiteOk) {
        print("AllocateTensors failed\n");
        return;
    }
    interpreter = &static_interpreter;
    input = interpreter->input(0);
    print("input:");
    for (int i = 0; i < input->dims->size; i++) {
        print_number(input->dims->data[i]);
    }
    print(", arena:");
    print_number(static_cast<long>(interpreter->arena_used_bytes()));
    print("\n");
}

void loop() {
    if (interpreter == nullptr || get_image(input->data.int8, input->bytes) != kTfLiteOk) {
        return;
    }
    if (interpreter->Invoke() != kTfLiteOk) {
        print("Invoke failed\n");
        return;
    }
    const TfLiteTensor *output = interpreter->output(0);
    print("scores:");
    for (size_t i = 0; i < output->bytes; i++) {
        print_number(output->data.int8[i]);
    }
    print(", percent:"); // that the last class, a person, is there
    const float score =
        static_cast<float>(output->data.int8[output->bytes - 1] - output->params.zero_point);
    print_number(static_cast<long>(score * output->params.scale * 100.0F + 0.5F));
    print("\n");
}
