"""The answer to `report`: a plan with its verdict, layers and steps, and the front around it."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.analysis import NoPlan, Verdict
from buildtool.schema.builds import MemorySize, SizePart
from buildtool.schema.fronts import Peer, Point, Refusal
from buildtool.schema.plans import PlannedModel, WorkView


class ReportLayer(WorkView):
    """An operator that runs code, with its memory and work; layers are in the order of execution.

    - `inputs`: the positions of the operators whose outputs it reads (-1: the network's input).
    - `region`: the position of its region.
    - `ram_alive`: the largest number of live bytes while it runs.
    - `scratch_bytes`, `weight_bytes`: its own scratch in the arena, and its own weights in flash.
    - `cost`: the planner's estimate in `cost_unit`; `share` is its part of the plan's cost.
    - `instructions`, `cycles`: those of a run; null without a run.
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

    - `symbols`: the different steps. Each has five numbers: the operator (-1: a row of the input image is
      delivered), how far its first row lies from the first row of this operator's last step, the number of
      rows, and the same two numbers for columns.
    - `sequence`: the steps in their order. A number from 0 on is the position of a symbol. A pair -d, n says
      that the last d steps are repeated for n more steps.
    - `turns`: maps each operator to the windows, scratch and constants that are in use while it runs. Other
      buffers are live from their first to their last step.
    """

    region: int
    symbols: list[list[int]]
    sequence: list[int]
    turns: dict[str, list[int]]


class PointRegion(TypedDict):
    """A region of a plan on the front: its first and last operator, schemes, memory and work."""

    first: int
    last: int
    streamed: bool
    schemes: list[str]
    live_bytes: int
    macs: int
    f: float
    cost: float


class ReportPoint(Point):
    """A plan of the front with its regions; `chosen` says whether it is the plan of the report."""

    chosen: bool
    runs: list[PointRegion]


class ReportFront(TypedDict):
    """The Pareto front of memory and work, without regard to limits.

    `available_bytes` is what the board has for the arena. `limit_bytes` is the limit of the request
    (null: none). `search_factor` and `placing_ended` are as in the answer to `front`. `error` says why
    there are no points, else it is "".
    """

    available_bytes: int
    limit_bytes: int | None
    points: list[ReportPoint]
    beside: list[Peer | Refusal]
    search_factor: float
    placing_ended: bool
    error: str


class ReportRun(TypedDict):
    """A run of the plan: how close it was to the real board, and the compiler of its firmware image.

    `cycles_are` says whether the cycles were measured by the core's own counter or estimated from counted
    blocks of code. It is "" if there are no cycles. `milliseconds` are the cycles at the board's clock.
    """

    how: str
    instructions: int | None
    cycles: int | None
    cycles_are: str
    milliseconds: float | None


class ReportImage(TypedDict):
    """The linked test firmware, symbol by symbol, as in `buildtool sizes`; `compiler` made it."""

    compiler: str
    sizes: list[MemorySize]
    parts: list[SizePart]


class ReportAnswer(PlannedModel):
    """All data that `buildtool report` draws and embeds in its page.

    There is a report for a network that does not fit, too. It has the plan that needs least memory.

    - `run`: the counts of a run; null without a run.
    - `linked`: the firmware that ran; null if no firmware was linked for the report.
    - `against`: the differences from another report; null without another report.
    """

    title: str
    verdict: Verdict | NoPlan
    layers: list[ReportLayer]
    steps: list[RegionSteps]
    front: ReportFront
    run: ReportRun | None
    linked: ReportImage | None
    against: Differences | None


class FigureChange(TypedDict):
    """A figure before and after; null where the report of that side does not have the figure."""

    name: str
    unit: str
    before: float | None
    after: float | None


class RowDifference(TypedDict):
    """A layer or region that was changed, added or removed (`how`).

    `label` is its short name. `numbers` are its figures that differ, and `words` the differences that are not
    figures.
    """

    name: str
    label: str
    how: str
    numbers: list[FigureChange]
    words: list[str]


class Differences(TypedDict):
    """The differences from another report or answer, which `about` names, as `buildtool diff` finds them."""

    about: str
    totals: list[FigureChange]
    regions: list[RowDifference]
    layers: list[RowDifference]
