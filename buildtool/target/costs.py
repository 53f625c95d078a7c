"""Estimates what a plan's parts cost on a target: a kernel call on a window, and the work between calls.

A family's catalogue.toml has a formula for each kernel. Its table [costs] has the costs of what happens
outside the kernels:

    [costs]
    call = "45"                        # the emitted loops around one kernel call
    row = "60 + bytes"                 # one row of a streamed input image that the application delivers
    move = "40 + 0.5 * bytes"          # copying a tensor within the arena
    load = "40 + 0.5 * bytes"          # loading constants into the arena
    expand = "30 + 3 * bytes"          # expanding constants that are stored in four bits
    sums = "70 + 3 * oh * ow * cin"    # adding a part of a global pooling's input to its sums
    sums_end = "60 + 40 * cin"         # computing the output of such a pooling from its sums

A missing key has the value of the core's next family. Costs are in the target's unit: the catalogue's, or
cycles where there are formulas for the core (see `cycle_costs`). The cost of each call is rounded to a
multiple of 1 / COST_UNITS, so that sums of costs are exact in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from buildtool.base.expression import compiled, evaluate
from buildtool.graph.types import Graph, Op
from buildtool.target.catalogue import features, of_channels, slices_of
from buildtool.target.types import Costs, KernelVariant
from buildtool.target.variables import Geometry, taps_met

COST_UNITS = 16  # a cost is a multiple of 1/16


class Part(NamedTuple):
    """The outputs that a kernel call computes along one axis, as the numbers on which the call's cost
    depends.
    """

    size: int  # outputs
    met: int  # taps of all windows that lie in the input
    inside: int  # outputs whose whole window lies in the input, contiguous in memory
    pad: int  # padded elements before the first window
    pieces: tuple[Part, ...] = ()  # the contiguous parts, if there are several


NOTHING = Part(0, 0, 0, 0)


class Rings(NamedTuple):
    """The numbers of columns in the ring buffers (line buffers) of a call's input and output; 0 if all
    columns are in memory.
    """

    input: int = 0
    output: int = 0


_NO_RINGS = Rings()


def geometry(graph: Graph, op: Op) -> Geometry:
    """Returns the geometry of an operator. Operators with the same geometry have the same cost."""
    values = features(graph, op)
    return Geometry(*(values[name] for name in Geometry._fields))


def part(of: Geometry, axis: int, low: int, high: int, rings: Rings = Rings()) -> Part:  # noqa: B008
    """Returns the Part for outputs [low, high) along an axis: 0 for rows, 1 for columns.

    `rings` applies to columns only. Where the outputs or inputs wrap around in a ring buffer, the Part has
    pieces.
    """
    window = along(of, axis)
    piece = _make_piece(window, low, high, rings.input)
    if rings == _NO_RINGS:
        return piece
    ends = set(_multiples(low + 1, high, rings.output))
    if rings.input and window[1] == window[2] == 1:
        ends |= set(_multiples(low + 1, high, rings.input))
    if not ends:
        return piece
    pieces = (_make_piece(window, a, b, rings.input) for a, b in pairwise([low, *sorted(ends), high]))
    return piece._replace(pieces=tuple(sorted(pieces)))


def along(of: Geometry, axis: int) -> tuple[int, int, int, int, int]:
    """Returns the number of inputs, and the kernel's size, stride, dilation and leading padding along an axis
    (0: rows, 1: columns).
    """
    if axis == 0:
        return of.ih, of.kh, of.sh, of.dh, of.pt
    return of.iw, of.kw, of.sw, of.dw, of.pl


def _multiples(low: int, high: int, of: int) -> range:
    """Returns the multiples of `of` in [low, high); none if `of` is 0."""
    return range(-(-low // of) * of, high, of) if of else range(0)


def _make_piece(window: tuple[int, int, int, int, int], low: int, high: int, ring: int) -> Part:
    """Returns the Part for outputs [low, high), not cut into pieces.

    `window` is from `along`. `ring` is the number of columns in the input's ring buffer (0: all).
    """
    inputs, kernel, stride, dilation, pad = window
    extent = (kernel - 1) * dilation + 1
    if not ring:
        met, inside = taps_met(high - low, inputs, kernel, stride, dilation, pad - low * stride)
        return Part(high - low, met, inside, max(0, pad - low * stride))
    met = inside = 0
    for start in range(low * stride - pad, high * stride - pad, stride):
        if start >= 0 and start + extent <= inputs:
            met += kernel
            inside += start % ring + extent <= ring
        else:
            met += sum(0 <= start + tap * dilation < inputs for tap in range(kernel))
    return Part(high - low, met, inside, max(0, pad - low * stride))


def whole(of: Geometry) -> tuple[Part, Part]:
    """Returns the Parts for rows and for columns of a call that computes an operator's whole output."""
    return part(of, 0, 0, of.oh), part(of, 1, 0, of.ow)


