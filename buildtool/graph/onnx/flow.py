"""Reads ONNX files for analysis as a Flow: the file's operators with the sizes of their values.

Operators on constants alone are folded: their results are weights. A value between a QuantizeLinear and a
DequantizeLinear has its quantised size. The pair is part of the operators around it, as int8 runtimes execute
such files.
"""

import math
import subprocess
import sys
from pathlib import Path

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.flow import Flow, FlowOp, Value
from buildtool.graph.onnx.file import (
    EXTERNAL,
    Node,
    Proto,
    check_dims,
    fix_input,
    parse_model,
    printable_name,
)

Tensor = tuple[tuple[int, ...], int]  # dimensions, bits of an element

MOST_SECONDS = 120  # upper limit for the time of shape inference
SMALL = 1024  # elements; larger constants are not shapes, so shape inference does not need their values
_BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64}
_BITS |= {15: 128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8}

# Only the first input of these is data. The others are parameters, whose memory is too small to count.
_PARAMETERS = frozenset(
    """Reshape Slice Pad Resize Upsample Tile Expand Unsqueeze Squeeze Split Clip TopK CumSum Dropout
    ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare""".split()
)
_SHAPES = frozenset({"Shape", "Size"})  # their results follow from the shapes in the file


def read_onnx(
    data: bytes, *, path: str = "", batch: int | None = None, size: tuple[int, int] | None = None
) -> Flow:
    """Returns the network of an .onnx file. `batch` and `size` (rows, columns) default to those of the file.

    The size of every activation is assumed to be proportional to the batch. Raises ModelError or
    UnsupportedError, or ToolError if the package onnx is missing.
    """
    try:
        return _Reader(parse_model(data), size, batch).flow()
    except BuildtoolError as error:
        raise error.at(path=path) from None


