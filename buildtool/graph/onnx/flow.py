"""Reads ONNX files for analysis: operators as the file has them, constants folded, as a Flow.

Operators on constants alone are folded, their results are weights. Where the file is quantised by
QuantizeLinear and DequantizeLinear, values are stored as the quantised side has them: the pair is
part of the operators around it, as int8 runtimes execute such files.
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

MOST_SECONDS = 120  # that shape inference may take in all
SMALL = 1024  # elements: larger constants are not shapes, so inference need not see them
_BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64}
_BITS |= {15: 128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8}

# Only the first input is data, the others say how; of a constant these take no memory worth counting.
_PARAMETERS = frozenset(
    """Reshape Slice Pad Resize Upsample Tile Expand Unsqueeze Squeeze Split Clip TopK CumSum Dropout
    ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare""".split()
)
_SHAPES = frozenset({"Shape", "Size"})  # their results are known before anything runs


def read_onnx(
    data: bytes, *, path: str = "", batch: int | None = None, size: tuple[int, int] | None = None
) -> Flow:
    """The network of an .onnx file, for `batch` images (default: the file's) of `size` rows, columns.

    Every activation is taken to grow with the batch. Raises ModelError, UnsupportedError, and
    ToolError where the onnx package is missing.
    """
    try:
        return _Reader(parse_model(data), size, batch).flow()
    except BuildtoolError as error:
        raise error.at(path=path) from None


class _Reader:
    """The main graph with its tensors' shapes; `size`, `batch`: see `read_onnx`."""

    def __init__(self, model: Proto, size: tuple[int, int] | None, batch: int | None) -> None:
        graph = model.graph
        self.name = printable_name(graph.name)
        self.nodes = [_node(node, i) for i, node in enumerate(graph.node)]
        self.outputs = list(dict.fromkeys(value.name for value in graph.output))
        self.tensors, small = _constants(graph)
        self.constant = set(self.tensors)
        inputs = [value for value in graph.input if value.name not in self.constant]
        self.inputs = [value.name for value in inputs]
        for value in inputs:
            dims = value.type.tensor_type.shape.dim
            if size is not None and len(dims) == 4:
                dims[2].dim_value, dims[3].dim_value = size
            fix_input(value, "give --size ROWSxCOLUMNS, or export with a fixed input shape")
        self.is_resized = size is not None
        self.stored = self._stored()
        self._infer(_without_values(model, small, self.is_resized))
        batches = {self.tensors[n][0][0] for n in self.inputs if n in self.tensors and self.tensors[n][0]}
        self.own_batch = batches.pop() if len(batches) == 1 else 1
        self.batch = self.own_batch if batch is None else batch
        self.same: dict[str, tuple[str, ...]] = {}  # dequantised -> what is read instead of it
        self.computed = set(self.inputs)
        self.places: dict[str, int] = {}
        self.values: list[Value] = []
        self.ops: list[FlowOp] = []
        self.used = {*self.outputs, *(name for node in self.nodes for name in node.inputs)}

    def _stored(self) -> dict[str, str]:
        """Results that nothing but one QuantizeLinear reads -> its output."""
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
        """Notes the tensors' shapes that follow from the model."""
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
        """Reads all operators."""
        inputs = tuple(self._value(name) for name in self.inputs)
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
                raise ModelError("an output that no operator makes", tensor=printable_name(name))
            outputs.append(self._value(final))
        if not self.ops:
            raise UnsupportedError("nothing is computed: all operators work on constants")
        return Flow(self.name, tuple(self.values), tuple(self.ops), inputs, tuple(dict.fromkeys(outputs)))

    def _read(self, node: Node) -> None:
        reads = [name for name in node.inputs if name]
        for name in reads:
            if name not in self.computed and name not in self.constant and name not in self.same:
                raise ModelError("reads what no earlier operator makes", tensor=printable_name(name))
        outputs = [name for name in node.outputs if name]
        if not outputs:
            raise ModelError("has no output")
        if any(name in self.computed or name in self.constant or name in self.same for name in outputs):
            raise ModelError("makes a tensor that is there already", tensor=printable_name(outputs[0]))
        if node.kind == "DequantizeLinear":
            first, *rest = self._really(reads)
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
            sources = [self.stored.get(name, name) for name in self._really(data)]
            writes = [self.stored.get(name, name) for name in outputs]
            self.computed.update(outputs)
            inputs = tuple(dict.fromkeys(self._value(name) for name in sources))
            # Results beside the first one count only if they are used (a mask of Dropout is not).
            results = tuple(self._value(name) for name in writes if name == writes[0] or name in self.used)
            self.ops.append(FlowOp(printable_name(outputs[0]), node.kind, inputs, results, node.index))

    def _really(self, names: list[str]) -> list[str]:
        """What is read in place of dequantised values."""
        return [source for name in names for source in self.same.get(name, (name,))]

    def _check(self, node: Node, reads: list[str], outputs: list[str]) -> None:
        """Shape inference lets these pass, though the network cannot run on such an input."""
        known = [self.tensors.get(name) for name in (*reads[:2], outputs[0])]
        if node.kind == "Reshape" and known[0] and known[-1]:
            good = math.prod(known[0][0]) == math.prod(known[-1][0])
        elif node.kind == "Gemm" and len(known) == 3 and known[0] and known[1]:
            good = bool(set(known[0][0]) & set(known[1][0]))
        else:
            return
        if not good:
            shapes = " and ".join(str(list(k[0])) for k in known if k)
            hint = "use the image size of the file" if self.is_resized else "export the network again"
            raise ModelError(f"shapes {shapes} do not fit together", hint=hint)

    def _value(self, name: str) -> int:
        if name not in self.places:
            if name not in self.tensors:
                hint = "give the input's size (--size), or export with fixed shapes"
                text = "its shape cannot be told from the file"
                raise UnsupportedError(text, tensor=printable_name(name), hint=hint)
            dims, bits = self.tensors[name]
            size, weight = -(-math.prod(dims) * bits // 8), name in self.constant  # 4 bits: two in a byte
            if not weight:
                size = -(-size // max(self.own_batch, 1)) * self.batch
            self.places[name] = len(self.values)
            self.values.append(Value(printable_name(name), size, weight))
        return self.places[name]


# ---- the file ------------------------------------------------------------------------------------


def _node(node: Proto, index: int) -> Node:
    kind = printable_name(node.op_type)
    if any(a.HasField("g") or len(a.graphs) for a in node.attribute):
        hint = "fix conditions and unroll loops before exporting"
        raise UnsupportedError("control flow", operator=f"#{index} {kind}", hint=hint)
    return Node(kind, tuple(node.input), tuple(node.output), index=index)


def _constants(graph: Proto) -> tuple[dict[str, Tensor], list[Proto]]:
    """Every initializer's shape and type, and those whose values shapes may depend on."""
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


def _without_values(model: Proto, small: list[Proto], resized: bool) -> bytes:
    """The model for shape inference: large constants as inputs of their shape, old shapes dropped."""
    from onnx import helper

    graph, keep = model.graph, {t.name for t in small}
    declared = {v.name for v in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in keep and tensor.name not in declared:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            graph.input.append(value)
    kept = [t for t in graph.initializer if t.name in keep]
    del graph.initializer[:], graph.sparse_initializer[:]
    graph.initializer.extend(kept)
    if resized:
        del graph.value_info[:]
    for value in graph.output if resized else ():
        value.type.tensor_type.ClearField("shape")
    return bytes(model.SerializeToString())


def _infer_shapes(data: bytes) -> Proto:
    """The model with the shapes that onnx infers; in another process, which may fail or be stopped."""
    import onnx

    command = [sys.executable, "-P", str(Path(__file__).with_name("shapes.py"))]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise ModelError("shape inference does not end", hint="simplify the model") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = printable_name(said[-1]) if said else f"ended with status {done.returncode}"
        raise ModelError(f"shape inference failed: {why}", hint="check the model with onnx.checker")
    model = onnx.ModelProto()
    model.ParseFromString(done.stdout)
    return model
