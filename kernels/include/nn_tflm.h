/* TensorFlow Lite Micro's MicroInterpreter over a network's C interface, for C++11 and later.
 *
 *     #include "person_detect.h"
 *     #include "nn_tflm.h"
 *     NN_TFLM_MODEL(g_person_detect_model_data, person_detect, PERSON_DETECT);
 *     namespace tflite = buildtool;
 *     using namespace buildtool;
 *
 * An application written for TFLM compiles behind these lines as it is. There are no exceptions, no
 * run-time types, no heap and no code before main. NN_TFLM_MODEL stands once for each network of a
 * program, at file scope; other files declare `extern const buildtool::Model` of the same name.
 *
 * Differences: operators are the plan's, and a resolver adds none. The interpreter of a network is
 * one, as its memory is. data of an image that comes row by row is null: see SetRowSource.
 * Networks in two arenas, and more than 8 inputs or outputs, do not compile.
 */
#ifndef NN_TFLM_H
#define NN_TFLM_H
#ifdef __cplusplus

#include "nn_image.h"

#ifndef TFLITE_SCHEMA_VERSION
#define TFLITE_SCHEMA_VERSION (3)
#endif

namespace buildtool {

enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };

/* The numbers are TFLite's. */
enum TfLiteType {
    kTfLiteNoType = 0,
    kTfLiteFloat32 = 1,
    kTfLiteInt32 = 2,
    kTfLiteUInt8 = 3,
    kTfLiteInt64 = 4,
    kTfLiteInt16 = 7,
    kTfLiteInt8 = 9,
    kTfLiteUInt64 = 13,
    kTfLiteUInt32 = 16
};

constexpr int kMostDims = 8;

struct TfLiteIntArray {
    int size;
    int data[kMostDims];
};

struct TfLiteQuantizationParams {
    float scale;
    int32_t zero_point;
};

union TfLitePtrUnion {
    void *data;
    const void *data_const;
    char *raw;
    const char *raw_const;
    int8_t *int8;
    uint8_t *uint8;
    int16_t *i16;
    int32_t *i32;
    uint32_t *u32;
    int64_t *i64;
    uint64_t *u64;
    float *f;
    bool *b;
};

struct TfLiteTensor {
    TfLiteType type;
    TfLitePtrUnion data;
    const TfLiteIntArray *dims;
    TfLiteQuantizationParams params;
    size_t bytes;
};

template <typename T> inline T *GetTensorData(TfLiteTensor *tensor) {
    return tensor != nullptr ? static_cast<T *>(tensor->data.data) : nullptr;
}

template <typename T> inline const T *GetTensorData(const TfLiteTensor *tensor) {
    return tensor != nullptr ? static_cast<const T *>(tensor->data.data_const) : nullptr;
}

/* What the interface says of an input or output. */
struct Shape {
    TfLiteType type;
    size_t bytes;
    TfLiteIntArray dims;
};

/* A network: constants, and the functions of its C interface; null: it has no such function. */
struct Model {
    nn_status (*init)(void *arena, size_t arena_bytes, const void *weights);
    nn_status (*invoke)(void);
    nn_status (*reset)(void);
    nn_status (*set_row_source)(nn_row_source *deliver, void *context);
    int8_t *(*input)(int index);
    const int8_t *(*output)(int index);
    nn_quantization (*input_quantization)(int index);
    nn_quantization (*output_quantization)(int index);
    const uint8_t *weights;
    size_t arena_bytes;
    size_t inputs, outputs;
    const Shape *shapes;   /* of the inputs, then of the outputs */
    TfLiteTensor *tensors; /* the same; AllocateTensors fills them */

    uint32_t version() const {
        return TFLITE_SCHEMA_VERSION;
    }
};

constexpr const Model *GetModel(const Model &model) {
    return &model;
}

class MicroInterpreter {
  public:
    /* The arena is aligned to 16 bytes; arena_used_bytes() of it are used. */
    constexpr MicroInterpreter(const Model *model, uint8_t *arena, size_t arena_bytes)
        : model_(model), arena_(arena), arena_bytes_(arena_bytes), status_(NN_OK) {
    }

