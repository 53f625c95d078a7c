"""What a structure takes of a board, before it is trained: RAM, flash, work and time, by the planner.

None of these depends on the values of weights. So a candidate is priced from a sketch of it (sketch.py), and
one that no plan of the front brings within the goals is never trained.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.api import kept_session
from buildtool.api.requests import parse
from buildtool.api.requests.kinds import Front
from buildtool.api.requests.kinds import Plan as PlanRequest
from buildtool.base.errors import BuildtoolError
from buildtool.base.identity import code_digest
from buildtool.base.modes import Objective, Strategy
from buildtool.base.session import Session
from buildtool.client.files import Located
from buildtool.emit.image import image_layout
from buildtool.emit.sources import emit
from buildtool.firmware.bound import bound
from buildtool.firmware.planned import prepare
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph
from buildtool.plan.choose.choose import chosen
from buildtool.plan.choose.fronts import points
from buildtool.plan.choose.limits import estimated_ms
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.models import load_network
from buildtool.plan.types import Plan
from buildtool.split.convert import int8_model, random_images
from buildtool.split.records import Records, key_of
from buildtool.split.sketch import Unknown, sketch
from buildtool.split.structure import build
from buildtool.split.types import Block, Choice
from buildtool.split.wanted import Goals
from buildtool.target.catalogue import select_all
from buildtool.target.choice import load_target
from buildtool.target.hardware import MemoryKind
from buildtool.target.partitions import weights_room
from buildtool.target.registry import board_chain
from buildtool.target.types import Target

if TYPE_CHECKING:
    import keras


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

    def best(self, goals: Goals) -> Point:
        """The plan of least cost within the goals for RAM and flash; else the one of least memory."""
        within = [p for p in self._fitting(goals) if not self._flash_missed(p, goals)]
        return min(within, key=lambda p: p.cost, default=self.least)

    def image(self, point: Point) -> int:
        """Bytes of flash that a plan takes: the weight image, and code where that is known."""
        return self.flash + (point.code or 0)

    def missed(self, goals: Goals) -> str:
        """Which of the goals and of the board's own memories no plan meets, in words; "": one meets all."""
        if why := self._flash_missed(min(self.ram, key=self.image), goals):
            return why
        fitting = self._fitting(goals)
        if not fitting:
            return _exceeds("RAM", self.least.bytes, self._room(goals), "the smallest arena")
        within = [point for point in fitting if not self._flash_missed(point, goals)]
        if not within:
            return self._flash_missed(min(fitting, key=self.image), goals)
        if goals.max_ms is None:
            return ""
        times = [point.milliseconds for point in within if point.milliseconds is not None]
        if not times:
            return f"the time on {self.board} is not known: its costs are {self.unit}"
        is_met = min(times) <= goals.max_ms
        return "" if is_met else f"time: {min(times):,.1f} ms at least, {goals.max_ms:,g} are allowed"

    def _room(self, goals: Goals) -> int:
        return self.ram_there if goals.ram is None else min(goals.ram, self.ram_there)

    def _fitting(self, goals: Goals) -> list[Point]:
        return [point for point in self.ram if point.bytes <= self._room(goals)]

    def _flash_missed(self, point: Point, goals: Goals) -> str:
        """Why weights and code of a plan do not go into flash ("": they do)."""
        if self.flash > self.flash_there:
            return _exceeds("flash", self.flash, self.flash_there, "the weight image")
        if goals.flash is not None and self.image(point) > goals.flash:
            what = "the weight image" if point.code is None else "the weight image with code"
            return _exceeds("flash", self.image(point), goals.flash, what)
        if point.code is not None and self.code_there is not None and point.code > self.code_there:
            return _exceeds("flash", point.code, self.code_there, "code beside the weight image")
        return ""

    def data(self) -> dict[str, Any]:
        """Plain values, as records keep them."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**own, "ram": [list(dataclasses.astuple(point)) for point in self.ram]}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Price:
        """What `data` wrote, among other values or alone."""
        own = {field.name: data[field.name] for field in dataclasses.fields(cls)}
        return cls(**{**own, "ram": tuple(Point(*point) for point in data["ram"])})


def _exceeds(what: str, need: int, room: int, of: str) -> str:
    return f"{what}: {of} takes {need:,} bytes, there are {room:,}"


class Pricer:
    """Prices structures of one network on one board (its name, or a .toml file), each once.

    `records` keep the prices by all that they depend on.
    """

    def __init__(
        self,
        model: keras.Model,
        blocks: Sequence[Block],
        board: str | Path,
        goals: Goals,
        records: Records | None = None,
    ) -> None:
        self.model, self.blocks, self.board, self.goals = model, blocks, str(board), goals
        self._records = records
        self._session = kept_session()
        self.prices: dict[str, Price] = {}

    def price(self, choice: Choice) -> Price:
        """The price of a structure, from the records where they have it; the planner's errors."""
        name = choice.key()
        if name not in self.prices:
            self.prices[name] = self._recorded(choice)
        return self.prices[name]

    def missed(self, choice: Choice) -> str:
        """Why a structure cannot reach the goals ("": it can); one that the planner refuses cannot."""
        try:
            return self.price(choice).missed(self.goals)
        except BuildtoolError as error:
            return error.text

    def figures(self, choice: Choice) -> dict[str, float]:
        """What a structure needs, each number the better the smaller; nothing of one that is refused."""
        try:
            price = self.price(choice)
        except BuildtoolError:
            return {}
        best = price.best(self.goals)
        return {"ram": float(price.least.bytes), "flash": float(price.image(best)), "cost": best.cost}

    @cached_property
    def _about(self) -> dict[str, str]:
        """What a price depends on besides the choice: a board's file with those that it extends."""
        board = self.board
        if board.endswith(".toml"):
            with contextlib.suppress(OSError):  # the planner says what is wrong with it
                chain = b"\0".join(path.read_bytes() for path in board_chain(board))
                board = hashlib.sha256(chain).hexdigest()
        network = hashlib.sha256(self.model.to_json().encode()).hexdigest()
        return {"what": "price", "network": network, "board": board, "code": code_digest()}

    def _recorded(self, choice: Choice) -> Price:
        if self._records is None:
            return self._made(choice)
        key = key_of({**self._about, "choice": choice.key()})
        data = self._records.get(key)
        if data is None:
            data = {**self._made(choice).data(), "what": "price", "choice": choice.key()}
            self._records.put(key, data)
        return Price.of_data(data)

    def _made(self, choice: Choice) -> Price:
        model = build(self.model, self.blocks, choice, grouped=False)
        try:
            file = write_model(sketch(model))
        except Unknown:  # TensorFlow's converter knows it
            file = int8_model(model, random_images(model))
        return price_of(file, self.board, self._session)


