"""What the answer to `report` says: a plan with its verdict, layers and steps, and the front around it."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.analysis import NoPlan, Verdict
from buildtool.schema.builds import MemorySize, SizePart
from buildtool.schema.fronts import Peer, Point, Refusal
from buildtool.schema.plans import PlannedModel, WorkView


class ReportLayer(WorkView):
    """An operator that runs code, in the order of execution, with its memory and its work.

    `inputs`: the positions of the operators whose outputs it reads (-1: the network's input). `region`: the
    position of the region that it is in. `scratch_bytes`, `weight_bytes`: of it alone, in the arena and in
    flash. `ram_alive`: the most bytes live while it runs. `cost`: the planner's estimate, in
    `cost_unit`, and `share` its part of the plan's. `instructions`, `cycles`: of a run, null without one.
    """

    position: int
    name: str
    kind: str
    form: str
    kernel: str
    output_shape: str
    region: int
    inputs: list[int]
    ram_alive: int
    scratch_bytes: int
    weight_bytes: int
    share: float
    instructions: int | None
    cycles: int | None


class RegionSteps(TypedDict):
    """The steps of a streamed region, packed.

    `symbols`: the different steps there are, each as operator (-1: a row of the image is delivered), how far
    its first row is behind that of the operator's step before, rows, the same of columns, columns.
    `sequence`: what runs, one after the other: the position of a symbol, or -d and n, which say that the
    last d steps go on for n more. `turns`: operator -> windows, scratch and constants that are in use while
    it runs; other buffers are from their first to their last step.
    """

    region: int
    symbols: list[list[int]]
    sequence: list[int]
    turns: dict[str, list[int]]


class PointRegion(TypedDict):
    """A region of a plan of the front: its first and last operator, schemes, memory and work."""

    first: int
    last: int
    streamed: bool
    schemes: list[str]
    live_bytes: int
    macs: int
    f: float
    cost: float


class ReportPoint(Point):
    """A plan of the front with its regions; `chosen`: whether it is the one that the report is about."""

    chosen: bool
    runs: list[PointRegion]


class ReportFront(TypedDict):
    """The plans that no other beats in memory and work, whether or not they keep the limits.

    `available_bytes`: what the board has for the arena; `limit_bytes`: what was allowed (null: no less).
    `search_factor`, `placing_ended`: as in the answer to `front`. `error` says why there are no points, else
    "".
    """

    available_bytes: int
    limit_bytes: int | None
    points: list[ReportPoint]
    beside: list[Peer | Refusal]
    search_factor: float
    placing_ended: bool
    error: str


class ReportRun(TypedDict):
    """A run of the plan: how real it was and by what its image was made.

    `cycles_are`: measured by the core's own counter, or estimated from blocks of code that were counted; ""
    where there are none. `milliseconds`: the same at the board's clock.
    """

    how: str
    instructions: int | None
    cycles: int | None
    cycles_are: str
    milliseconds: float | None


class ReportImage(TypedDict):
    """The linked test firmware, symbol by symbol, as `buildtool sizes` has it; `compiler`: that made it."""

    compiler: str
    sizes: list[MemorySize]
    parts: list[SizePart]


class ReportAnswer(PlannedModel):
    """All that `buildtool report` draws, and what its page has embedded.

    It is made where the network does not fit as well: then the plan is the one that needs least. `inputs`,
    `outputs`: the network's tensors, by the numbers that `buffers` have. `run`: what a run has counted, null
    without one. `linked`: the firmware that ran, null where none was linked for the report. `against`: what
    differs from another report, null without one.
    """

    title: str
    verdict: Verdict | NoPlan
    inputs: list[int]
    outputs: list[int]
    layers: list[ReportLayer]
    steps: list[RegionSteps]
    front: ReportFront
    run: ReportRun | None
    linked: ReportImage | None
    against: Differences | None


class FigureChange(TypedDict):
    """A figure before and after; null where one has none."""

    name: str
    unit: str
    before: float | None
    after: float | None


class RowDifference(TypedDict):
    """A layer or a region that differs: changed, added or removed; `words`: what differs besides figures.

    `label`: its short name.
    """

    name: str
    label: str
    how: str
    numbers: list[FigureChange]
    words: list[str]


class Differences(TypedDict):
    """What differs from another report or answer, as `buildtool diff` finds it; `about`: what that was."""

    about: str
    totals: list[FigureChange]
    regions: list[RowDifference]
    layers: list[RowDifference]