    template <typename Resolver>
    constexpr MicroInterpreter(const Model *model, const Resolver &, uint8_t *arena,
                               size_t arena_bytes)
        : model_(model), arena_(arena), arena_bytes_(arena_bytes), status_(NN_OK) {
    }

    MicroInterpreter(const MicroInterpreter &) = delete;
    MicroInterpreter &operator=(const MicroInterpreter &) = delete;

    /* Checks the weights, and says where inputs and outputs are. */
    TfLiteStatus AllocateTensors() {
        status_ = model_->init(arena_, arena_bytes_, model_->weights);
        for (size_t i = 0; i < inputs_size(); i++) {
            int8_t *const data = model_->input != nullptr ? model_->input(Index(i)) : nullptr;
            Fill(i, data, model_->input_quantization(Index(i)));
        }
        for (size_t i = 0; i < outputs_size(); i++) {
            /* Applications read outputs; TFLM's pointers to them are not const either. */
            int8_t *const data = const_cast<int8_t *>(model_->output(Index(i)));
            Fill(inputs_size() + i, data, model_->output_quantization(Index(i)));
        }
        return Result();
    }

    TfLiteStatus Invoke() {
        status_ = model_->invoke();
        return Result();
    }

    /* Gives the state of a network with state its initial values. */
    TfLiteStatus Reset() {
        status_ = model_->reset != nullptr ? model_->reset() : NN_OK;
        return Result();
    }

    /* Null where there is no such input or output. */
    TfLiteTensor *input(size_t index) {
        return index < inputs_size() ? &model_->tensors[index] : nullptr;
    }
    TfLiteTensor *output(size_t index) {
        return index < outputs_size() ? &model_->tensors[inputs_size() + index] : nullptr;
    }
    size_t inputs_size() const {
        return model_->inputs;
    }
    size_t outputs_size() const {
        return model_->outputs;
    }

    template <typename T> T *typed_input_tensor(size_t index) {
        return GetTensorData<T>(input(index));
    }
    template <typename T> T *typed_output_tensor(size_t index) {
        return GetTensorData<T>(output(index));
    }

    /* Bytes of the arena; the state between invokes lies outside of it. */
    size_t arena_used_bytes() const {
        return model_->arena_bytes;
    }
    TfLiteStatus initialization_status() const {
        return kTfLiteOk;
    }

    /* Beyond TFLM: what the last call returned, as docs/reference/c-interface.md lists it. */
    nn_status status() const {
        return status_;
    }

    /* Who delivers the rows of an image that comes row by row; kTfLiteError for other networks. */
    TfLiteStatus SetRowSource(nn_row_source *deliver, void *context) {
        status_ = model_->set_row_source != nullptr ? model_->set_row_source(deliver, context)
                                                    : NN_ERROR_NO_ROW_SOURCE;
        return Result();
    }

  private:
    static int Index(size_t i) {
        return static_cast<int>(i);
    }
    TfLiteStatus Result() const {
        return status_ == NN_OK ? kTfLiteOk : kTfLiteError;
    }

    void Fill(size_t at, int8_t *data, nn_quantization unit) {
        const Shape &shape = model_->shapes[at];
        TfLiteTensor &tensor = model_->tensors[at];
        tensor.type = shape.type;
        tensor.bytes = shape.bytes;
        tensor.dims = &shape.dims;
        tensor.params.scale = unit.scale;
        tensor.params.zero_point = unit.zero_point;
        tensor.data.int8 = data;
    }

    const Model *model_;
    uint8_t *arena_;
    size_t arena_bytes_;
    nn_status status_;
};

/* For the constructor that takes a resolver. Operators are the plan's: what is added has no effect.
 */