# ---- by the planner --------------------------------------------------------------------------------


def price_of(file: bytes, board: str, session: Session) -> Price:
    """The price of a .tflite file's network on a board, whether it fits there or not.

    Raises the planner's errors: for an operator without a kernel, and a board that is not there.
    """
    model = {"name": "candidate.tflite", "data": file}
    target, prepared = prepared_for({"kind": "front", "model": model, "board": board}, session)
    graph = prepared.graphs[0]
    found = [(point.graph, point.plan) for point in points(prepared, None)]
    with contextlib.suppress(BuildtoolError):  # mostly one of these costs the least, and is not on the front
        found += _layer_by_layer(prepared)
    weights = image_layout(graph, select_all(target, graph)).size
    ways = {
        Point(p.arena_bytes, p.f, p.cost, estimated_ms(p.cost, target), code_bytes(g, p, target, session))
        for g, p in found
    }
    own = target.board
    beside = own.memory(own.code).size - (weights if own.code == own.weights else 0)
    return Price(
        board=own.name,
        ram=tuple(sorted(ways, key=lambda p: (p.bytes, p.cost))),
        layerwise=min((p.arena_bytes for _, p in found if p.strategy == Strategy.LAYERWISE), default=None),
        flash=weights,
        macs=found[0][1].macs_layerwise,
        unit=str(target.cost_unit),
        ram_there=prepared.available,
        flash_there=weights_room(own),
        code_there=None if any(way.code is None for way in ways) else max(0, beside),
    )


def prepared_for(request: Mapping[str, Any], session: Session) -> tuple[Target, Prepared]:
    """The target of a request that plans a network, and the network prepared for it."""
    asked = parse(Located(request).request)
    assert isinstance(asked, Front | PlanRequest)
    target = load_target(asked.target, session)
    return target, prepare(load_network(asked.model, session), target, asked.options, session)


def _layer_by_layer(prepared: Prepared) -> Iterator[tuple[Graph, Plan]]:
    """The plans layer by layer with the least cost and with the least memory, whether the board has it."""
    given = dataclasses.replace(prepared.options, strategy=Strategy.LAYERWISE, hand_off=None)
    for objective in (Objective.COST, Objective.RAM):
        yield chosen(prepared.by_itself(dataclasses.replace(given, objective=objective)))


def code_bytes(graph: Graph, plan: Plan, target: Target, session: Session) -> int | None:
    """Bytes of flash beside the weight image at most: code and constants of network, kernels, test firmware.

    Counted for the newest recorded compiler of the board's first toolchain, whatever is installed: the same
    network has the same figure on every machine. None where nothing is recorded, or code is in no flash.
    """
    board = target.board
    flash = {name for name in (board.code, board.weights) if board.memory(name).kind is not MemoryKind.RAM}
    if board.code not in flash:
        return None
    sources = emit(graph, plan, target, "network", session)
    found = bound(sources, plan, target, "")
    if found is None:
        return None
    weights = len(sources.image.data) if board.weights in flash else 0
    return sum(found.use(name).bytes for name in flash) - weights
