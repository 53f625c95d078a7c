"""What a structure takes of a board, before it is trained: RAM, flash, work and time, by the planner.

None of these depends on the values of weights. So a candidate is priced from a sketch of it (sketch.py), and
one that no plan of the front brings within the goals is never trained.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.errors import BuildtoolError
from buildtool.split.structure import build
from buildtool.split.types import Choice

if TYPE_CHECKING:
    import keras

    from buildtool.graph.types import Graph
    from buildtool.session import Session
    from buildtool.split.types import Block


@dataclass(frozen=True)
class Goals:
    """Upper limits: bytes of the arena and of the weight image, milliseconds of an invoke.

    None: the board's own memory, and any time.
    """

    ram: int | None = None
    flash: int | None = None
    max_ms: float | None = None


@dataclass(frozen=True)
class Point:
    """A plan of the front: bytes of the arena, F (work over the network's own), cost and milliseconds."""

    bytes: int
    f: float
    cost: float
    milliseconds: float | None


@dataclass(frozen=True)
class Price:
    """What a structure takes of a board.

    `ram`: the plans that no other beats in memory and work, and the one layer by layer, least memory first;
    `layerwise`: bytes of the
    arena where operators run one after the other (None: no such plan); `flash`: bytes of the weight image;
    `macs`: of one invoke; `unit`: of all costs. `ram_there`, `flash_there`: what the board has for arena and
    weights.
    """

    board: str
    ram: tuple[Point, ...]
    layerwise: int | None
    flash: int
    macs: int
    unit: str
    ram_there: int
    flash_there: int

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
        """The plan of least cost within the goal for RAM; the one of least memory where none keeps it."""
        room = self.ram_there if goals.ram is None else min(goals.ram, self.ram_there)
        return min((p for p in self.ram if p.bytes <= room), key=lambda p: p.cost, default=self.least)

    def data(self) -> dict[str, Any]:
        """Plain values, as records keep them."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**own, "ram": [[p.bytes, p.f, p.cost, p.milliseconds] for p in self.ram]}

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
    room = price.flash_there if goals.flash is None else min(goals.flash, price.flash_there)
    if price.flash > room:
        return Verdict(False, _exceeds("flash", price.flash, room, "the weight image"))
    room = price.ram_there if goals.ram is None else min(goals.ram, price.ram_there)
    within = [point for point in price.ram if point.bytes <= room]
    if not within:
        return Verdict(False, _exceeds("RAM", price.least.bytes, room, "the smallest arena"))
    if goals.max_ms is None:
        return Verdict(True)
    times = [point.milliseconds for point in within if point.milliseconds is not None]
    if not times:
        return Verdict(False, f"the time on {price.board} is not known: its costs are {price.unit}")
    if min(times) > goals.max_ms:
        return Verdict(False, f"time: {min(times):,.1f} ms at least, {goals.max_ms:,.1f} are allowed")
    return Verdict(True)


def _exceeds(what: str, need: int, room: int, of: str) -> str:
    return f"{what}: {of} takes {need:,} bytes, there are {room:,}"


def price_of(graph: Graph, board: str | Path, session: Session) -> Price:
    """The price of a network on a board (its name, or a .toml file), whether it fits there or not.

    Raises the planner's errors: for an operator without a kernel, and a board that is not there.
    """
    from buildtool.graph.tflite.writer import write_model

    with tempfile.TemporaryDirectory(prefix="buildtool-split-") as folder:
        path = Path(folder) / "candidate.tflite"
        path.write_bytes(write_model(graph))
        return price_of_file(path, board, session)


def price_of_file(path: Path, board: str | Path, session: Session) -> Price:
    """As `price_of`, of a .tflite file."""
    from buildtool.client.files import Located
    from buildtool.emit.image import image_layout
    from buildtool.service.answers.fronts import peers_of
    from buildtool.service.pipeline.cost_units import estimated_ms
    from buildtool.service.pipeline.fronts import points
    from buildtool.service.pipeline.prepare import load_network, prepare
    from buildtool.service.pipeline.targets import load_target
    from buildtool.service.requests import Front, parse
    from buildtool.target import catalogue
    from buildtool.target.partitions import weights_room

    request = parse(Located({"kind": "front", "model": str(path), "board": str(board)}).request)
    assert isinstance(request, Front)
    target, options = load_target(request.target, session), request.options
    prepared = prepare(load_network(request.model, session), target, options, session)
    graph = prepared.graphs[0]
    found = [point.plan for point in points(prepared, None)]
    ways = {Point(p.arena_bytes, p.f, p.cost, estimated_ms(p.cost, target)) for p in found}
    layerwise: int | None = None
    for peer in peers_of(prepared, peers=False):
        if "error" not in peer:  # mostly it costs the least, and what costs least may not be on the front
            layerwise = peer["arena_bytes"]
            ways.add(Point(layerwise, peer["f"], peer["cost"], peer["estimated_ms"]))
    return Price(
        board=target.board.name,
        ram=tuple(sorted(ways, key=lambda p: (p.bytes, p.cost))),
        layerwise=layerwise,
        flash=image_layout(graph, catalogue.select_all(target, graph)).size,
        macs=found[0].macs_layerwise,
        unit=str(target.cost_unit),
        ram_there=prepared.available,
        flash_there=weights_room(target.board),
    )


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
        from buildtool.service import kept_session

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

        with tempfile.TemporaryDirectory(prefix="buildtool-split-") as folder:
            path = Path(folder) / "candidate.tflite"
            path.write_bytes(int8_model(model, random_images(model)))
            return price_of_file(path, self.board, self._session)
