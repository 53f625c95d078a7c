"""Restores the pooling that MEAN_OF_SUMS or AVERAGE_OF_SUMS finishes."""

from buildtool.graph.geometry import attributes
from buildtool.graph.types import Graph, MeanAttrs, Op, OpKind, PoolAttrs, PooledAttrs, Tensor


def pooling_of(graph: Graph, op: Op) -> tuple[Graph, Op]:
    """Returns the pooling that `op` finishes from its sums, and a graph that consists of this pooling."""
    attrs, (sums, out) = attributes(op, PooledAttrs), (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    source = Tensor(sums.name, (1, attrs.height, attrs.width, sums.nhwc[3]), out.dtype, attrs.source)
    mean = MeanAttrs((1, 2), True) if attrs.of is not OpKind.AVERAGE_POOL_2D else None
    pool = mean or PoolAttrs((attrs.height, attrs.width), (1, 1), activation=attrs.activation)
    pooling = Op(attrs.of, (0,), (1,), pool, op.index)
    return Graph("", (source, out), (pooling,), (0,), (1,)), pooling
