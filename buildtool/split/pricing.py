"""What a structure takes of a board, before it is trained: RAM, flash, work and time, by the planner.

None of these depends on the values of weights. So a candidate is priced from a sketch of it (sketch.py), and
one that no plan of the front brings within the goals is never trained.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.base.errors import BuildtoolError
from buildtool.base.scratch import scratch
from buildtool.split.code import code_bytes, room
from buildtool.split.structure import build
from buildtool.split.types import Choice

if TYPE_CHECKING:
    import keras

    from buildtool.base.session import Session
    from buildtool.graph.types import Graph
    from buildtool.plan.choose.prepare import Prepared
    from buildtool.plan.types import Plan
    from buildtool.split.types import Block


@dataclass(frozen=True)
class Goals:
    """Upper limits: bytes of the arena, bytes of weights and code in flash, milliseconds of an invoke.

    None: the board's own memory, and any time.
    """

    ram: int | None = None
    flash: int | None = None
    max_ms: float | None = None


@dataclass(frozen=True)
class Point:
    """A plan of the front: bytes of the arena, F (work over the network's own), cost and milliseconds.

    `code`: bytes of flash beside the weight image at most; None where no sizes are recorded for the board.
    """

    bytes: int
    f: float
    cost: float
    milliseconds: float | None
    code: int | None = None


@dataclass(frozen=True)
class Price:
    """What a structure takes of a board.

    `ram`: the plans that no other beats in memory and work, and those layer by layer with the least cost and
    with the least memory; the least memory comes first;
    `layerwise`: bytes of the arena where operators run one after the other (None: no such plan);
    `flash`: bytes of the weight image; `macs`: of one invoke; `unit`: of all costs. `ram_there`,
    `flash_there`, `code_there`: what the board has for arena, weights, and code beside them (None: code is
    not counted).
    """

    board: str
    ram: tuple[Point, ...]
    layerwise: int | None
    flash: int
    macs: int
    unit: str
    ram_there: int
    flash_there: int
    code_there: int | None = None

    @property
    def least(self) -> Point:
        """The plan of least memory."""
        return self.ram[0]

    @property
    def cost(self) -> float:
        """The least cost of all plans that the board has room for; that of the smallest where it has none."""
        return self.best(Goals()).cost

    @property
    def milliseconds(self) -> float | None:
        """The time of the plan of least cost that the board has room for; None where costs are no time."""
        return self.best(Goals()).milliseconds

    def best(self, goals: Goals) -> Point:
        """The plan of least cost within the goals for RAM and flash; else the one of least memory."""
        room = _least(goals.ram, self.ram_there)
        within = [p for p in self.ram if p.bytes <= room and not self.flash_missed(p, goals)]
        return min(within, key=lambda p: p.cost, default=self.least)

    def image(self, point: Point) -> int:
        """Bytes of flash that a plan takes: the weight image, and code where that is known."""
        return self.flash + (point.code or 0)

    def flash_missed(self, point: Point, goals: Goals) -> str:
        """Why weights and code of a plan do not go into flash ("": they do)."""
        what = "the weight image" if point.code is None else "the weight image with code"
        if self.flash > self.flash_there:
            return _exceeds("flash", self.flash, self.flash_there, "the weight image")
        if goals.flash is not None and self.image(point) > goals.flash:
            return _exceeds("flash", self.image(point), goals.flash, what)
        if point.code is not None and self.code_there is not None and point.code > self.code_there:
            return _exceeds("flash", point.code, self.code_there, "code beside the weight image")
        return ""

    def data(self) -> dict[str, Any]:
        """Plain values, as records keep them."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**own, "ram": [[p.bytes, p.f, p.cost, p.milliseconds, p.code] for p in self.ram]}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Price:
        """What `data` wrote; KeyError or TypeError for other values."""
        return cls(**{**data, "ram": tuple(Point(*point) for point in data["ram"])})


@dataclass(frozen=True)
class Verdict:
    """Whether a structure can reach the goals on the board; `why`: what it exceeds, "" where nothing."""

    ok: bool
    why: str = ""


def verdict(price: Price, goals: Goals) -> Verdict:
    """Holds a price against the goals, and against the board's own memories."""
    smallest = min(price.ram, key=price.image)
    if why := price.flash_missed(smallest, goals):
        return Verdict(False, why)
    room = _least(goals.ram, price.ram_there)
    fitting = [point for point in price.ram if point.bytes <= room]
    if not fitting:
        return Verdict(False, _exceeds("RAM", price.least.bytes, room, "the smallest arena"))
    within = [point for point in fitting if not price.flash_missed(point, goals)]
    if not within:
        return Verdict(False, price.flash_missed(min(fitting, key=price.image), goals))
    if goals.max_ms is None:
        return Verdict(True)
    times = [point.milliseconds for point in within if point.milliseconds is not None]
    if not times:
        return Verdict(False, f"the time on {price.board} is not known: its costs are {price.unit}")
    if min(times) > goals.max_ms:
        return Verdict(False, f"time: {min(times):,.1f} ms at least, {goals.max_ms:,g} are allowed")
    return Verdict(True)


def _least(asked: int | None, there: int) -> int:
    return there if asked is None else min(asked, there)


def _exceeds(what: str, need: int, room: int, of: str) -> str:
    return f"{what}: {of} takes {need:,} bytes, there are {room:,}"


def price_of(graph: Graph, board: str | Path, session: Session) -> Price:
    """The price of a network on a board (its name, or a .toml file), whether it fits there or not.

    Raises the planner's errors: for an operator without a kernel, and a board that is not there.
    """
    from buildtool.graph.tflite.writer import write_model

    with scratch() as folder:
        path = Path(folder) / "candidate.tflite"
        path.write_bytes(write_model(graph))
        return price_of_file(path, board, session)


def price_of_file(path: Path, board: str | Path, session: Session) -> Price:
    """As `price_of`, of a .tflite file."""
    from buildtool.api.requests import Front, parse
    from buildtool.base.modes import Strategy
    from buildtool.client.files import Located
    from buildtool.emit.image import image_layout
    from buildtool.plan.choose.cost_units import estimated_ms
    from buildtool.plan.choose.fronts import points
    from buildtool.plan.choose.prepare import load_network, prepare
    from buildtool.target import catalogue
    from buildtool.target.choice import load_target
    from buildtool.target.partitions import weights_room

    request = parse(Located({"kind": "front", "model": str(path), "board": str(board)}).request)
    assert isinstance(request, Front)
    target, options = load_target(request.target, session), request.options
    prepared = prepare(load_network(request.model, session), target, options, session)
    graph = prepared.graphs[0]
    found = [(point.graph, point.plan) for point in points(prepared, None)]
    with contextlib.suppress(BuildtoolError):  # mostly one of these costs the least, and is not on the front
        found += _layer_by_layer(prepared)
    weights = image_layout(graph, catalogue.select_all(target, graph)).size
    ways = {
        Point(p.arena_bytes, p.f, p.cost, estimated_ms(p.cost, target), code_bytes(g, p, target, session))
        for g, p in found
    }
    return Price(
        board=target.board.name,
        ram=tuple(sorted(ways, key=lambda p: (p.bytes, p.cost))),
        layerwise=min((p.arena_bytes for _, p in found if p.strategy == Strategy.LAYERWISE), default=None),
        flash=weights,
        macs=found[0][1].macs_layerwise,
        unit=str(target.cost_unit),
        ram_there=prepared.available,
        flash_there=weights_room(target.board),
        code_there=None if any(way.code is None for way in ways) else room(target.board, weights),
    )


def _layer_by_layer(prepared: Prepared) -> Iterator[tuple[Graph, Plan]]:
    """The plans layer by layer with the least cost and with the least memory, whether the board has it."""
    from buildtool.base.modes import Objective, Strategy
    from buildtool.plan.choose.choose import chosen

    for objective in (Objective.COST, Objective.RAM):
        options = replace(prepared.options, strategy=Strategy.LAYERWISE, objective=objective, hand_off=None)
        yield chosen(prepared.by_itself(options))


class Pricer:
    """Prices structures of one network on one board, each once.

    `known` finds an earlier price by a structure's key, `keep` takes a new one: the records of a search.
    """

    def __init__(
        self,
        model: keras.Model,
        blocks: Sequence[Block],
        board: str | Path,
        goals: Goals,
        *,
        known: Callable[[str], Mapping[str, Any] | None] = lambda key: None,
        keep: Callable[[str, Mapping[str, Any]], None] = lambda key, data: None,
    ) -> None:
        from buildtool.api import kept_session

        self.model, self.blocks, self.board, self.goals = model, blocks, board, goals
        self._known, self._keep = known, keep
        self._session = kept_session()
        self.prices: dict[str, Price] = {}

    def price(self, choice: Choice) -> Price:
        """The price of a structure, from the records where they have it."""
        key = choice.key()
        if key not in self.prices:
            found = self._recorded(key)
            if found is None:
                found = self._made(choice)
                self._keep(key, found.data())
            self.prices[key] = found
        return self.prices[key]

    def admits(self, choice: Choice) -> Verdict:
        """Whether a structure can reach the goals; one that the planner refuses cannot."""
        try:
            return verdict(self.price(choice), self.goals)
        except BuildtoolError as error:
            return Verdict(False, error.text)

    def _recorded(self, key: str) -> Price | None:
        data = self._known(key)
        try:
            return None if data is None else Price.of_data(data)
        except (KeyError, TypeError):  # of another schema: it is made anew
            return None

    def _made(self, choice: Choice) -> Price:
        from buildtool.split.sketch import Unknown, sketch

        model = build(self.model, self.blocks, choice, grouped=False)
        try:
            graph = sketch(model)
        except Unknown:
            return self._converted(model)
        return price_of(graph, self.board, self._session)

    def _converted(self, model: keras.Model) -> Price:
        """By TensorFlow's converter, for layers that are not sketched."""
        from buildtool.split.convert import int8_model, random_images

        with scratch() as folder:
            path = Path(folder) / "candidate.tflite"
            path.write_bytes(int8_model(model, random_images(model)))
            return price_of_file(path, self.board, self._session)
