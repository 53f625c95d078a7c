"""The pooling that an operator on sums finishes."""

from buildtool.graph.geometry import attributes
from buildtool.graph.types import Graph, MeanAttrs, Op, OpKind, PoolAttrs, PooledAttrs, Tensor


def pooling_of(graph: Graph, op: Op) -> tuple[Graph, Op]:
    """Returns the pooling that `op` finishes, in a graph with its input and output alone."""
    attrs, (sums, out) = attributes(op, PooledAttrs), (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    source = Tensor(sums.name, (1, attrs.height, attrs.width, sums.nhwc[3]), out.dtype, attrs.source)
    of = MeanAttrs((1, 2), True) if attrs.of is not OpKind.AVERAGE_POOL_2D else None
    pool = of or PoolAttrs((attrs.height, attrs.width), (1, 1), activation=attrs.activation)
    alone = Op(attrs.of, (0,), (1,), pool, op.index)
    return Graph("", (source, out), (alone,), (0,), (1,)), alone
