"""Changes plans by their structure: records lost, doubled, exchanged, and given each other's fields.

What comes out is well formed, and mostly close to a plan that holds: buffers that forget a tensor, regions
with another one's operators, loads into another one's buffer, rows a step more. It is refused, or its
firmware is exact.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.fuzz.damage import INTEGERS
from buildtool.base.errors import PlanError
from buildtool.base.files import File
from buildtool.base.session import Session
from buildtool.emit.sources import Sources, emit
from buildtool.firmware.planned import Planned, plan_model, read_plan
from buildtool.options.values import PlanOptions, TargetChoice
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.plan.locked import Locked, to_text
from buildtool.plan.types import Plan, Removed

SLOW_BOARD = b"""\
extends = "host"
[memory.flash]
kind = "rom"
base = 0x40000000
size = "4M"
bandwidth = 50000000
[roles]
weights = "flash"
"""
_LISTS = ("buffers", "buffers", "buffers", "regions", "regions", "overlaps", "loads", "moves", "states")
_NUMBERS = ("alignment", "arena_bytes", "second_at", "macs", "image", "kernels", "views", "second_passes")
_NAMING = ("op", "buffer", "input", "output", "source", "target")  # fields that are numbers of other things
_MENTIONS = 0.5  # of all changes are of such a number
_TEXT = 0.3  # of all mutants are files that are kept beside a model


@dataclasses.dataclass(frozen=True)
class Subject:
    """A network, a board and the options for its plan."""

    model: bytes
    board: str
    options: PlanOptions

    @property
    def file(self) -> File:
        """The network's model file."""
        return File("net.tflite", data=self.model)

    @property
    def choice(self) -> TargetChoice:
        """The board; if no name is given, a board file with slow flash, from which weights are loaded."""
        return TargetChoice(self.board or File("slow.toml", data=SLOW_BOARD))

    def is_in(self, data: bytes) -> bool:
        """Whether a plan's bytes contain the digests of this network and this board."""
        return all(word.encode() in data for word in (self.plan.topology, self.plan.target))

    @functools.cached_property
    def made(self) -> Planned:
        """The network with a correct plan."""
        return plan_model(self.file, self.choice, self.options, Session())

    @property
    def plan(self) -> Plan:
        """The correct plan."""
        return self.made.plan


def subjects(models: Sequence[bytes], further: Sequence[bytes]) -> list[Subject]:
    """Returns networks whose plans together have all features.

    These are whole operators, rings, strips, branches, loads and state.
    """
    plain, branches, moved = models[:3]
    chain, remembering = further
    layers, least = PlanOptions(strategy="layerwise"), PlanOptions(objective="ram")
    rows, quick = PlanOptions(objective="ram", image="stream"), PlanOptions(image="stream", max_f=1.0)
    return [
        *(Subject(model, "host", layers) for model in (plain, branches, moved, remembering)),
        *(Subject(model, "host", least) for model in (plain, branches, chain)),
        *(Subject(model, "host", options) for model in (plain, chain) for options in (rows, quick)),
        Subject(remembering, "host", rows),
        *(Subject(chain, "", options) for options in (layers, least, rows)),
    ]


def made_by(data: bytes, every: Sequence[Subject]) -> tuple[Planned, Sources]:
    """Reads a plan and emits its code; raises PlanError if the plan is not valid.

    The plan's digests select its subject; if they are damaged, it is the first one.
    """
    of = next((one for one in every if one.is_in(data)), every[0])
    made = read_plan(of.file, of.choice, File("net.plan", data=data), Session())
    return made, emit(made.graph, made.plan, made.target, "net", made.session)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Returns a plan with one or two changes, as an emitted .plan or as a file to store beside the model."""
    plan = from_bytes(data)
    for _ in range(rng.choice((1, 1, 1, 2))):
        if rng.random() < _MENTIONS:
            plan = _with_other(plan, rng.choice(list(mentions(plan))), rng)
            continue
        name = rng.choice(_LISTS if rng.random() < 0.9 else _NUMBERS)
        old = getattr(plan, name)
        plan = dataclasses.replace(plan, **{name: _altered(old, rng, [])})
    try:
        return to_text(Locked(plan, "", ())) if rng.random() < _TEXT else to_bytes(plan)
    except (PlanError, OverflowError, ValueError, TypeError):  # what the bytes cannot say
        return data


def mentions(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Yields the paths in a plan to all numbers that name a tensor, an operator or a buffer.

    Removed channels are left out: they say which network the plan is for, and are compared with it.
    """
    if isinstance(value, Removed):
        return
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            held = getattr(value, field.name)
            if isinstance(held, tuple):
                yield from ((field.name, *way) for way in mentions(held))
            elif field.name in _NAMING and isinstance(held, int):
                yield (field.name,)
    for place, item in enumerate(value if isinstance(value, tuple) else ()):
        if isinstance(item, int):
            yield (place,)
        else:
            yield from ((place, *way) for way in mentions(item))


def without(value: Any, way: Sequence[str | int]) -> Any:
    """Returns a copy of `value` without the tuple element at the end of the path `way`."""
    return _at(value, way, lambda made, place: made[:place] + made[place + 1 :])


def _with_other(plan: Plan, way: Sequence[str | int], rng: random.Random) -> Any:
    """Returns the plan with one number at the path `way` removed, duplicated or replaced."""
    if isinstance(way[-1], str):
        return _at(plan, way, lambda owner, name: dataclasses.replace(owner, **{name: rng.randrange(-1, 12)}))
    match rng.randrange(3):
        case 0:
            return without(plan, way)
        case 1:
            return _at(plan, way, lambda made, place: (*made, made[place]))
        case _:
            other = (rng.randrange(30),)
            return _at(plan, way, lambda made, place: made[:place] + other + made[place + 1 :])


def _at(value: Any, way: Sequence[str | int], change: Callable[[Any, Any], Any]) -> Any:
    """Returns a copy of `value` with a change at the end of the path `way`.

    `change` gets the object that has the last step, and that step; it returns the new object.
    """
    step, *rest = way
    if not rest:
        return change(value, step)
    if isinstance(step, int):
        return (*value[:step], _at(value[step], rest, change), *value[step + 1 :])
    return dataclasses.replace(value, **{step: _at(getattr(value, step), rest, change)})


def _altered(value: Any, rng: random.Random, alike: Sequence[Any]) -> Any:
    """Returns a value that differs from `value`. `alike`: the same field's values in other records."""
    if alike and rng.random() < 0.3:
        return rng.choice(alike)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = rng.choice([field.name for field in dataclasses.fields(value)])
        others = [getattr(one, name) for one in alike]
        return dataclasses.replace(value, **{name: _altered(getattr(value, name), rng, others)})
    if isinstance(value, tuple):
        return _rearranged(value, rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, enum.Enum):
        return rng.choice(list(type(value)))
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, value + 16, value - 16, 0, 2 * value, rng.choice(INTEGERS)))
    return rng.choice((value + "x", "", "reference")) if isinstance(value, str) else value


def _rearranged(value: tuple[Any, ...], rng: random.Random) -> tuple[Any, ...]:
    """Returns the tuple with one element removed, duplicated, swapped with another one, or changed."""
    made = list(value)
    if not made:
        return (rng.randrange(8),)
    place, other = rng.randrange(len(made)), rng.randrange(len(made))
    match rng.randrange(6):
        case 0:
            del made[place]
        case 1:
            made.insert(other, made[place])
        case 2:
            made[place], made[other] = made[other], made[place]
        case _:
            made[place] = _altered(made[place], rng, made[:place] + made[place + 1 :])
    return tuple(made)
