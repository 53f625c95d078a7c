"""Reads a .tflite file into a Graph. For any bytes the result is a sound Graph or an error.

Only the first subgraph is read. Operators that only compute shapes do not become operators of the graph.
Memory stays within a constant times the file's size. Constants are read-only arrays over the file's bytes.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import NoReturn

from buildtool.base.errors import BuildtoolError, Hint, ModelError, UnsupportedError, suggest
from buildtool.graph.consistency import check_graph
from buildtool.graph.floats import MOST_WEIGHTS
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import ALIAS_KINDS, DEFS
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.ops.types import CallForm, OpDef, load
from buildtool.graph.refusals import QUANTISE, join_errors, name_files
from buildtool.graph.tflite import support
from buildtool.graph.tflite.flat import (
    BUILTIN_NAMES,
    HALF_BYTES,
    MALFORMED,
    OUTSIDE,
    FlatFile,
    RawOperator,
    RawTensor,
)
from buildtool.graph.tflite.network import REEXPORT, TYPES, Network, hint_for
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.shapevalues import follow_shapes
from buildtool.graph.tflite.uint8 import RECONVERT_HINT, Int8Network, computes_in_uint8
from buildtool.graph.types import DType, Graph, OpKind

_FLOAT = f"quantise it: {QUANTISE}"
_HYBRID = f"only the weights are quantised; quantise the activations too: {QUANTISE}"
_PARTLY = (
    "quantise the float network that the file was made from: "
    "buildtool quantize FLOAT.tflite --data DATA -o INT8.tflite"
)
_INTEGERS = {"int8", "uint8", "int16"}  # types of quantised activations
_FLOATS = {"float32", "float16"}
_INT16 = (
    "convert with OpsSet.TFLITE_BUILTINS_INT8 in place of "
    "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, or leave this operator out"
)
_NO_INT8 = "the operator has no int8 form"
_INT4 = "4 bits are read for the filters of int8 layers alone: quantise the others to 8 bits"
# What ai-edge-quantizer, and so `buildtool quantize`, leaves in float32, and TFLite's converter quantises.
_CONVERTED = {OpKind.SVDF, OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM}
# Operators that may have uint32: those of the signal library, and those that move their numbers.
_UNSIGNED = (
    ALIAS_KINDS | set(CUSTOM) | {OpKind.CAST} | {k for k, one in DEFS.items() if one.call is CallForm.COPIES}
)
_EDGES = {OpKind.QUANTIZE, OpKind.DEQUANTIZE, OpKind.DETECTION_POSTPROCESS}
# Compilers for accelerators, by what the names of their custom operators start with.
_COMPILERS = {
    "ethos-u": "Vela, Arm's compiler for Ethos-U",
    "edgetpu-custom-op": "the Edge TPU compiler",
    "NeutronGraph": "NXP's Neutron converter",
    "XC_": "xcore-opt, XMOS's optimiser",
}


def read_model(data: bytes, *, path: str = "") -> Graph:
    """Returns the network in the .tflite file `data`. `path` is only used in errors.

    Raises ModelError if the bytes are not a well-formed model. Raises UnsupportedError if the model is not a
    static integer network of supported operators.
    """
    with report_damage(path):
        graph = _read(FlatFile(data))
        check_graph(graph)
        return graph


@contextlib.contextmanager
def report_damage(path: str) -> Iterator[None]:
    """Adds the path to errors that are raised while a file is read.

    Exceptions that damaged bytes cause become a ModelError.
    """
    try:
        yield
    except BuildtoolError as error:
        raise name_files(error.at(path=path), path) from error.__cause__
    except MALFORMED as error:
        text = "the file is damaged: an offset or a length points outside the file"
        raise ModelError(text, path=path, hint="convert or download the model again") from error


def _read(file: FlatFile) -> Graph:
    """Returns the network in the file. Raises one error that names all operators that are refused."""
    network, refused = Network(file), list[UnsupportedError]()
    follow_shapes(network)
    for op in file.operators:
        if op.outputs and all(t in network.known for t in op.outputs):
            continue
        try:
            _read_operator(network, op)
        except UnsupportedError as error:
            error.at(operator=op.place)
            refused.append(error)
        except BuildtoolError as error:
            raise error.at(operator=op.place) from error.__cause__
    if refused:
        raise _name_float_network(file, join_errors(refused))
    _refuse_variable(file, file.inputs)
    inputs, outputs = (tuple(map(network.place, side)) for side in (file.inputs, file.outputs))
    states = network.variables.states()
    tensors, ops = network.tensors, network.ops
    if computes_in_uint8(tensors, ops) and not states:
        shifted = Int8Network(tensors)
        shifted.convert(ops, inputs, outputs)
        tensors, ops = shifted.tensors, shifted.ops
    return graph_of(file.name, tensors, ops, inputs, outputs, states)


def _name_float_network(file: FlatFile, error: UnsupportedError) -> UnsupportedError:
    """Corrects the hints of `error`, which tell the user to quantise the file.

    If only a part of the network is float, the file cannot be quantised; the hint then names the original
    float network. A float network with constants outside the flatbuffer can be quantised as it is.
    """
    with contextlib.suppress(
        BuildtoolError, *MALFORMED
    ):  # a tensor that has not been read yet may be damaged
        whole = FlatFile(file.data, outside=True)
        is_line = any(QUANTISE in hint.text for hint in error.hints)
        if is_line and computes_in_integers(whole):
            texts = (hint.text.replace(_FLOAT, _PARTLY).replace(_HYBRID, _PARTLY) for hint in error.hints)
            error.hints = tuple(map(Hint, texts, (hint.settings for hint in error.hints)))
        elif OUTSIDE in error.text and computes_in_floats(whole) and not computes_in_integers(whole):
            error.hints = (Hint(_FLOAT),)
    return error


def computes_in_integers(file: FlatFile) -> bool:
    """Whether an operator reads or writes quantised activations. Conversions do not count."""
    return _has_activations(file, _INTEGERS)


def computes_in_floats(file: FlatFile) -> bool:
    """Whether an operator reads or writes float activations. Conversions do not count."""
    return _has_activations(file, _FLOATS)


def _has_activations(file: FlatFile, types: set[str]) -> bool:
    for op in file.operators:
        if op.name not in _EDGES:
            for raw in (file.tensor(t) for t in (*op.inputs, *op.outputs) if t >= 0):
                is_integer = raw.dtype in _INTEGERS
                if raw.dtype in types and not raw.is_constant and not (is_integer and raw.quant is None):
                    return True
    return False


def _read_operator(network: Network, op: RawOperator) -> None:
    if op.code in support.VARIABLES:
        network.variables.read(op)
        return
    found = support.CUSTOM.get(op.custom) or support.SPELLINGS.get(op.code)
    if found is None:
        _refuse_operator(network.file, op)
    if not op.outputs:
        raise ModelError("the operator has no output")
    definition, spelling = found
    _refuse_variable(network.file, op.outputs)
    mentioned = [network.file.tensor(t) for t in (*op.inputs, *op.outputs) if t >= 0]
    wide = DType.INT16 if definition.whole else ""  # type of some of its weights and states
    if all(t.dtype != DType.FLOAT32 for t in mentioned):
        if definition.no_integers:
            raise UnsupportedError(_NO_INT8, hint=definition.no_integers)
    elif definition.kind not in _EDGES:
        _check_floats(network, definition, mentioned)
    if definition.int4_weights and mentioned[1].dtype == HALF_BYTES and mentioned[0].dtype == DType.INT8:
        del mentioned[1]
    _check_types(op, definition.kind, [t for t in mentioned if t.dtype != wide])
    load("graph.tflite", spelling.decode)(OpView(network, op))


def _refuse_variable(file: FlatFile, tensors: Iterable[int]) -> None:
    """Refuses network inputs or operator outputs that are marked as variable. Only states may be marked."""
    for raw in map(file.tensor, tensors):
        if raw.variable:
            hint = "use a variable tensor only as the state of an operator"
            text = "a variable tensor is a network input or the output of an operator"
            raise UnsupportedError(text, tensor=raw.name, hint=hint)


def _end_before(file: FlatFile, op: RawOperator) -> list[Hint]:
    """Returns a hint to end the network before `op`, if it is the last operator; [] otherwise."""
    made = {t for other in file.operators if other is not op for t in other.outputs}
    rest = [t for t in file.outputs if t not in op.outputs]
    read = {t for other in file.operators for t in other.inputs}
    if not set(op.outputs) <= set(file.outputs) - read or not made >= set(rest):
        return []
    names = [file.tensor(t).name for t in (*rest, *(t for t in op.inputs if t in made))]
    if not names or not all(names) or any("," in name for name in names):
        return []
    return [suggest("the application computes this operator", outputs=",".join(dict.fromkeys(names)))]


def _refuse_operator(file: FlatFile, op: RawOperator) -> NoReturn:
    """Raises UnsupportedError with a hint for an operator that is not supported."""
    if op.name.startswith("CUSTOM(Flex"):
        hint = "re-export without SELECT_TF_OPS: replace the TensorFlow operator in the network"
        raise UnsupportedError("a TensorFlow (flex) operator", hint=hint)
    if op.name.startswith("CUSTOM("):
        for start, compiler in _COMPILERS.items():
            if op.name.startswith(f"CUSTOM({start}"):
                hint = f"give the .tflite file from before {compiler}"
                raise UnsupportedError(f"the operator was made by {compiler}", hint=hint)
        hints = [Hint("replace it with built-in operators in the network"), *_end_before(file, op)]
        raise UnsupportedError("a custom operator", hint=hints)
    if op.code in support.CONTROL_FLOW:
        raise UnsupportedError("control flow", hint="unroll loops and remove conditions before exporting")
    if op.code in support.STATEFUL:
        hint = "unroll the network over time; make its state an input and an output"
        raise UnsupportedError("an operator with state", hint=hint)
    if op.code in support.NO_INT8:
        raise UnsupportedError(_NO_INT8, hint=support.NO_INT8[op.code])
    names = ", ".join(sorted(BUILTIN_NAMES[code] for code in support.SPELLINGS))
    raise UnsupportedError("the operator is not supported", hint=f"use one of {names}")


def _check_floats(network: Network, definition: OpDef, tensors: list[RawTensor]) -> None:
    """Refuses a float32 operator without a float32 form, with int8 weights, or in a large float network."""
    is_hybrid = "int8" in {t.dtype for t in tensors if t.is_constant}
    text = "hybrid: int8 weights, float32 activations" if is_hybrid else "float32 activations"
    if definition.kind in _CONVERTED:
        text += " of an operator that 'buildtool quantize' leaves as it is"
        raise UnsupportedError(text, hint=REEXPORT)
    if is_hybrid:
        raise UnsupportedError(text, hint=_HYBRID)
    if not definition.floats:
        raise UnsupportedError(text, hint=_FLOAT)
    if (count := network.float_weights) >= MOST_WEIGHTS:
        text += f" in a network of {count:,} float32 weights"
        raise UnsupportedError(f"{text}: at most {MOST_WEIGHTS - 1:,} run as they are", hint=_FLOAT)


def _check_types(op: RawOperator, kind: OpKind, tensors: list[RawTensor]) -> None:
    """Refuses types that are not supported. The hints say what to change in the export."""
    types = {t.dtype for t in tensors}
    if types & {"float16", "bfloat16", "float64"}:
        raise UnsupportedError(f"{sorted(types)[0]} values: a float network", hint=_FLOAT)
    if HALF_BYTES in types:
        raise UnsupportedError("int4 values", hint=_INT4)
    if "int16" in types and op.code not in support.INT16:
        raise UnsupportedError(
            f"int16 activations (16x8 quantisation): {support.TYPES[DType.INT16](op.code)}", hint=_INT16
        )
    if {"uint8", "int8"} <= types and op.name != OpKind.QUANTIZE:
        raise UnsupportedError("uint8 and int8 in one operator", hint=RECONVERT_HINT)
    others = sorted(types - TYPES | (types & {"uint32", "uint64"} if kind not in _UNSIGNED else set()))
    if others:
        raise UnsupportedError(f"values of type {others[0]}", hint=hint_for(others[0]))
