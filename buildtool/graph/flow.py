"""A network for memory planning: values with sizes, and operators that read and write them.

It has no element types or attributes. So it can describe a Graph that becomes firmware, and also a file that
is only analysed (ONNX, Darknet).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from buildtool.base.errors import ModelError
from buildtool.graph.liveness import alias_roots, state_of
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph

MAX_VALUE = 1 << 50  # bytes of a value; a file that claims more is refused


@dataclass(frozen=True)
class Value:
    """A network input, an operator's result or a weight. `size` is in bytes.

    Raises ModelError if `size` is above MAX_VALUE.
    """

    name: str
    size: int
    is_weight: bool = False

    def __post_init__(self) -> None:
        if self.size > MAX_VALUE:
            raise ModelError(f"more than {MAX_VALUE} bytes", tensor=self.name)


@dataclass(frozen=True)
class FlowOp:
    """An operator, the values it reads (each once) and writes, and its `position` in the source."""

    name: str
    kind: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    position: int


@dataclass(frozen=True)
class Flow:
    """Operators in an order in which they can run. They refer to `values` by index."""

    name: str
    values: tuple[Value, ...]
    ops: tuple[FlowOp, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def activations(self) -> tuple[int, ...]:
        """Returns the inputs, then the operators' results in execution order."""
        return (*self.inputs, *(v for op in self.ops for v in op.writes))

    def weights(self) -> tuple[int, ...]:
        """Returns the weights that operators read, in ascending order."""
        return tuple(sorted({v for op in self.ops for v in op.reads if self.values[v].is_weight}))


@dataclass(frozen=True)
class Life:
    """A value's size in bytes, and the first and last operator (positions in Flow.ops) that need it."""

    value: int
    size: int
    first: int
    last: int


def flow_of(graph: Graph) -> Flow:
    """Returns a graph's flow: tensors that share their bytes are one value, and aliases are left out."""
    roots, elsewhere = alias_roots(graph), state_of(graph)
    sizes: dict[int, int] = {}
    for tensor, root in roots.items():
        size = 0 if root in elsewhere else graph.tensors[tensor].size
        sizes[root] = max(sizes.get(root, 0), size)
    place = {root: i for i, root in enumerate(sizes)}
    ops = tuple(
        FlowOp(
            graph.op_name(position),
            str(op.kind),
            tuple(dict.fromkeys(place[roots[t]] for t in op.inputs if t in roots)),
            tuple(place[t] for t in op.outputs),
            position,
        )
        for position, op in enumerate(graph.ops)
        if op.kind not in ALIAS_KINDS
    )
    values = [Value(graph.tensors[root].name, size) for root, size in sizes.items()]
    before = tuple(state.before for state in graph.states)
    ends = (*graph.outputs, *(state.after for state in graph.states))
    states = [(place[roots[s.before]], place[roots[s.after]]) for s in graph.states]
    ordered_ops, tokens = _order_state_writes(ops, states, len(values))
    return Flow(
        graph.name,
        (*values, *tokens),
        ordered_ops,
        tuple(place[t] for t in (*graph.inputs, *before)),
        tuple(dict.fromkeys(place[roots[t]] for t in ends if t in roots)),
    )


def _order_state_writes(
    ops: tuple[FlowOp, ...], states: Sequence[tuple[int, int]], count: int
) -> tuple[tuple[FlowOp, ...], list[Value]]:
    """Makes the operator that writes a state's new value depend on all readers of the old value.

    `states` are pairs of values (before, after), and `count` is the number of values. Each reader writes a
    token, a new value of 0 bytes, which the writer reads. Returns the operators and the tokens.
    """
    ordered, tokens = list(ops), list[Value]()
    for before, after in states:
        writer = next((i for i, op in enumerate(ops) if after in op.writes), None)
        if writer is None or before == after:
            continue
        for i, op in enumerate(ops):
            if before in op.reads and i != writer:
                token = count + len(tokens)
                tokens.append(Value(f"{op.name} has read", 0))
                ordered[i] = replace(ordered[i], writes=(*ordered[i].writes, token))
                ordered[writer] = replace(ordered[writer], reads=(*ordered[writer].reads, token))
    return tuple(ordered), tokens


def lives(flow: Flow, *, weights: bool = False) -> tuple[Life, ...]:
    """Returns each activation's lifetime, as liveness.live_ranges does.

    An input that no operator reads is live at operator 0. With `weights`, weights have lifetimes too, from
    the first operator that reads them to the last.
    """
    first = dict.fromkeys(flow.inputs, 0)
    last = dict(first)
    for position, op in enumerate(flow.ops):
        for v in op.writes:
            first[v] = last[v] = position
        for v in op.reads:
            if v in first or (weights and flow.values[v].is_weight):
                first.setdefault(v, position)
                last[v] = position
    last.update(dict.fromkeys((v for v in flow.outputs if v in first), max(len(flow.ops) - 1, 0)))
    return tuple(Life(v, flow.values[v].size, first[v], last[v]) for v in first)


def peak(lifetimes: Sequence[Life]) -> int:
    """Returns the largest number of bytes that are live at once."""
    change: dict[int, int] = {}
    for life in lifetimes:
        change[life.first] = change.get(life.first, 0) + life.size
        change[life.last + 1] = change.get(life.last + 1, 0) - life.size
    highest = live = 0
    for position in sorted(change):
        live += change[position]
        highest = max(highest, live)
    return highest


def reorder(flow: Flow, order: Sequence[int]) -> Flow:
    """Returns the flow with its operators in another order: operator order[i] moves to position i."""
    return replace(flow, ops=tuple(flow.ops[i] for i in order))


_FOLLOWERS = frozenset(
    """batchnorm activation
    BatchNormalization Relu LeakyRelu PRelu Clip Sigmoid HardSigmoid HardSwish Elu Selu Tanh
    Mul Add Sub Div""".split()
)
_LEADERS = frozenset(
    """convolutional local connected shortcut
    Conv ConvTranspose Gemm MatMul QLinearConv QLinearMatMul ConvInteger MatMulInteger Add Sum Mul""".split()
)


def fuse(flow: Flow) -> Flow:
    """Fuses batch normalisations and activations into the operator before them, as most runtimes do.

    An operator is fused only if no other one reads its input. Elementwise arithmetic is fused where its other
    operand is a weight.
    """
    read = Counter(v for op in flow.ops for v in op.reads)
    outputs = set(flow.outputs)
    place: dict[int, int] = {}  # value -> place in `ops`
    ops: list[FlowOp] = []
    for op in flow.ops:
        sources = [v for v in op.reads if not flow.values[v].is_weight]
        before = place.get(sources[0], -1) if len(sources) == 1 else -1
        if (
            op.kind in _FOLLOWERS
            and len(op.writes) == 1
            and before >= 0
            and ops[before].kind in _LEADERS
            and ops[before].writes == (sources[0],)
            and read[sources[0]] == 1
            and sources[0] not in outputs
        ):
            added = tuple(v for v in op.reads if v != sources[0] and v not in ops[before].reads)
            ops[before] = replace(ops[before], reads=(*ops[before].reads, *added), writes=op.writes)
            place[op.writes[0]] = before
            continue
        place.update(dict.fromkeys(op.writes, len(ops)))
        ops.append(op)
    return replace(flow, ops=tuple(ops))
