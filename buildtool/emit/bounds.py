"""How far a kernel's outputs may be from the reference's, for the same inputs: proven by its family.

A family whose kernels requantise otherwise than the reference says so in its packing.py, which defines
`BOUNDS`: by the name of a packing, a function from a graph and an operator of it to a `Bound`. What is not
in there is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.emit.packing import loaded
from buildtool.graph.types import Graph, Op
from buildtool.target.types import NO_PACKING, KernelVariant


@dataclass(frozen=True)
class Bound:
    """The largest |result - reference| of an operator's output, whatever its inputs are.

    `steps`: of the output, whole ones; `before_rounding`: how far the value is off before its last rounding,
    in steps; `rounded` of its `channels` are not exact.
    """

    steps: int
    before_rounding: float
    rounded: int
    channels: int


def bound(graph: Graph, op: Op, kernel: KernelVariant) -> Bound | None:
    """The proven bound of `kernel` on `op`; None where it is exact."""
    if kernel.packing == NO_PACKING or kernel.packer is None:
        return None
    prove = getattr(loaded(kernel.packer), "BOUNDS", {}).get(kernel.packing)
    found = prove(graph, op) if prove is not None else None
    assert found is None or isinstance(found, Bound)
    return found if found is not None and found.rounded else None
