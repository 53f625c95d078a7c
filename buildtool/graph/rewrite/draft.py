"""A graph being rewritten: mutable operators with their readers kept up to date."""

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
    """An operator of a draft; change its inputs through the draft only."""

    kind: OpKind
    inputs: list[int]
    outputs: list[int]
    attrs: Attrs = field(default_factory=Attrs)
    index: int = -1
    dead: bool = False

    @property
    def place(self) -> str:
        """For error messages: "#12 CONV_2D"."""
        return self.op().place

    def op(self) -> Op:
        """The operator as the graph has it."""
        return Op(self.kind, tuple(self.inputs), tuple(self.outputs), self.attrs, self.index)

    def attributes(self, cls: type[_A]) -> _A:
        """The attributes, which are of `cls`."""
        return attributes(self.op(), cls)


def variant(tensor: Tensor, suffix: str, shape: tuple[int, ...]) -> Tensor:
    """An activation like `tensor` in another shape, which no file has."""
    return replace(tensor, name=f"{tensor.name}/{suffix}", shape=shape, source=None, data=None)


class Draft:
    """Tensors, and operators in execution order. `changed`: whether anything was done.

    States stand behind the inputs (before an invoke) and behind the outputs (after it): so a rewrite keeps
    them as it keeps the network's interface.
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
        """The graph as it stands; dead operators, and tensors that nothing mentions, are left out."""
        ops = (node.op() for node in self.nodes if not node.dead)
        inputs, outputs = len(self.inputs) - len(self.states), len(self.outputs) - len(self.states)
        sides = zip(self.states, self.inputs[inputs:], self.outputs[outputs:], strict=True)
        states = [replace(state, before=before, after=after) for state, before, after in sides]
        return graph_of(self.name, self.tensors, ops, self.inputs[:inputs], self.outputs[:outputs], states)

    def alone(self, node: Node, *, free: bool = False) -> Graph:
        """The operator as a graph of its own; its first operand, tensor 0 there, is the graph's input.

        With `free`, that operand loses its value; the others keep theirs, even the same tensor.
        """
        op = node.op()
        tensors = {t: self.tensors[t] for t in (*op.inputs, *op.outputs) if t >= 0}
        if free:
            first = len(self.tensors)
            tensors[first] = replace(tensors[op.inputs[0]], data=None)
            op = replace(op, inputs=(first, *op.inputs[1:]))
        return graph_of(self.name, tensors, (op,), op.inputs[:1], op.outputs)

    def each(self, *kinds: OpKind) -> Iterator[Node]:
        """The operators of some kinds in execution order, also those inserted behind the present one."""
        for node in self.nodes:
            if node.kind in kinds and not node.dead:
                yield node

    def only_reader(self, tensor: int) -> Node | None:
        """The one reader of a tensor that nothing else sees."""
        readers = self.readers(tensor)
        return readers[0] if len(readers) == 1 and self.private(tensor) else None

    def producer(self, tensor: int) -> Node | None:
        """The operator that makes `tensor`, None for inputs and constants."""
        return self._producers.get(tensor)

    def readers(self, tensor: int) -> list[Node]:
        """The operators that read `tensor`."""
        return list(self._readers.get(tensor, ()))

    def private(self, tensor: int) -> bool:
        """Whether `tensor` is seen by its readers only: neither a network input nor an output."""
        return tensor not in self.outputs and tensor not in self.inputs

    def add_tensor(self, tensor: Tensor) -> int:
        """Takes in a new tensor; returns its index."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def set_input(self, node: Node, position: int, tensor: int) -> None:
        """Makes `node` read `tensor` at `position`."""
        self.set_inputs(node, [*node.inputs[:position], tensor, *node.inputs[position + 1 :]])

    def set_inputs(self, node: Node, inputs: list[int]) -> None:
        """Makes `node` read `inputs`."""
        self._unregister(node)
        node.inputs = inputs
        self._register(node)
        self.changed = True

    def become(self, node: Node, kind: OpKind, attrs: Attrs) -> None:
        """Makes `node` another operator on the same tensors."""
        node.kind, node.attrs = kind, attrs
        self.changed = True

    def set_outputs(self, node: Node, outputs: list[int]) -> None:
        """Makes `node` write `outputs`; its old ones have no producer until another operator gets them."""
        for t in node.outputs:
            self._producers.pop(t, None)
        node.outputs = outputs
        self._producers |= dict.fromkeys(outputs, node)
        self.changed = True

    def insert(self, node: Node, new: Node, behind: bool = True) -> None:
        """Puts `new` right behind `node`, or right before it."""
        self.nodes.insert(self.nodes.index(node) + behind, new)
        self._producers |= dict.fromkeys(new.outputs, new)
        self._register(new)
        self.changed = True

    def put_reshape_before(self, node: Node, shaped: Tensor) -> None:
        """Reshapes the first input of `node` to `shaped`."""
        inner = self.add_tensor(shaped)
        new = Node(OpKind.RESHAPE, [node.inputs[0]], [inner])
        self.set_input(node, 0, inner)
        self.insert(node, new, behind=False)

    def put_behind(
        self, node: Node, inner_tensor: Tensor, kind: OpKind, attrs: Attrs, index: int = -1
    ) -> None:
        """Makes `node` write `inner_tensor`, and a new operator of `kind` behind it its old output."""
        outputs, inner = node.outputs, self.add_tensor(inner_tensor)
        self.set_outputs(node, [inner])
        self.insert(node, Node(kind, [inner], outputs, attrs, index))

    def remove(self, node: Node) -> None:
        """Takes `node` out; its outputs must have no reader any more."""
        self._unregister(node)
        for t in node.outputs:
            self._producers.pop(t, None)
        node.dead = True
        self.changed = True

    def redirect(self, old: int, new: int) -> None:
        """Makes all readers of `old` read `new`; network outputs stay."""
        for node in self.readers(old):
            self.set_inputs(node, [new if t == old else t for t in node.inputs])

    def same_quantization(self, a: int, b: int) -> bool:
        """Whether two tensors have one quantisation."""
        return same_quantization(self.tensors[a].quant, self.tensors[b].quant)

    def bypass(self, node: Node) -> bool:
        """Removes a one-to-one `node` whose output equals its input byte by byte; whether anything changed.

        Where shape or quantisation differ, or a network output would become a network input or another
        output, it becomes a RESHAPE, a byte alias.
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
        if a.source is None and b.source is not None:  # a tensor of a rewrite is one of the file again
            self.tensors[source] = replace(a, name=b.name, source=b.source)
        self.redirect(target, source)
        self.outputs = [source if t == target else t for t in self.outputs]
        self.remove(node)
        return True

    def make_constant(self, index: int, tensor: Tensor) -> None:
        """Replaces a tensor by a constant of the same shape and type."""
        self.tensors[index] = tensor
        self.changed = True

    def _register(self, node: Node) -> None:
        for t in {*node.inputs} - {-1}:
            self._readers.setdefault(t, []).append(node)

    def _unregister(self, node: Node) -> None:
        for t in {*node.inputs} - {-1}:
            self._readers[t].remove(node)
