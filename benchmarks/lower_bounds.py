"""A lower bound on the memory of networks whose image comes by rows: benchmarks/lower_bounds.py [NETWORK ...]

No program that computes a network from an image that is delivered once, row after row, runs in fewer bytes,
however often it computes things again. It is assumed that memory holds elements of the network's tensors,
each in its own bytes, and the sums of a pooling that takes the mean of all pixels. (Partial sums of
convolutions are not held. No plan of buildtool, and of the planners that it is compared with, holds them.)

The proof: at the moment when rows [0, r] of the image have been delivered and row r + 1 has not, take the
elements that depend on these rows alone. All outputs are computed from what memory holds, and from later
rows. So on every path from a delivered row to an element that is not known yet (or to an output) there is an
element that memory holds: it is a vertex cut, and weighs no less than a minimum cut. The bound is the largest
minimum cut over all r.

The graph has a node for each row of a tensor, not for each element. That gives the same minimum, since a flow
through rows can be spread evenly over the pixels that are read, and over the channels, so that it is a flow
through elements as well: `_read_columns` makes sure that the windows of an operator allow it. Operators that
see only some channels of a tensor, and windows with gaps, are refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import networkx

from buildtool.base.session import Session
from buildtool.graph.liveness import alias_roots
from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS, SLIDING_KINDS
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import ConvAttrs, Graph, Op, OpKind, WidenedAttrs
from buildtool.plan.models import load_network
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.receptive import accumulates, axes, fed_in_parts, row_inputs, streams

NETWORKS = ("mbv2_w035_144", "mcunet_vww5", "mcunet_320k", "mobilenetv2")
SUM_BYTES = 4  # of a pooling's sums, for each channel
Row = tuple[int, int]  # (tensor, row)


@dataclass(frozen=True)
class Rows:
    """The rows of a network's tensors. Tensors that share bytes count as one."""

    graph: Graph

    @cached_property
    def roots(self) -> Mapping[int, int]:
        """For each activation, the tensor whose bytes it has."""
        return alias_roots(self.graph)

    @cached_property
    def image(self) -> int:
        """The network's first input."""
        return self.roots[self.graph.inputs[0]]

    def count(self, tensor: int) -> int:
        """Returns the number of a tensor's rows."""
        return self.graph.tensors[tensor].nhwc[1]

    @cached_property
    def reads(self) -> Mapping[Row, tuple[Row, ...]]:
        """For each row that the outputs depend on, the rows that it is computed from, in the graph's
        order.
        """
        found = dict[Row, tuple[Row, ...]]()
        needed = {(self.roots[t], y) for t in self.graph.outputs for y in range(self.count(self.roots[t]))}
        for op in (op for op in reversed(self.graph.ops) if op.kind not in ALIAS_KINDS):
            self.check(op)
            for row in ((output, y) for output in op.outputs for y in range(self.count(output))):
                if row in needed:
                    found[row] = tuple(self._read(op, row[1]))
                    needed.update(found[row])
        return dict(reversed(found.items()))

    def _read(self, op: Op, y: int) -> Iterator[Row]:
        by_rows = row_inputs(self.graph, op) if streams(self.graph, op) and not self.sums(op) else ()
        for tensor in (t for t in op.inputs if t in self.roots):
            root, low, high = self.roots[tensor], 0, self.count(self.roots[tensor])
            if tensor in by_rows:
                axis, _ = axes(self.graph, op)
                low, high = (
                    (max(0, axis.low(y)), min(high, axis.high(y + 1))) if tensor == by_rows[0] else (y, y + 1)
                )
            yield from ((root, row) for row in range(low, high))

    def check(self, op: Op) -> None:
        """Raises ValueError if the bound is not proven for an operator."""
        attrs, by_rows = op.attrs, row_inputs(self.graph, op) if streams(self.graph, op) else ()
        slides = op.kind in SLIDING_KINDS and op.kind is not OpKind.SPACE_TO_DEPTH
        if not (slides or op.kind in PIXEL_KINDS or op.kind in (OpKind.FULLY_CONNECTED, OpKind.MEAN)):
            raise ValueError(f"no bound is proven for {op.kind}")
        if isinstance(attrs, ConvAttrs) and attrs.dilation != (1, 1):
            raise ValueError("no bound is proven for windows with gaps")
        if isinstance(attrs, WidenedAttrs):
            raise ValueError("no bound is proven for an operand that lacks channels")
        for tensor in (t for t in op.inputs if t in self.roots):
            rows = self.count(self.roots[tensor])
            if tensor in by_rows and rows != self.count(tensor):
                raise ValueError("no bound is proven for rows of another shape")
            if tensor not in by_rows and self.count(tensor) > 1 and op.kind is not OpKind.MEAN:
                raise ValueError(f"no bound is proven for {op.kind} that may read only some rows")

    def sums(self, op: Op) -> bool:
        """Whether an operator may get its input in parts, and hold sums meanwhile."""
        return fed_in_parts(self.graph, op) and accumulates(self.graph, op)

    @cached_property
    def maker(self) -> Mapping[int, Op]:
        """For each tensor, the operator that computes it."""
        return {output: op for op in self.graph.ops for output in op.outputs}

    @cached_property
    def known_at(self) -> Mapping[Row, int]:
        """For each row, the last row of the image that it depends on; -1 if it depends on none."""
        known = {(self.image, y): y for y in range(self.count(self.image))}
        for row, reads in self.reads.items():
            known[row] = max((known.get(read, -1) for read in reads), default=-1)
        return known

    @cached_property
    def columns(self) -> Mapping[int, list[int]]:
        """For each tensor, those of its columns that the outputs depend on.

        Raises ValueError if the bound is not proven for an operator.
        """
        widths = {t: self.graph.tensors[t].nhwc[2] for t in self.roots}
        needed = {self.roots[t]: set(range(widths[t])) for t in self.graph.outputs}
        for op in (op for op in reversed(self.graph.ops) if op.kind not in ALIAS_KINDS):
            made = sorted(needed.get(op.outputs[0], ()))
            by_rows = row_inputs(self.graph, op) if streams(self.graph, op) else ()
            for tensor in (t for t in op.inputs if t in self.roots):
                read = list(range(widths[tensor]))
                if tensor in by_rows and not self.sums(op):
                    read = _read_columns(axes(self.graph, op)[1], widths[tensor], made)
                needed.setdefault(self.roots[tensor], set()).update(read)
        return {t: sorted(columns) for t, columns in needed.items()}

    @cached_property
    def bytes(self) -> Mapping[int, int]:
        """For each tensor, the bytes of those pixels of one of its rows that the outputs depend on."""
        return {t: len(x) * self.graph.tensors[t].pixel_bytes for t, x in self.columns.items()}

    def cut(self, delivered: int) -> int:
        """Returns the least bytes that memory holds after row `delivered` of the image."""
        flow, known = networkx.DiGraph(), {r for r, at in self.known_at.items() if 0 <= at <= delivered}
        outputs = {self.roots[t] for t in self.graph.outputs}
        for row in known:
            flow.add_edge(("in", row), ("out", row), capacity=self.bytes.get(row[0], 0))
            if row[0] == self.image:
                flow.add_edge("delivered", ("in", row))
            if row[0] in outputs:
                flow.add_edge(("out", row), "to come")
        for row, reads in self.reads.items():
            maker = self.maker[row[0]]
            if maker.kind is OpKind.MEAN and not self.sums(maker):
                continue  # of columns alone: without its paths, the cut is smaller, if anything
            to: object = ("in", row) if row in known else "to come"
            if row not in known and self.sums(maker):
                to = ("sums", row)
                channels = self.graph.tensors[row[0]].nhwc[3]
                flow.add_edge(to, "to come", capacity=SUM_BYTES * channels)
            flow.add_edges_from((("out", read), to) for read in reads if read in known)
        if "delivered" not in flow or "to come" not in flow:
            return 0
        solve = networkx.algorithms.flow.boykov_kolmogorov
        return int(networkx.maximum_flow_value(flow, "delivered", "to come", flow_func=solve))


