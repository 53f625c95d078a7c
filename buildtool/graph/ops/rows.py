"""Functions of all channels of a pixel: softmax and its kin."""

from buildtool.graph import quantrules
from buildtool.graph.geometry import demand
from buildtool.graph.ops.types import CallForm, Int16, OpDef, Plain, Shape, Trait
from buildtool.graph.quantrules import QuantError, is_share, per_tensor, quants
from buildtool.graph.types import DType, Graph, Op, OpKind, Quantization, SoftmaxAttrs


def _of_rows_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(len(shapes[0]) >= 1, f"{op.kind} needs at least one dimension")
    return shapes[0]


def _softmax_types(graph: Graph, op: Op) -> None:
    """As all of int16, and of int8 to int16."""
    out = graph.tensors[op.outputs[0]]
    if out.dtype is DType.INT16 and graph.tensors[op.inputs[0]].dtype is DType.INT8:
        per_tensor(graph.tensors[op.inputs[0]], DType.INT8)
        if not is_share(out):
            raise QuantError("the output's scale must be 1/65536, its zero point -32768", out)
        return
    quantrules.int16_too(graph, op)


def _log_softmax_scales(graph: Graph, op: Op) -> None:
    """LOG_SOFTMAX: steps of the input are counted in 2^-26, more than one and at most 30 bits."""
    (x,), _ = quants(graph, op)
    if not 2.0**-26 < x.scale < 16.0:
        text = f"a log softmax of values of scale {x.scale:g}, which has to be above 2^-26 and below 16"
        raise QuantError(text, graph.tensors[op.inputs[0]])


DEFS = (
    OpDef(
        OpKind.SOFTMAX,
        _of_rows_shape,
        "softmax:softmax",
        int16=Int16.READ,
        written=Plain(2, "SoftmaxOptions", SoftmaxAttrs, {"Beta": "beta"}, needed=True),
        types=_softmax_types,
        output=Quantization((1 / 256,), (-128,)),
        wide="wide:softmax",
        call=CallForm.ONE_TO_ONE,
        case="softmax",
        traits=Trait.PIXEL,
        onnx={"Softmax": "elementwise:softmax"},
    ),
    OpDef(
        OpKind.L2_NORMALIZATION,
        _of_rows_shape,
        "softmax:l2_normalization",
        decode="pointwise:l2_normalization",
        int16=Int16.NOT_IN_LITERT,
        written=Plain(2, "L2NormOptions"),
        output=Quantization((1 / 128,), (0,)),
        call=CallForm.ONE_TO_ONE,
        case="normalised",
        traits=Trait.PIXEL,
        no_uint8="LiteRT's uint8 kernel rounds at another place",
    ),
    OpDef(
        OpKind.LOG_SOFTMAX,
        _of_rows_shape,
        "softmax:log_softmax",
        int16=Int16.NOT_IN_LITERT,
        written=Plain(2, "LogSoftmaxOptions"),
        output=Quantization((1 / 16,), (127,)),
        quant=_log_softmax_scales,
        call=CallForm.ONE_TO_ONE,
        case="normalised",
        traits=Trait.PIXEL,
        onnx={"LogSoftmax": "elementwise:softmax"},
    ),
)