template <unsigned int most = 128> class MicroMutableOpResolver {
  public:
#define NN_TFLM_OPERATOR(name)                                                                     \
    template <typename... Unused> TfLiteStatus Add##name(Unused...) {                              \
        return kTfLiteOk;                                                                          \
    }
    /* clang-format off */
    NN_TFLM_OPERATOR(Abs) NN_TFLM_OPERATOR(Add) NN_TFLM_OPERATOR(AddN) NN_TFLM_OPERATOR(ArgMax)
    NN_TFLM_OPERATOR(ArgMin) NN_TFLM_OPERATOR(AssignVariable) NN_TFLM_OPERATOR(AveragePool2D)
    NN_TFLM_OPERATOR(BatchMatMul) NN_TFLM_OPERATOR(BatchToSpaceNd) NN_TFLM_OPERATOR(BroadcastArgs)
    NN_TFLM_OPERATOR(BroadcastTo) NN_TFLM_OPERATOR(CallOnce) NN_TFLM_OPERATOR(Cast)
    NN_TFLM_OPERATOR(Ceil) NN_TFLM_OPERATOR(Concatenation) NN_TFLM_OPERATOR(Conv2D)
    NN_TFLM_OPERATOR(Cos) NN_TFLM_OPERATOR(CumSum) NN_TFLM_OPERATOR(DepthToSpace)
    NN_TFLM_OPERATOR(DepthwiseConv2D) NN_TFLM_OPERATOR(Dequantize) NN_TFLM_OPERATOR(Div)
    NN_TFLM_OPERATOR(EmbeddingLookup) NN_TFLM_OPERATOR(Equal) NN_TFLM_OPERATOR(Elu)
    NN_TFLM_OPERATOR(Exp) NN_TFLM_OPERATOR(ExpandDims) NN_TFLM_OPERATOR(Fill)
    NN_TFLM_OPERATOR(Floor) NN_TFLM_OPERATOR(FloorDiv) NN_TFLM_OPERATOR(FloorMod)
    NN_TFLM_OPERATOR(FullyConnected) NN_TFLM_OPERATOR(Gather) NN_TFLM_OPERATOR(GatherNd)
    NN_TFLM_OPERATOR(Greater) NN_TFLM_OPERATOR(GreaterEqual) NN_TFLM_OPERATOR(HardSwish)
    NN_TFLM_OPERATOR(If) NN_TFLM_OPERATOR(L2Normalization) NN_TFLM_OPERATOR(L2Pool2D)
    NN_TFLM_OPERATOR(LeakyRelu) NN_TFLM_OPERATOR(Less) NN_TFLM_OPERATOR(LessEqual)
    NN_TFLM_OPERATOR(Log) NN_TFLM_OPERATOR(LogSoftmax) NN_TFLM_OPERATOR(LogicalAnd)
    NN_TFLM_OPERATOR(LogicalNot) NN_TFLM_OPERATOR(LogicalOr) NN_TFLM_OPERATOR(Logistic)
    NN_TFLM_OPERATOR(MaxPool2D) NN_TFLM_OPERATOR(Maximum) NN_TFLM_OPERATOR(Mean)
    NN_TFLM_OPERATOR(Minimum) NN_TFLM_OPERATOR(MirrorPad) NN_TFLM_OPERATOR(Mul)
    NN_TFLM_OPERATOR(Neg) NN_TFLM_OPERATOR(NotEqual) NN_TFLM_OPERATOR(Pack) NN_TFLM_OPERATOR(Pad)
    NN_TFLM_OPERATOR(PadV2) NN_TFLM_OPERATOR(Prelu) NN_TFLM_OPERATOR(Quantize)
    NN_TFLM_OPERATOR(ReadVariable) NN_TFLM_OPERATOR(ReduceMax) NN_TFLM_OPERATOR(ReduceMin)
    NN_TFLM_OPERATOR(Relu) NN_TFLM_OPERATOR(Relu6) NN_TFLM_OPERATOR(Reshape)
    NN_TFLM_OPERATOR(ResizeBilinear) NN_TFLM_OPERATOR(ResizeNearestNeighbor)
    NN_TFLM_OPERATOR(Round) NN_TFLM_OPERATOR(Rsqrt) NN_TFLM_OPERATOR(SelectV2)
    NN_TFLM_OPERATOR(Shape) NN_TFLM_OPERATOR(Sin) NN_TFLM_OPERATOR(Slice)
    NN_TFLM_OPERATOR(Softmax) NN_TFLM_OPERATOR(SpaceToBatchNd) NN_TFLM_OPERATOR(SpaceToDepth)
    NN_TFLM_OPERATOR(Split) NN_TFLM_OPERATOR(SplitV) NN_TFLM_OPERATOR(Sqrt)
    NN_TFLM_OPERATOR(Square) NN_TFLM_OPERATOR(SquaredDifference) NN_TFLM_OPERATOR(StridedSlice)
    NN_TFLM_OPERATOR(Squeeze) NN_TFLM_OPERATOR(Sub) NN_TFLM_OPERATOR(Sum) NN_TFLM_OPERATOR(Svdf)
    NN_TFLM_OPERATOR(Tanh) NN_TFLM_OPERATOR(Transpose) NN_TFLM_OPERATOR(TransposeConv)
    NN_TFLM_OPERATOR(UnidirectionalSequenceLSTM) NN_TFLM_OPERATOR(Unpack)
    NN_TFLM_OPERATOR(VarHandle) NN_TFLM_OPERATOR(While) NN_TFLM_OPERATOR(ZerosLike)
