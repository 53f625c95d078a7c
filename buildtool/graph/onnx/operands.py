"""What the names of a file stand for: who makes and reads them, and the numbers of the constant ones."""

from __future__ import annotations

from collections.abc import Collection

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx.file import Array, Node, OnnxFile, shown
from buildtool.graph.onnx.values import Constant, Quantized, Value

MOST_AHEAD = 256  # names looked at to find what is ahead or behind


class Operands:
    """Values by name, as far as the network has been read."""

    def __init__(self, file: OnnxFile) -> None:
        self.file = file
        self.values: dict[str, Value] = {}
        self.makers: dict[str, Node] = {}
        self.readers: dict[str, list[Node]] = {}
        self.outputs = frozenset(file.outputs)

    def link(self, nodes: tuple[Node, ...]) -> None:
        """Notes who reads what."""
        for node in nodes:
            for name in dict.fromkeys(node.inputs):
                self.readers.setdefault(name, []).append(node)
            self.makers.update(dict.fromkeys(node.outputs, node))

    def value(self, name: str) -> Value:
        """What a name stands for."""
        if not name:
            raise ModelError("an operand is missing")
        if name not in self.values:
            if name not in self.file.initializers:
                raise ModelError("reads what no earlier operator makes", tensor=shown(name))
            self.values[name] = Constant(self.file.constant(name))
        return self.values[name]

    def alone(self, name: str) -> bool:
        """Whether one operator reads a tensor, and nothing else sees it."""
        return len(self.readers.get(name, ())) == 1 and name not in self.outputs

    def origin(self, name: str, through: Collection[str]) -> Node | None:
        """Who makes a tensor, looking back through those kinds of operators; None: a network input."""
        maker = self.makers.get(name)
        for _ in range(MOST_AHEAD):
            if maker is None or maker.kind not in through:
                return maker
            maker = self.makers.get(maker.input(0))
        return None

    def has(self, node: Node, position: int) -> bool:
        """Whether that optional operand is there."""
        return bool(node.input(position))

    def array(self, node: Node, position: int, what: str) -> Array:
        """A constant operand's numbers, not quantised."""
        value = self.value(node.input(position))
        if not isinstance(value, Constant):
            hint = "export with fixed shapes, or simplify the model (onnxsim)"
            raise UnsupportedError(f"{what} is not constant", tensor=shown(node.input(position)), hint=hint)
        return value.data

    def ints(self, node: Node, position: int, what: str) -> tuple[int, ...]:
        """A constant operand of integers."""
        data = self.array(node, position, what)
        if data.dtype.kind not in "iu" or data.size > 4096:
            raise ModelError(f"{what} is not a list of integers", tensor=shown(node.input(position)))
        return tuple(int(v) for v in data.reshape(-1))

    def scalar(self, node: Node, position: int, what: str) -> float:
        """A constant operand of one number, as a float; quantised or not."""
        value = self.value(node.input(position))
        if isinstance(value, Quantized) and value.data.size == 1:
            steps = int(value.data.reshape(-1)[0]) - value.quant.zero_point
            return steps * value.quant.scale
        data = self.array(node, position, what)
        if data.size != 1 or data.dtype.kind not in "fiu":
            raise ModelError(f"{what} is not a number", tensor=shown(node.input(position)))
        return float(data.reshape(-1)[0])
