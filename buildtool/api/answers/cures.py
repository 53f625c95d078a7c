"""Whether a network fits a board, and what would make it fit: the cures, which are settings or other boards.

Each candidate is planned, and its bytes are counted. The likely ones are tried first. Those that fit are
listed by estimated cost, then by work. Other boards come after all settings of this board.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

from buildtool.api.answers.estimate import price
from buildtool.base.errors import BuildtoolError, Value
from buildtool.base.modes import Image, Objective, Order
from buildtool.emit.image import image_layout
from buildtool.firmware.counting import Count, count_footprint
from buildtool.firmware.hopping import needed_bytes
from buildtool.firmware.needs import CODE, Footprint, Need, needs, needs_of
from buildtool.firmware.planned import prepare
from buildtool.options.values import PlanOptions, TargetChoice
from buildtool.plan.choose.choose import nearest
from buildtool.plan.choose.memories import waiting
from buildtool.plan.models import Network
from buildtool.target.choice import arena_memories, holds_weights, load_target
from buildtool.target.hardware import MemoryKind
from buildtool.target.registry import board_names, load_board

if TYPE_CHECKING:
    from buildtool.base.session import Session
    from buildtool.graph.types import Graph
    from buildtool.plan.choose.problem import Prepared
    from buildtool.plan.types import Plan
    from buildtool.schema.boards import Price

SPARE_CODE = 0.05  # share of the code's upper limit: if less memory stays unused, the firmware is linked
SHOWN = 3  # the largest number of cures in an answer
MOST_TRIES = 12  # the largest number of settings that are planned
MOST_BOARDS = 3  # the largest number of other boards that are planned
RESTRICTIONS = ("strategy", "segments", "in_place", "hand_off", "image", "max_f", "max_cost", "max_ms")

Settings = dict[str, Value]  # options with their values; None: the option is left out


@dataclass(frozen=True)
class Fitting:
    """A plan and what its firmware needs in each memory of the board.

    - `prepared`, `graph`: the planning problem, and the network that the plan runs.
    - `flash`: bytes of the weight image.
    - `needs`: one for each memory and limit; those for the arena and the weights come first.
    - `count`: how the bytes of the firmware were counted.
    """

    prepared: Prepared
    graph: Graph
    plan: Plan
    flash: int
    needs: tuple[Need, ...]
    count: Count

    @property
    def fits(self) -> bool:
        """Whether the board has room for every need, and enough stack."""
        return not self.stack_excess and fits(self.needs)

    @property
    def stack_excess(self) -> int:
        """The bytes that an invoke may need beyond the board's stack; 0 if its stack is not known."""
        return max(0, (self.count.stack or 0) - self.prepared.target.board.stack_bytes)

    @property
    def price(self) -> Price:
        """The memory and cost of the plan; the cost includes waits for the arena's memories."""
        target, session = self.prepared.target, self.prepared.session
        return price(self.plan, target, waiting(self.plan, self.graph, target, session))


def fit(prepared: Prepared, name: str, *, exactly: bool) -> Fitting:
    """Returns a problem's plan, and what its firmware needs in each memory.

    If no plan keeps the limit on memory, it is the smallest plan. `name` is the network's name. If `exactly`
    is true, the firmware is compiled and linked if possible. Otherwise it is linked only if an upper limit of
    its size does not show whether it fits. Raises BuildtoolError if there is no plan.
    """
    graph, plan = nearest(prepared)
    return fit_plan(prepared, graph, dataclasses.replace(plan, **prepared.in_plan), name, exactly=exactly)


