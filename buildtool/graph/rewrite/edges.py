"""Changes a network's interface: int8 in place of float, and inputs in the order that the network needs.

The QUANTIZE after a float input and the DEQUANTIZE before a float output are removed. The int8 tensors become
the network's inputs and outputs, and have the scale and zero point. An input that an operator reads as
float32 stays as it is, and so does an output that an operator computes in float32.

If only a RESHAPE or TRANSPOSE reads an input, its output becomes the input. The application fills the input
in that order, as a whole or row by row. `Tensor.source` of the input and the emitted header describe its
relation to the input in the file.
"""

from dataclasses import replace

from buildtool.base.errors import UnsupportedError
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.rewrite.islands import undo_round_trips
from buildtool.graph.types import DType, OpKind, Source, Tensor, TransposeAttrs

_HINT = "remove this input from the network"


def strip_float_edges(draft: Draft) -> None:
    """Turns float inputs that are only quantised, and float outputs that are only dequantised, into int8."""
    undo_round_trips(draft)
    for node in draft.each(OpKind.DETECTION_POSTPROCESS):
        _take_bytes(draft, node)
    for position, t in enumerate(draft.inputs):
        if draft.tensors[t].dtype == DType.FLOAT32:
            _strip_input(draft, position)
    for t in list(dict.fromkeys(draft.outputs)):
        if draft.tensors[t].dtype == DType.FLOAT32:
            producer = draft.producer(t)
            if producer is not None and producer.kind == OpKind.DETECTION_POSTPROCESS:
                continue
            if producer is None or producer.kind != OpKind.DEQUANTIZE:
                continue
            draft.outputs = [producer.inputs[0] if output == t else output for output in draft.outputs]
            if not draft.readers(t):
                draft.remove(producer)


def _take_bytes(draft: Draft, node: Node) -> None:
    """Makes a DETECTION_POSTPROCESS read the int8 tensors from which its float operands were dequantised."""
    for position, t in enumerate(node.inputs):
        producer = draft.producer(t)
        if producer is None or producer.kind != OpKind.DEQUANTIZE:
            continue
        if draft.tensors[producer.inputs[0]].dtype == DType.INT8:
            draft.set_input(node, position, producer.inputs[0])
            if not draft.readers(t) and t not in draft.outputs:
                draft.remove(producer)


def _strip_input(draft: Draft, position: int) -> None:
    """Removes the QUANTIZE that reads network input `position`. Its output becomes the network input.

    Nothing changes if another operator reads the input, or if it is quantised in two ways.
    """
    source = draft.inputs[position]
    readers = draft.readers(source)
    if not readers or source in draft.outputs:
        text = "no operator reads a float32 network input"
        raise UnsupportedError(text, tensor=draft.tensors[source].name, hint=_HINT)
    first = readers[0].outputs[0]
    if not all(r.kind is OpKind.QUANTIZE and draft.same_quantization(first, r.outputs[0]) for r in readers):
        return
    for reader in readers:
        target = reader.outputs[0]
        if target != first:
            draft.redirect(target, first)
            draft.outputs = [first if t == target else t for t in draft.outputs]
        draft.remove(reader)
    draft.inputs[position] = first


def order_inputs(draft: Draft) -> None:
    """Replaces every input with the output of the RESHAPE or TRANSPOSE that is its only reader."""
    count = len(draft.inputs) - len(draft.states)  # the application does not fill states
    for position, t in enumerate(draft.inputs[:count]):
        readers = draft.readers(t)
        if len(readers) == 1 and t not in draft.outputs and readers[0].outputs[0] not in draft.outputs:
            reordered = _reorder(draft, t, readers[0])
            if reordered is not None:
                target = readers[0].outputs[0]
                draft.remove(readers[0])
                draft.tensors[target] = reordered
                draft.inputs[position] = target


def _reorder(draft: Draft, source: int, reader: Node) -> Tensor | None:
    """Returns the input `source` in the element order of its reader's output, None if it must not change."""
    old, out = draft.tensors[source], draft.tensors[reader.outputs[0]]
    origin = old.source
    if not draft.same_quantization(source, reader.outputs[0]) or origin is None or origin.perm:
        return None
    if isinstance(reader.attrs, TransposeAttrs):
        return replace(out, name=old.name, source=Source(origin.index, reader.attrs.perm))
    is_image = len(out.shape) == 4 and out.shape[0] == 1 < out.shape[1]
    if reader.kind in ALIAS_KINDS and is_image and len(old.shape) < 4 and old.nhwc[1] == 1:
        return replace(out, name=old.name)  # now it has rows, which the application may fill one by one
    return None