class _Reader:
    """The main graph with the shapes of its tensors. `read_onnx` explains `size` and `batch`."""

    def __init__(self, model: Proto, size: tuple[int, int] | None, batch: int | None) -> None:
        graph = model.graph
        self.name = printable_name(graph.name)
        self.nodes = [_read_node(node, i) for i, node in enumerate(graph.node)]
        self.outputs = list(dict.fromkeys(value.name for value in graph.output))
        self.tensors, small = _read_constants(graph)
        self.constant = set(self.tensors)
        inputs = [value for value in graph.input if value.name not in self.constant]
        self.inputs = [value.name for value in inputs]
        for value in inputs:
            dims = value.type.tensor_type.shape.dim
            if size is not None and len(dims) == 4:
                dims[2].dim_value, dims[3].dim_value = size
            fix_input(value, "give --size ROWSxCOLUMNS, or export with a fixed input shape")
        self.is_resized = size is not None
        self.stored = self._find_stored()
        self._infer(_drop_values(model, small, self.is_resized))
        batches = {self.tensors[n][0][0] for n in self.inputs if n in self.tensors and self.tensors[n][0]}
        self.own_batch = batches.pop() if len(batches) == 1 else 1
        self.batch = self.own_batch if batch is None else batch
        self.same: dict[str, tuple[str, ...]] = {}  # dequantised tensor -> tensors that are read instead
        self.computed = set(self.inputs)
        self.places: dict[str, int] = {}
        self.values: list[Value] = []
        self.ops: list[FlowOp] = []
        self.used = {*self.outputs, *(name for node in self.nodes for name in node.inputs)}

    def _find_stored(self) -> dict[str, str]:
        """Returns {tensor: output of its reader} for each result whose only reader is a QuantizeLinear."""
        stored: dict[str, str] = {}
        readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                readers.setdefault(name, []).append(node)
        for name in readers.keys() - {"", *self.outputs, *self.inputs, *self.constant}:
            node, *others = readers[name]
            if node.kind == "QuantizeLinear" and node.inputs[0] == name and node.outputs and not others:
                stored[name] = node.outputs[0]
        return stored

    def _infer(self, model: bytes) -> None:
        """Notes the shapes of tensors that onnx infers from the model."""
        inferred = _infer_shapes(model).graph
        for value in (*inferred.input, *inferred.value_info, *inferred.output):
            if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
                continue
            kind = value.type.tensor_type
            sizes = tuple(int(d.dim_value) if d.HasField("dim_value") else -1 for d in kind.shape.dim)
            is_known = min(sizes, default=0) >= 0 and kind.elem_type in _BITS
            if is_known and value.name not in self.constant:
                self.tensors[value.name] = sizes, _BITS[kind.elem_type]

    def flow(self) -> Flow:
        """Reads all operators and returns the network."""
        inputs = tuple(self._add_value(name) for name in self.inputs)
        for node in self.nodes:
            try:
                self._read(node)
            except BuildtoolError as error:
                raise error.at(operator=node.place) from None
        outputs = []
        for name in self.outputs:
            final = self.same.get(name, (self.stored.get(name, name),))[0]
            if final in self.constant:
                continue
            if name not in self.computed and name not in self.same:
                raise ModelError("a network output that no operator makes", tensor=printable_name(name))
            outputs.append(self._add_value(final))
        if not self.ops:
            raise UnsupportedError("the network computes nothing: all its operators work on constants")
        return Flow(self.name, tuple(self.values), tuple(self.ops), inputs, tuple(dict.fromkeys(outputs)))

    def _read(self, node: Node) -> None:
        reads = [name for name in node.inputs if name]
        for name in reads:
            if name not in self.computed and name not in self.constant and name not in self.same:
                raise ModelError("reads a tensor that no earlier operator makes", tensor=printable_name(name))
        outputs = [name for name in node.outputs if name]
        if not outputs:
            raise ModelError("has no output")
        if any(name in self.computed or name in self.constant or name in self.same for name in outputs):
            raise ModelError("makes a tensor that exists already", tensor=printable_name(outputs[0]))
        if node.kind == "DequantizeLinear":
            first, *rest = self._find_sources(reads)
            self.same[outputs[0]] = (first, *(name for name in rest if name in self.constant))
        elif node.kind in _SHAPES or all(
            n in self.constant for name in reads for n in self.same.get(name, (name,))
        ):
            self.constant.update(outputs)
        elif node.kind == "QuantizeLinear" and self.stored.get(node.inputs[0]) == outputs[0]:
            self.computed.add(outputs[0])
        else:
            self._check(node, reads, outputs)
            data = reads[:1] if node.kind in _PARAMETERS else reads
            sources = [self.stored.get(name, name) for name in self._find_sources(data)]
            writes = [self.stored.get(name, name) for name in outputs]
            self.computed.update(outputs)
            inputs = tuple(dict.fromkeys(self._add_value(name) for name in sources))
            # Results after the first one count only if they are used (e.g. the mask of Dropout is not).
            results = tuple(
                self._add_value(name) for name in writes if name == writes[0] or name in self.used
            )
            self.ops.append(FlowOp(printable_name(outputs[0]), node.kind, inputs, results, node.index))

    def _find_sources(self, names: list[str]) -> list[str]:
        """Returns `names`, with each dequantised tensor replaced by the inputs of its DequantizeLinear."""
        return [source for name in names for source in self.same.get(name, (name,))]

    def _check(self, node: Node, reads: list[str], outputs: list[str]) -> None:
        """Refuses a Reshape or Gemm whose shapes do not fit together. Shape inference accepts them."""
        tensors = [self.tensors.get(name) for name in (*reads[:2], outputs[0])]
        if node.kind == "Reshape" and tensors[0] and tensors[-1]:
            good = math.prod(tensors[0][0]) == math.prod(tensors[-1][0])
        elif node.kind == "Gemm" and len(tensors) == 3 and tensors[0] and tensors[1]:
            good = bool(set(tensors[0][0]) & set(tensors[1][0]))
        else:
            return
        if not good:
            shapes = " and ".join(str(list(t[0])) for t in tensors if t)
            hint = "use the input size of the file" if self.is_resized else "export the network again"
            raise ModelError(f"shapes {shapes} do not fit together", hint=hint)

    def _add_value(self, name: str) -> int:
        if name not in self.places:
            if name not in self.tensors:
                hint = "give the input's size (--size), or export with fixed shapes"
                text = "the file does not determine its shape"
                raise UnsupportedError(text, tensor=printable_name(name), hint=hint)
            dims, bits = self.tensors[name]
            size, is_weight = -(-math.prod(dims) * bits // 8), name in self.constant
            if not is_weight:
                size = -(-size // max(self.own_batch, 1)) * self.batch
            self.places[name] = len(self.values)
            self.values.append(Value(printable_name(name), size, is_weight))
        return self.places[name]


# ---- the file ------------------------------------------------------------------------------------


def _read_node(node: Proto, index: int) -> Node:
    kind = printable_name(node.op_type)
    if any(a.HasField("g") or len(a.graphs) for a in node.attribute):
        hint = "make conditions constant and unroll loops before exporting"
        raise UnsupportedError("control flow", operator=f"#{index} {kind}", hint=hint)
    return Node(kind, tuple(node.input), tuple(node.output), index=index)


def _read_constants(graph: Proto) -> tuple[dict[str, Tensor], list[Proto]]:
    """Returns ({initializer: (shape, bits per element)}, small initializers, which may determine shapes)."""
    tensors: dict[str, Tensor] = {}
    small = []
    for tensor in (*graph.initializer, *(s.values for s in graph.sparse_initializer)):
        dims = check_dims(tensor.dims, tensor.name)
        if tensor.data_type not in _BITS:
            text = f"elements of type {tensor.data_type}"
            raise UnsupportedError(text, tensor=printable_name(tensor.name))
        tensors[tensor.name] = (dims, _BITS[tensor.data_type])
        if math.prod(dims) <= SMALL and tensor.data_location != EXTERNAL:
            small.append(tensor)
    return tensors, small


def _drop_values(model: Proto, small: list[Proto], resized: bool) -> bytes:
    """Returns the model's bytes for shape inference. Inputs of the same shape replace large constants.

    With `resized`, the shapes that the file declares are dropped.
    """
    from onnx import helper

    graph, names = model.graph, {t.name for t in small}
    declared = {v.name for v in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in names and tensor.name not in declared:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            graph.input.append(value)
    initializers = [t for t in graph.initializer if t.name in names]
    del graph.initializer[:], graph.sparse_initializer[:]
    graph.initializer.extend(initializers)
    if resized:
        del graph.value_info[:]
    for value in graph.output if resized else ():
        value.type.tensor_type.ClearField("shape")
    return bytes(model.SerializeToString())


def _infer_shapes(data: bytes) -> Proto:
    """Returns the model with the shapes that onnx infers. onnx runs in its own process, as it may crash."""
    import onnx

    command = [sys.executable, "-P", str(Path(__file__).with_name("shapes.py"))]
    try:
        process = subprocess.run(command, input=data, capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise ModelError("shape inference takes too long", hint="simplify the model") from None
    if process.returncode:
        lines = process.stderr.decode(errors="replace").strip().splitlines()
        why = printable_name(lines[-1]) if lines else f"ended with status {process.returncode}"
        raise ModelError(f"shape inference failed: {why}", hint="check the model with onnx.checker")
    model = onnx.ModelProto()
    model.ParseFromString(process.stdout)
    return model