def fit_plan(prepared: Prepared, graph: Graph, plan: Plan, name: str, *, exactly: bool) -> Fitting:
    """Returns a plan and what its firmware needs in each memory; for `name` and `exactly` see `fit`."""
    target, options = prepared.target, prepared.options
    flash = image_layout(graph, target.kernels_by_name(plan.kernels)).size
    least = needs(plan, target, flash, options)

    def suffices(bound: Footprint) -> bool:
        """Whether an upper bound is enough to decide if the firmware fits.

        It is enough if even more code than the bound counts would fit, or if the arena and the weights alone
        do not fit.
        """

        def with_spare(need: Need) -> float:
            code = sum(part.bytes for part in need.parts if part.name.startswith(CODE))
            return need.required + code * SPARE_CODE

        above = needs_of(bound, plan, target, flash, options)
        fits_surely = all(with_spare(need) <= need.available for need in above)
        return not exactly and (fits_surely or not fits(least))

    count = count_footprint(graph, plan, target, name, suffices, prepared.session)
    counted_needs = least
    if count.footprint is not None:
        counted_needs = needs_of(count.footprint, plan, target, flash, options)
    return Fitting(prepared, graph, plan, flash, counted_needs, count)


def fits(every: Sequence[Need]) -> bool:
    """Returns whether the board has as many bytes as each need requires."""
    return not any(need.excess for need in every)


@dataclass(frozen=True)
class Cure:
    """Settings with which the network fits, on this board or on another one, and the plan that proves it."""

    settings: Settings
    fitting: Fitting


def cures(network: Network, choice: TargetChoice, lacking: Fitting, session: Session) -> list[Cure]:
    """Returns at most SHOWN cures: settings with which the network fits, the cheapest first.

    `choice` is the target of the request. `lacking` has the request's plan, which does not fit.
    """
    options = lacking.prepared.asked
    helping: list[Cure] = []
    # skips settings that contain a cure
    untried = (
        s for s in _list_settings(lacking) if not any(c.settings.items() <= s.items() for c in helping)
    )
    for settings in islice(untried, MOST_TRIES):
        session.tell(f"trying settings: {', '.join(f'{k}={v}' for k, v in settings.items())}")
        cure = _try_settings(network, choice, options, settings, session)
        if cure is not None:
            helping.append(cure)
    helping.sort(key=lambda cure: (cure.fitting.price["cost"], cure.fitting.plan.macs, list(cure.settings)))
    if len(helping) < SHOWN:
        helping += _try_boards(network, lacking, session)
    return helping[:SHOWN]


def _try_settings(
    network: Network, asked: TargetChoice, options: PlanOptions, settings: Settings, session: Session
) -> Cure | None:
    """Returns a cure if the settings are valid and the network fits with them, else None.

    `asked` and `options` are those of the request; the settings replace some of them.
    """
    of_plan: dict[str, Any] = {}
    of_target: dict[str, Any] = {}
    for name, value in settings.items():
        default = getattr(PlanOptions, name, None)
        if not hasattr(PlanOptions, name):
            of_target[name] = value
        elif isinstance(default, enum.StrEnum) and value is not None:
            of_plan[name] = type(default)(str(value))
        else:
            of_plan[name] = default if value is None else value
    try:
        choice = dataclasses.replace(asked, **of_target)
        planning = dataclasses.replace(options, **of_plan)
        prepared = prepare(network, load_target(choice, session), planning, session)
        fitting = fit(prepared, network.model.name, exactly=False)
    except BuildtoolError:
        return None
    if fitting.fits:
        return Cure(settings, fitting)
    over = sum(need.excess for need in fitting.needs if need.memory in prepared.target.board.holders)
    ram = needed_bytes(fitting.plan) - over
    if "ram" in settings or not over or ram <= 0 or fitting.plan.arena_bytes > prepared.available:
        return None
    # The arena fits, but not together with the firmware's other bytes in its memory.
    return _try_settings(network, asked, options, {**settings, "ram": ram}, session)