/* clang-format on */
#undef NN_TFLM_OPERATOR
};

#define NN_TFLM_KERNEL(name)                                                                       \
    inline int Register_##name##_INT8() {                                                          \
        return 0;                                                                                  \
    }
NN_TFLM_KERNEL(AVERAGE_POOL_2D)
NN_TFLM_KERNEL(CONV_2D)
NN_TFLM_KERNEL(DEPTHWISE_CONV_2D)
NN_TFLM_KERNEL(FULLY_CONNECTED)
NN_TFLM_KERNEL(MAX_POOL_2D)
NN_TFLM_KERNEL(SOFTMAX)
NN_TFLM_KERNEL(SVDF)
#undef NN_TFLM_KERNEL

inline void InitializeTarget() {
}

/* Prints nothing: print with what your board has. */
template <typename... Unused> inline void MicroPrintf(const char *, Unused...) {
}

namespace detail {

template <typename T> struct TypeOf;
template <> struct TypeOf<int8_t> {
    static constexpr TfLiteType type = kTfLiteInt8;
};
template <> struct TypeOf<uint8_t> {
    static constexpr TfLiteType type = kTfLiteUInt8;
};
template <> struct TypeOf<int16_t> {
    static constexpr TfLiteType type = kTfLiteInt16;
};
template <> struct TypeOf<int32_t> {
    static constexpr TfLiteType type = kTfLiteInt32;
};
template <> struct TypeOf<int64_t> {
    static constexpr TfLiteType type = kTfLiteInt64;
};
template <> struct TypeOf<uint32_t> {
    static constexpr TfLiteType type = kTfLiteUInt32;
};
template <> struct TypeOf<uint64_t> {
    static constexpr TfLiteType type = kTfLiteUInt64;
};
template <> struct TypeOf<float> {
    static constexpr TfLiteType type = kTfLiteFloat32;
};

/* Dimensions of a shape, whose unused places are 0. */
constexpr int Count(TfLiteIntArray dims, int from = 0) {
    return from < kMostDims && dims.data[from] != 0 ? Count(dims, from + 1) : from;
}

constexpr TfLiteIntArray Counted(TfLiteIntArray dims) {
    return TfLiteIntArray{Count(dims),
                          {dims.data[0], dims.data[1], dims.data[2], dims.data[3], dims.data[4],
                           dims.data[5], dims.data[6], dims.data[7]}};
}

using OneArena = nn_status (*)(void *, size_t, const void *);
using TwoArenas = nn_status (*)(void *, size_t, void *, size_t, const void *);
constexpr OneArena OnlyArena(OneArena init) {
    return init;
}
constexpr OneArena OnlyArena(TwoArenas) {
    return nullptr;
}
/* By type: with -fno-delete-null-pointer-checks no address is known to differ from null. */
constexpr bool HasOneArena(OneArena) {
    return true;
}
constexpr bool HasOneArena(TwoArenas) {
    return false;
}

} // namespace detail
} // namespace buildtool

