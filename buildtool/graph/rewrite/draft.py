"""A graph while it is rewritten: mutable operators and an up-to-date list of readers per tensor."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from buildtool.graph.geometry import attributes
from buildtool.graph.numbering import graph_of
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.types import Attrs, Graph, Op, OpKind, Tensor

_A = TypeVar("_A", bound=Attrs)


@dataclass(eq=False)
class Node:
    """An operator of a draft. Only the draft may change its inputs and outputs."""

    kind: OpKind
    inputs: list[int]
    outputs: list[int]
    attrs: Attrs = field(default_factory=Attrs)
    index: int = -1
    dead: bool = False

    @property
    def place(self) -> str:
        """The operator's name in error messages, such as "#12 CONV_2D"."""
        return self.op().place

    def op(self) -> Op:
        """Returns the operator as an `Op` of a graph."""
        return Op(self.kind, tuple(self.inputs), tuple(self.outputs), self.attrs, self.index)

    def attributes(self, cls: type[_A]) -> _A:
        """Returns the attributes, which must have the class `cls`."""
        return attributes(self.op(), cls)


def variant(tensor: Tensor, suffix: str, shape: tuple[int, ...]) -> Tensor:
    """Returns an activation like `tensor` with another shape. It has no source in the file."""
    return replace(tensor, name=f"{tensor.name}/{suffix}", shape=shape, source=None, data=None)