def _list_settings(lacking: Fitting) -> Iterator[Settings]:
    """Yields settings that could help on the same board, the likeliest first."""
    board = lacking.prepared.target.board
    over = [need for need in lacking.needs if need.excess]
    if any(need.what == "weights limit" for need in over):
        yield {"max_flash": None}
    if lacking.stack_excess or any(need.what == "flash" for need in over):
        if any(need.what == "flash" and need.memory == board.weights for need in over):
            others = (m for m in board.memories if holds_weights(board, m) and m.name != board.weights)
            stored = (m.name for m in others if m.kind is MemoryKind.ROM or m.bandwidth)  # RAM has a copy
            yield from (Settings(weights_in=name) for name in stored)
        return  # no setting of the plan makes code or weights smaller
    arenas = [need for need in over if need.memory in board.holders or need.what == "arena limit"]
    if not arenas:
        return
    options, needed = lacking.prepared.asked, needed_bytes(lacking.plan)
    ram = needed - max(need.excess for need in arenas)
    if not board.second and ram > 0:  # the firmware's other bytes take some of the arena's memory
        yield {"ram": ram}
    # the request's restrictions, one by one, then all of them
    chosen = [name for name in RESTRICTIONS if getattr(options, name) != getattr(PlanOptions, name)]
    lifted = Settings({name: None for name in chosen if options.image != Image.STREAM or name != "image"})
    yield from (Settings({name: None}) for name in lifted if name != "segments")
    if options.ram is not None and needed > options.ram:
        yield {"ram": needed}
    if len(lifted) > 1:
        yield lifted
    if options.image != Image.STREAM:
        yield {"image": str(Image.STREAM)}
    beyond = any(need.what == "RAM" for need in arenas)  # another memory helps, but not against a limit
    able = arena_memories(board) if beyond else []
    memories = [Settings(arena_in=name) for name in able if (name,) != board.holders]
    pairs = (pair for pair in combinations(able, 2) if set(pair) != set(board.holders))
    memories += [Settings(arena_in=",".join(pair)) for pair in pairs]
    yield from memories
    if options.order != Order.BEST:
        yield {"order": str(Order.BEST)}
    if board.core.threads > 1:
        yield {"threads": 1}
    if options.image != Image.STREAM:
        yield from ({"image": str(Image.STREAM), **settings} for settings in memories)


def _try_boards(network: Network, lacking: Fitting, session: Session) -> Iterator[Cure]:
    """Yields a cure for each other known board on which the network fits.

    At most MOST_BOARDS boards are tried. Boards of the same family come first, then those with less memory.
    """
    own = lacking.prepared.target.board
    others = [load_board(name) for name in board_names() if name != own.name]
    real = [board for board in others if not board.is_native]
    least = lacking.plan.arena_bytes
    room = [b for b in real if b.room(b.arena, lacking.plan.state_bytes) >= least]
    room = [b for b in room if b.memory(b.weights).size >= lacking.flash]
    room.sort(key=lambda b: (b.memory(b.arena).size, b.memory(b.weights).size, b.name))
    room.sort(key=lambda b: b.family != own.family)
    plain = TargetChoice("")
    for board in room[:MOST_BOARDS]:
        session.tell(f"trying board {board.name}")
        cure = _try_settings(network, plain, lacking.prepared.asked, {"board": board.name}, session)
        if cure is not None:
            yield cure


def next_smaller(
    network: Network, choice: TargetChoice, fitting: Fitting, objective: Objective = Objective.COST
) -> tuple[Settings, Fitting] | None:
    """Returns the next smaller plan than one that fits, and the setting that makes it.

    `choice` is the target of the request. With the objective `ram` it is the smallest plan of all. None if
    there is no smaller plan.
    """
    prepared = fitting.prepared
    ram = needed_bytes(fitting.plan) - fitting.plan.alignment
    if ram <= 0:
        return None
    options = dataclasses.replace(prepared.asked, ram=ram, objective=objective)
    try:
        target = load_target(choice, prepared.session)
        smaller = fit(prepare(network, target, options, prepared.session), network.model.name, exactly=False)
    except BuildtoolError:
        return None
    needed = needed_bytes(smaller.plan)
    return ({"ram": needed}, smaller) if needed <= ram else None