/* Whether a macro is defined as a number. */
#define NN_TFLM_TEXT(words) #words
#define NN_TFLM_HAS(words) (NN_TFLM_TEXT(words)[0] >= '0' && NN_TFLM_TEXT(words)[0] <= '9')

#define NN_TFLM_SHAPE(tensor)                                                                      \
    {buildtool::detail::TypeOf<tensor##_TYPE>::type, tensor##_BYTES,                               \
     buildtool::detail::Counted({0, tensor##_SHAPE})},
#define NN_TFLM_SHAPES_1(side) NN_TFLM_SHAPE(side##0)
#define NN_TFLM_SHAPES_2(side) NN_TFLM_SHAPES_1(side) NN_TFLM_SHAPE(side##1)
#define NN_TFLM_SHAPES_3(side) NN_TFLM_SHAPES_2(side) NN_TFLM_SHAPE(side##2)
#define NN_TFLM_SHAPES_4(side) NN_TFLM_SHAPES_3(side) NN_TFLM_SHAPE(side##3)
#define NN_TFLM_SHAPES_5(side) NN_TFLM_SHAPES_4(side) NN_TFLM_SHAPE(side##4)
#define NN_TFLM_SHAPES_6(side) NN_TFLM_SHAPES_5(side) NN_TFLM_SHAPE(side##5)
#define NN_TFLM_SHAPES_7(side) NN_TFLM_SHAPES_6(side) NN_TFLM_SHAPE(side##6)
#define NN_TFLM_SHAPES_8(side) NN_TFLM_SHAPES_7(side) NN_TFLM_SHAPE(side##7)
#define NN_TFLM_SHAPES_(count, side) NN_TFLM_SHAPES_##count(side)
#define NN_TFLM_SHAPES(count, side) NN_TFLM_SHAPES_(count, side)

/* Defines `buildtool::Model name` for network `net`, whose macros begin with NET. A function that
 * the network does not have is declared, and never referred to. */
#define NN_TFLM_MODEL(name, net, NET)                                                              \
    static_assert(buildtool::detail::HasOneArena(&net##_init),                                     \
                  "this plan has two arenas: use the C interface");                                \
    static_assert(NET##_INPUTS >= 1 && NET##_INPUTS <= 8 && NET##_OUTPUTS <= 8,                    \
                  "nn_tflm.h takes 1 to 8 inputs and outputs: use the C interface");               \
    extern "C" int8_t *net##_input(int index);                                                     \
    extern "C" nn_status net##_reset(void);                                                        \
    extern "C" nn_status net##_set_row_source(nn_row_source *deliver, void *context);              \
    static constexpr buildtool::Shape name##_shapes[] = {                                          \
        NN_TFLM_SHAPES(NET##_INPUTS, NET##_INPUT) NN_TFLM_SHAPES(NET##_OUTPUTS, NET##_OUTPUT)};    \
    static buildtool::TfLiteTensor name##_tensors[NET##_INPUTS + NET##_OUTPUTS];                   \
    extern const buildtool::Model name;                                                            \
    constexpr buildtool::Model name = {                                                            \
        buildtool::detail::OnlyArena(&net##_init),                                                 \
        &net##_invoke,                                                                             \
        NN_TFLM_HAS(NET##_STATE_BYTES) || NN_TFLM_HAS(NET##_WINDOW_ROWS) ? &net##_reset : nullptr, \
        NN_TFLM_HAS(NET##_ROWS) ? &net##_set_row_source : nullptr,                                 \
        NN_TFLM_HAS(NET##_ROWS) && NET##_INPUTS == 1 ? nullptr : &net##_input,                     \
        &net##_output,                                                                             \
        &net##_input_quantization,                                                                 \
        &net##_output_quantization,                                                                \
        net##_weights,                                                                             \
        NET##_ARENA_BYTES,                                                                         \
        NET##_INPUTS,                                                                              \
        NET##_OUTPUTS,                                                                             \
        name##_shapes,                                                                             \
        name##_tensors};                                                                           \
    NN_STATIC_ASSERT(NET##_INTERFACE == 2, "nn_tflm.h is for another version of the C interface")

#endif
#endif
