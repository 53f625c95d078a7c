"""Reads ONNX files for analysis: operators as the file has them, constants folded, as a Flow.

Operators on constants alone are folded, their results are weights. Where the file is quantised by
QuantizeLinear and DequantizeLinear, values are stored as the quantised side has them: the pair is
part of the operators around it, as int8 runtimes execute such files.
"""

from __future__ import annotations

import math

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.flow import Flow, FlowOp, Value
from buildtool.graph.onnxfile import Node, OnnxFile, read_file, shown

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
        file = read_file(data, size)
        return _Reader(file, file.batch if batch is None else batch).flow()
    except BuildtoolError as error:
        raise error.at(path=path) from None


class _Reader:
    """Collects values and operators."""

    def __init__(self, file: OnnxFile, batch: int) -> None:
        self.file, self.batch = file, batch
        self.constant = set(file.constants)
        self.same: dict[str, tuple[str, ...]] = {}  # dequantised -> what is read instead of it
        self.places: dict[str, int] = {}
        self.values: list[Value] = []
        self.ops: list[FlowOp] = []
        self.stored = _quantised(file)
        self.used = {*file.outputs, *(name for node in file.nodes for name in node.inputs)}

    def flow(self) -> Flow:
        """Reads all operators."""
        inputs = tuple(self._value(name) for name in self.file.inputs)
        made = set(self.file.inputs)
        for node in self.file.nodes:
            try:
                self._read(node, made)
            except BuildtoolError as error:
                raise error.at(operator=node.place) from None
        outputs = []
        for name in self.file.outputs:
            final = self.same.get(name, (self.stored.get(name, name),))[0]
            if final in self.constant:
                continue
            if name not in made and name not in self.same:
                raise ModelError("an output that no operator makes", tensor=shown(name))
            outputs.append(self._value(final))
        if not self.ops:
            raise UnsupportedError("nothing is computed: all operators work on constants")
        return Flow(
            self.file.name, tuple(self.values), tuple(self.ops), inputs, tuple(dict.fromkeys(outputs))
        )

    def _read(self, node: Node, made: set[str]) -> None:
        reads = [name for name in node.inputs if name]
        for name in reads:
            if name not in made and name not in self.constant and name not in self.same:
                raise ModelError("reads what no earlier operator makes", tensor=shown(name))
        outputs = [name for name in node.outputs if name]
        if not outputs:
            raise ModelError("has no output")
        if any(name in made or name in self.constant or name in self.same for name in outputs):
            raise ModelError("makes a tensor that is there already", tensor=shown(outputs[0]))
        if node.kind == "DequantizeLinear":
            first, *rest = (found for name in reads for found in self.same.get(name, (name,)))
            self.same[outputs[0]] = (first, *(name for name in rest if name in self.constant))
        elif node.kind in _SHAPES or all(self._is_constant(name) for name in reads):
            self.constant.update(outputs)
        elif node.kind == "QuantizeLinear" and self.stored.get(node.inputs[0]) == outputs[0]:
            made.add(outputs[0])
        else:
            self._append(node, reads, outputs, made)

    def _append(self, node: Node, reads: list[str], outputs: list[str], made: set[str]) -> None:
        self._check(node, reads, outputs)
        data = reads[:1] if node.kind in _PARAMETERS else reads
        found = [self.stored.get(n, n) for name in data for n in self.same.get(name, (name,))]
        writes = [self.stored.get(name, name) for name in outputs]
        made.update(outputs)
        self.ops.append(
            FlowOp(
                shown(outputs[0]),
                node.kind,
                tuple(dict.fromkeys(self._value(name) for name in found)),
                tuple(self._value(name) for name in writes if self._counts(name, writes[0])),
                node.index,
            )
        )

    def _check(self, node: Node, reads: list[str], outputs: list[str]) -> None:
        """Shape inference lets these pass, though the network cannot run on such an input."""
        known = [self.file.tensors.get(name) for name in (*reads[:2], outputs[0])]
        if node.kind == "Reshape" and known[0] and known[-1]:
            good = math.prod(known[0][0]) == math.prod(known[-1][0])
        elif node.kind == "Gemm" and len(known) == 3 and known[0] and known[1]:
            good = bool(set(known[0][0]) & set(known[1][0]))
        else:
            return
        if not good:
            shapes = " and ".join(str(list(k[0])) for k in known if k)
            hint = "this network takes no other image size than the file's"
            raise ModelError(f"shapes {shapes} do not fit together", hint=hint)

    def _is_constant(self, name: str) -> bool:
        return all(found in self.constant for found in self.same.get(name, (name,)))

    def _counts(self, name: str, first: str) -> bool:
        """Results beside the first one count only if they are used (a mask of Dropout is not)."""
        return name == first or name in self.used

    def _value(self, name: str) -> int:
        if name not in self.places:
            size, weight = self.file.size(name), name in self.constant
            if not weight:
                size = -(-size // max(self.file.batch, 1)) * self.batch
            self.places[name] = len(self.values)
            self.values.append(Value(shown(name), size, weight))
        return self.places[name]


def _quantised(file: OnnxFile) -> dict[str, str]:
    """Results that are stored quantised at once: name -> the QuantizeLinear's output.

    Those that nothing but one QuantizeLinear reads; a network's input is not among them.
    """
    readers: dict[str, list[Node]] = {}
    for node in file.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    kept = {*file.outputs, *file.inputs, *file.constants}
    return {
        name: nodes[0].outputs[0]
        for name, nodes in readers.items()
        if name
        and name not in kept
        and len(nodes) == 1
        and nodes[0].kind == "QuantizeLinear"
        and nodes[0].inputs[0] == name
        and nodes[0].outputs
    }