def _read_columns(across: Axis, width: int, made: list[int]) -> list[int]:
    """Returns the columns of an input that an operator reads for the columns `made` of its output.

    `width` is the number of the input's columns. Raises ValueError unless a flow that is even over the
    columns that are read can reach all of `made` evenly: in order, each of the n columns of `made` gets 1 / n
    of what the columns that are read send, from columns in its window.
    """
    windows = [range(max(0, across.low(x)), min(width, across.high(x + 1))) for x in made]
    read = sorted(set().union(*windows))
    for i, window in enumerate(windows):
        first, end = i * len(read) // len(made), -(-(i + 1) * len(read) // len(made))
        if not set(read[first:end]) <= set(window):
            raise ValueError(f"a window of {across.kernel} columns does not spread a row evenly")
    return read


def lower_bound(graph: Graph) -> tuple[int, int]:
    """Returns the bound in bytes, and the row of the image after which memory holds that much."""
    rows = Rows(graph)
    return max((rows.cut(row), row) for row in range(rows.count(rows.image)))


def main() -> None:
    """Prints the bound of each network."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("network", nargs="*", default=NETWORKS)
    print("| network | no fewer bytes than | after row |\n| --- | ---: | ---: |")
    for name in parser.parse_args().network:
        bound, row = lower_bound(rewrite(load_network(name, Session()).graph))
        print(f"| `{name}` | {bound:,} | {row} |", flush=True)


if __name__ == "__main__":
    main()
