// The interpreter of the application: the one file that differs between TFLM and buildtool.
#ifndef INTERPRETER_H
#define INTERPRETER_H

#ifdef WITH_TFLM
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/models/person_detect_model_data.h"
#include "tensorflow/lite/schema/schema_generated.h"
#else
#include "nn_tflm.h"
#include "person_detect.h"

NN_TFLM_MODEL(g_person_detect_model_data, person_detect, PERSON_DETECT);
namespace tflite = buildtool;
using namespace buildtool;
#endif

#endif
