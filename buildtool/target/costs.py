"""What a plan's parts cost on a target: one kernel call on one window, and what happens between calls.

A kernel's formula stands in its family's catalogue.toml. What a call costs beside its kernel, and what the
image's rows, copies within the arena, weights and the sums of poolings cost, stands there once for the
family, in the table [costs]:

    [costs]
    call = "45"                        # the emitted loops around one kernel call
    row = "60 + bytes"                 # one row of a streamed image that the application delivers
    move = "40 + 0.5 * bytes"          # a tensor that is copied within the arena
    load = "40 + 0.5 * bytes"          # constants that are brought into the arena
    sums = "70 + 3 * oh * ow * cin"    # a part of a global pooling's input that is added to its sums
    sums_end = "60 + 40 * cin"         # the output of such a pooling, made of its sums

A key that is missing is that of the core's next family. Costs are in the target's unit: the catalogue's, or
cycles where there are formulas for the core (see `cycle_costs`). The cost of each call is rounded to
1 / COST_UNITS of it: so sums of costs are exact, in whatever order they are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from buildtool.base.expression import compiled, evaluate
from buildtool.graph.types import Graph, Op
from buildtool.target.catalogue import features
from buildtool.target.types import Costs, KernelVariant
from buildtool.target.variables import Geometry, taps_met

COST_UNITS = 16  # a cost is a whole number of sixteenths


class Part(NamedTuple):
    """The outputs that a call makes along one axis, as far as its cost depends on them."""

    size: int  # outputs
    met: int  # taps of all their windows that lie in the input
    inside: int  # outputs whose whole window lies in the input, contiguous in memory
    pad: int  # padded elements before the first window
    pieces: tuple[Part, ...] = ()  # the contiguous parts, if there are several


NOTHING = Part(0, 0, 0, 0)


class Rings(NamedTuple):
    """The columns that the views of a call's input and output keep; 0: all of them."""

    input: int = 0
    output: int = 0


_NO_RINGS = Rings()


def geometry(graph: Graph, op: Op) -> Geometry:
    """The geometry of an operator: equal for operators of equal cost."""
    known = features(graph, op)
    return Geometry(*(known[name] for name in Geometry._fields))


def part(of: Geometry, axis: int, low: int, high: int, rings: Rings = Rings()) -> Part:  # noqa: B008
    """Outputs [low, high) along an axis; 0: rows, 1: columns; `rings` count for columns."""
    window = along(of, axis)
    found = _piece(window, low, high, rings.input)
    if rings == _NO_RINGS:
        return found
    ends = set(_multiples(low + 1, high, rings.output))
    if rings.input and window[1] == window[2] == 1:
        ends |= set(_multiples(low + 1, high, rings.input))
    if not ends:
        return found
    pieces = (_piece(window, a, b, rings.input) for a, b in pairwise([low, *sorted(ends), high]))
    return found._replace(pieces=tuple(sorted(pieces)))


def along(of: Geometry, axis: int) -> tuple[int, int, int, int, int]:
    """Along an axis (0: rows, 1: columns): inputs, kernel, stride, dilation, pad before the first input."""
    if axis == 0:
        return of.ih, of.kh, of.sh, of.dh, of.pt
    return of.iw, of.kw, of.sw, of.dw, of.pl


def _multiples(low: int, high: int, of: int) -> range:
    """The multiples of `of` in [low, high); empty where `of` is 0."""
    return range(-(-low // of) * of, high, of) if of else range(0)


def _piece(window: tuple[int, int, int, int, int], low: int, high: int, ring: int) -> Part:
    """Outputs [low, high), wherever they lie; `window`: see `along`; `ring`: as `Rings.input`."""
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
    """The window of a call that makes an operator's whole output."""
    return part(of, 0, 0, of.oh), part(of, 1, 0, of.ow)


def round_cost(cost: float) -> float:
    """A cost as a whole number of its units, never below 0."""
    return max(0, round(cost * COST_UNITS)) / COST_UNITS


class Pricer:
    """What calls cost on a target; prices are kept by the values that they depend on."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self._calls: dict[tuple[str, Geometry, Part, Part], float] = {}
        self._prices: dict[tuple[str, tuple[int, ...]], float] = {}
        self.call = self._stated_cost("call", {})

    def cost(self, kernel: KernelVariant, of: Geometry, rows: Part, columns: Part) -> float:
        """One call of a kernel that makes these rows and columns, the loops around it included."""
        key = (kernel.cost, of, rows, columns)
        found = self._calls.get(key)
        if found is None:
            formula, total = compiled(kernel.cost), 0.0
            for piece, times in terms(columns):
                known = variables(of, rows, piece)
                try:
                    total += formula(known) * times
                except ArithmeticError:
                    evaluate(kernel.cost, known)  # says which formula it is, and what is wrong with it
                    raise
            found = self._calls[key] = round_cost(total) + self.call
        return found

    def sums(self, of: Geometry, rows: int, columns: int) -> float:
        """One part of a global pooling's input, of this many rows and columns."""
        return self.call + self._stated_cost("sums", {"oh": rows, "ow": columns, "cin": of.cin})

    def sums_end(self, of: Geometry) -> float:
        """The output of a pooling whose input has come in parts."""
        return self._stated_cost("sums_end", {"oh": of.ih, "ow": of.iw, "cin": of.cin})

    def row(self, size: int) -> float:
        """A row of the image, of `size` bytes, that the application delivers."""
        return self._stated_cost("row", {"bytes": size})

    def move(self, size: int) -> float:
        """`size` bytes that are copied within the arena."""
        return self._stated_cost("move", {"bytes": size})

    def load(self, size: int) -> float:
        """`size` bytes of constants that are brought into the arena at once."""
        return self._stated_cost("load", {"bytes": size})

    def _stated_cost(self, name: str, known: Mapping[str, int]) -> float:
        key = (name, tuple(known.values()))
        if key not in self._prices:
            self._prices[key] = round_cost(compiled(getattr(self.costs, name))(known))
        return self._prices[key]


def terms(columns: Part) -> list[tuple[Part, int]]:
    """The columns to evaluate a kernel's formula for in one call, and how often each value counts.

    Columns in several pieces of memory are computed piece by piece, in tiles that end with the piece: each
    adds its cost beyond that of a window without columns.
    """
    if not columns.pieces:
        return [(columns, 1)]
    return [*((piece, 1) for piece in columns.pieces), (NOTHING, 1 - len(columns.pieces))]


def variables(of: Geometry, rows: Part, columns: Part) -> dict[str, int]:
    """A kernel formula's variables for a window in one piece: see `catalogue.features`."""
    share, pixels = rows.size * columns.size, max(1, of.oh * of.ow)
    known = dict(zip(Geometry._fields, of, strict=True))
    known["oh"], known["rows_met"], known["rows_inside"], known["pt"], _ = rows
    known["ow"], known["columns_met"], known["columns_inside"], known["pl"], _ = columns
    if share != pixels:
        for name in ("inputs", "outputs", "macs", "lines", "scattered"):
            known[name] = known[name] * share // pixels
    return known


def once(pricer: Pricer, kernel: KernelVariant, graph: Graph, op: Op) -> float:
    """One call of a kernel that makes the whole output of `op`."""
    of = geometry(graph, op)
    return pricer.cost(kernel, of, *whole(of))