def round_cost(cost: float) -> float:
    """Returns a cost rounded to a multiple of 1 / COST_UNITS; 0 for a negative one."""
    return max(0, round(cost * COST_UNITS)) / COST_UNITS


class Pricer:
    """Computes what kernel calls and other steps cost on a target, and remembers the results."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self._calls: dict[tuple[str, Geometry, Part, Part], float] = {}
        self._prices: dict[tuple[str, tuple[int, ...]], float] = {}
        self.call = self._stated_cost("call", {})

    def cost(self, kernel: KernelVariant, of: Geometry, rows: Part, columns: Part) -> float:
        """Returns the cost of a kernel call that computes these rows and columns, including the loops around
        it.
        """
        key = (kernel.cost, of, rows, columns)
        price = self._calls.get(key)
        if price is None:
            if of.expanded:
                total = self._stated_cost("expand", {"bytes": of.stored})
                for size, count in slices_of(of.cout, of.expanded):
                    part_of = of._replace(**of_channels(of._asdict(), size))
                    total += count * self._formula_cost(kernel, part_of, rows, columns)
            else:
                total = self._formula_cost(kernel, of, rows, columns)
            price = self._calls[key] = round_cost(total) + self.call
        return price

    @staticmethod
    def _formula_cost(kernel: KernelVariant, of: Geometry, rows: Part, columns: Part) -> float:
        """Returns the value of a kernel's cost formula for a call that computes these rows and columns."""
        formula, total = compiled(kernel.cost), 0.0
        for piece, times in terms(columns):
            values = variables(of, rows, piece)
            try:
                total += formula(values) * times
            except ArithmeticError:
                evaluate(kernel.cost, values)  # its error names the formula and the mistake
                raise
        return total

    def sums(self, of: Geometry, rows: int, columns: int) -> float:
        """Returns the cost of adding `rows` x `columns` pixels of a global pooling's input to its sums."""
        return self.call + self._stated_cost("sums", {"oh": rows, "ow": columns, "cin": of.cin})

    def sums_end(self, of: Geometry) -> float:
        """Returns the cost of computing a global pooling's output from its sums."""
        return self._stated_cost("sums_end", {"oh": of.ih, "ow": of.iw, "cin": of.cin})

    def row(self, size: int) -> float:
        """Returns the cost of one row, of `size` bytes, of the input image that the application delivers row
        by row.
        """
        return self._stated_cost("row", {"bytes": size})

    def move(self, size: int) -> float:
        """Returns the cost of copying `size` bytes within the arena."""
        return self._stated_cost("move", {"bytes": size})

    def keep(self, size: int) -> float:
        """Returns the cost of copying `size` bytes of a row that the next band of rows needs again.

        A call copies two or three such rows. Besides the bytes, a row costs as much as two empty rows of the
        input image, for its addresses and its share of the call: counted on Cortex-M4 and M55.
        """
        return self.move(size) + 2 * self.row(0)

    def swap(self, size: int) -> float:
        """Returns the cost of swapping `size` bytes of a row that the next band needs with bytes in the
        band's window.

        Twice as many bytes are read and written as in a copy: counted on Cortex-M4, M55 and RISC-V.
        """
        return self.keep(size) + self.move(size)

    def load(self, size: int) -> float:
        """Returns the cost of loading `size` bytes of constants into the arena in one transfer."""
        return self._stated_cost("load", {"bytes": size})

    def _stated_cost(self, name: str, values: Mapping[str, int]) -> float:
        key = (name, tuple(values.values()))
        if key not in self._prices:
            self._prices[key] = round_cost(compiled(getattr(self.costs, name))(values))
        return self._prices[key]


def terms(columns: Part) -> list[tuple[Part, int]]:
    """Returns pairs (columns, factor): a call's cost is the sum of factor times formula(columns) over the
    pairs.

    Columns in several pieces of memory are computed piece by piece. Only the first piece counts with its
    whole cost: what a call costs without any columns is subtracted for every further piece.
    """
    if not columns.pieces:
        return [(columns, 1)]
    return [*((piece, 1) for piece in columns.pieces), (NOTHING, 1 - len(columns.pieces))]


def variables(of: Geometry, rows: Part, columns: Part) -> dict[str, int]:
    """Returns the variables of a kernel's formula for a window that is not cut into pieces; see
    `catalogue.features`.
    """
    share, pixels = rows.size * columns.size, max(1, of.oh * of.ow)
    values = dict(zip(Geometry._fields, of, strict=True))
    values["oh"], values["rows_met"], values["rows_inside"], values["pt"], _ = rows
    values["ow"], values["columns_met"], values["columns_inside"], values["pl"], _ = columns
    if share != pixels:
        for name in ("inputs", "outputs", "macs", "lines", "scattered"):
            values[name] = values[name] * share // pixels
    return values


def once(pricer: Pricer, kernel: KernelVariant, graph: Graph, op: Op) -> float:
    """Returns the cost of one kernel call that computes the whole output of `op`."""
    of = geometry(graph, op)
    return pricer.cost(kernel, of, *whole(of))