class Draft:
    """A graph while it is rewritten. `changed` tells whether a rewrite has changed anything.

    `inputs` and `outputs` end with the states before and after an invoke. So a rewrite preserves states in
    the same way as the network's interface.
    """

    def __init__(self, graph: Graph) -> None:
        self.name = graph.name
        self.tensors = list(graph.tensors)
        self.nodes = [Node(o.kind, list(o.inputs), list(o.outputs), o.attrs, o.index) for o in graph.ops]
        self.inputs = [*graph.inputs, *(state.before for state in graph.states)]
        self.outputs = [*graph.outputs, *(state.after for state in graph.states)]
        self.states = list(graph.states)
        self.changed = False
        self._producers = {t: node for node in self.nodes for t in node.outputs}
        self._readers: dict[int, list[Node]] = {}
        for node in self.nodes:
            self._register(node)

    def graph(self) -> Graph:
        """Returns the present graph, without dead operators and unused tensors."""
        ops = (node.op() for node in self.nodes if not node.dead)
        inputs, outputs = len(self.inputs) - len(self.states), len(self.outputs) - len(self.states)
        sides = zip(self.states, self.inputs[inputs:], self.outputs[outputs:], strict=True)
        states = [replace(state, before=before, after=after) for state, before, after in sides]
        return graph_of(self.name, self.tensors, ops, self.inputs[:inputs], self.outputs[:outputs], states)

    def single_op_graph(self, node: Node, *, free: bool = False) -> Graph:
        """Returns a graph of this operator alone. Its input, tensor 0, is the operator's first operand.

        With `free`, this operand becomes an activation if it is a constant. The other operands keep their
        values, even where they are the same tensor.
        """
        op = node.op()
        tensors = {t: self.tensors[t] for t in (*op.inputs, *op.outputs) if t >= 0}
        if free:
            first = len(self.tensors)
            tensors[first] = replace(tensors[op.inputs[0]], data=None)
            op = replace(op, inputs=(first, *op.inputs[1:]))
        return graph_of(self.name, tensors, (op,), op.inputs[:1], op.outputs)

    def each(self, *kinds: OpKind) -> Iterator[Node]:
        """Yields the operators of these kinds in execution order.

        Operators that are inserted during the iteration are included if their place is still to come.
        """
        for node in self.nodes:
            if node.kind in kinds and not node.dead:
                yield node

    def only_reader(self, tensor: int) -> Node | None:
        """Returns the only reader of a tensor, or None.

        It is None if there are more readers, or if the tensor is a network input or output.
        """
        readers = self.readers(tensor)
        return readers[0] if len(readers) == 1 and self.private(tensor) else None

    def producer(self, tensor: int) -> Node | None:
        """Returns the operator that writes `tensor`, None for inputs and constants."""
        return self._producers.get(tensor)

    def readers(self, tensor: int) -> list[Node]:
        """Returns the operators that read `tensor`."""
        return list(self._readers.get(tensor, ()))

    def private(self, tensor: int) -> bool:
        """Returns whether `tensor` is neither a network input nor an output."""
        return tensor not in self.outputs and tensor not in self.inputs

    def add_tensor(self, tensor: Tensor) -> int:
        """Adds a tensor; returns its index."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def set_input(self, node: Node, position: int, tensor: int) -> None:
        """Makes `node` read `tensor` as its input `position`."""
        self.set_inputs(node, [*node.inputs[:position], tensor, *node.inputs[position + 1 :]])

    def set_inputs(self, node: Node, inputs: list[int]) -> None:
        """Makes `node` read `inputs`."""
        self._unregister(node)
        node.inputs = inputs
        self._register(node)
        self.changed = True

    def become(self, node: Node, kind: OpKind, attrs: Attrs) -> None:
        """Changes the kind and attributes of `node`. Its inputs and outputs do not change."""
        node.kind, node.attrs = kind, attrs
        self.changed = True

    def set_outputs(self, node: Node, outputs: list[int]) -> None:
        """Makes `node` write `outputs`. Its old outputs have no producer until another node writes them."""
        for t in node.outputs:
            self._producers.pop(t, None)
        node.outputs = outputs
        self._producers |= dict.fromkeys(outputs, node)
        self.changed = True

    def insert(self, node: Node, new: Node, behind: bool = True) -> None:
        """Inserts `new` directly after `node`, or directly before it if `behind` is false."""
        self.nodes.insert(self.nodes.index(node) + behind, new)
        self._producers |= dict.fromkeys(new.outputs, new)
        self._register(new)
        self.changed = True

    def put_reshape_before(self, node: Node, shaped: Tensor) -> None:
        """Inserts a RESHAPE before `node`, from its first input to the new tensor `shaped`."""
        inner = self.add_tensor(shaped)
        new = Node(OpKind.RESHAPE, [node.inputs[0]], [inner])
        self.set_input(node, 0, inner)
        self.insert(node, new, behind=False)

    def put_after(
        self, node: Node, inner_tensor: Tensor, kind: OpKind, attrs: Attrs, index: int = -1
    ) -> None:
        """Inserts an operator of `kind` between `node` and the readers of its output `index`.

        `node` writes `inner_tensor`, a new tensor, which the operator reads. The operator writes the old
        output.
        """
        outputs, inner = node.outputs, self.add_tensor(inner_tensor)
        self.set_outputs(node, [inner])
        self.insert(node, Node(kind, [inner], outputs, attrs, index))

    def remove(self, node: Node) -> None:
        """Removes `node`. Its outputs must have no readers."""
        self._unregister(node)
        for t in node.outputs:
            self._producers.pop(t, None)
        node.dead = True
        self.changed = True

    def redirect(self, old: int, new: int) -> None:
        """Makes all readers of `old` read `new`. Network outputs do not change."""
        for node in self.readers(old):
            self.set_inputs(node, [new if t == old else t for t in node.inputs])

    def same_quantization(self, a: int, b: int) -> bool:
        """Returns whether two tensors have the same quantisation."""
        return same_quantization(self.tensors[a].quant, self.tensors[b].quant)

    def bypass(self, node: Node) -> bool:
        """Removes a `node` whose output has the same bytes as its input; returns whether anything changed.

        The node becomes a RESHAPE (a byte alias) if the shapes or quantisations differ, or if a network
        output would become a network input or another network output.
        """
        source, target = node.inputs[0], node.outputs[0]
        a, b = self.tensors[source], self.tensors[target]
        equal = a.shape == b.shape and a.dtype == b.dtype and self.same_quantization(source, target)
        blocked = target in self.outputs and (not self.private(source) or a.is_constant)
        if not equal or blocked:
            if node.kind in (OpKind.RESHAPE, OpKind.SQUEEZE, OpKind.EXPAND_DIMS) or a.dtype != b.dtype:
                return False
            self.become(node, OpKind.RESHAPE, Attrs())
            return True
        if a.source is None and b.source is not None:  # keep the file's tensor
            self.tensors[source] = replace(a, name=b.name, source=b.source)
        self.redirect(target, source)
        self.outputs = [source if t == target else t for t in self.outputs]
        self.remove(node)
        return True

    def make_constant(self, index: int, tensor: Tensor) -> None:
        """Replaces a tensor with a constant of the same shape and type."""
        self.tensors[index] = tensor
        self.changed = True

    def _register(self, node: Node) -> None:
        for t in {*node.inputs} - {-1}:
            self._readers.setdefault(t, []).append(node)

    def _unregister(self, node: Node) -> None:
        for t in {*node.inputs} - {-1}:
            self._readers[t].remove(node)
