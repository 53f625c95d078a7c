"""The figures of an answer that was kept as JSON, or of a locked plan, by names that `diff` compares.

`buildtool plan`, `profile`, `validate`, `build` and `sizes` print such answers with `--json`; `buildtool plan
--out` writes a locked plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from buildtool.errors import BuildtoolError, UsageError

MOST_BYTES = 1 << 28  # of a file
MOST = 1 << 63  # of a figure
_HINT = "an answer that `buildtool plan|profile|validate|build|sizes ... --json` printed, or a locked plan"
Number = int | float


@dataclass(frozen=True)
class Metric:
    """A total: its name in `--fail-if`, and its unit ("" for a plain number)."""

    name: str
    unit: str
    key: str  # of the answer


# In the order of the tables. Which of them a file has depends on the command that wrote it.
METRICS = (
    Metric("ram", "bytes", "arena_bytes"),
    Metric("weights", "bytes", "flash_bytes"),
    Metric("stack", "bytes", "stack_high_water"),
    Metric("macs", "", "macs"),
    Metric("f", "", "f"),
    Metric("cost", "", "cost"),
    Metric("instructions", "", "instructions"),
)
MEMORY = "memory."  # begins the names of what an image takes of a memory


@dataclass(frozen=True)
class Row:
    """A layer or a region by its name: numbers by column, and words such as its kernel."""

    name: str
    numbers: Mapping[str, Number]
    words: Mapping[str, str]


@dataclass(frozen=True)
class Figures:
    """What a file says: whose answer it is, totals by metric, layers and regions in their order.

    `rows_of`: which command names the layers and regions, "" where there are none; those of two commands are
    not the same things.
    """

    path: str
    about: str
    totals: Mapping[str, Number]
    units: Mapping[str, str]
    layers: tuple[Row, ...]
    regions: tuple[Row, ...]
    rows_of: str = ""


def read(path: str) -> Figures:
    """The figures of a file; UsageError for one that is none of those above."""
    data = _data(path)
    content = _content(path, data)
    if content.get("format") is not None:
        return _locked(path, data)
    if "error" in content:
        raise UsageError("the command that wrote it failed: it has an error and no answer", path=path)
    try:
        return _answer(path, content)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise _strange(path) from None


def _data(path: str) -> bytes:
    """The file's bytes, read once: it may be a pipe."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        what = f"cannot read the file: {error.strerror}"
        raise UsageError(what, path=path, hint="check the path") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"the file has more than {MOST_BYTES} bytes", path=path)
    return data


def _content(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise UsageError("not a JSON file", path=path, hint=_HINT) from None
    if not isinstance(content, dict):
        raise _strange(path)
    return content


def _strange(path: str) -> UsageError:
    return UsageError("it is no answer of buildtool's that can be compared", path=path, hint=_HINT)


def _answer(path: str, content: Mapping[str, Any]) -> Figures:
    totals: dict[str, Number] = {}
    units: dict[str, str] = {}
    for metric in METRICS:
        value = content.get(metric.key)
        if value is not None:
            totals[metric.name], units[metric.name] = _number(value), metric.unit
    for memory in content.get("sizes") or ():
        name = MEMORY + str(memory["memory"])
        totals[name], units[name] = _number(memory["used"]), "bytes"
    for stack in content.get("stacks") or ():
        if stack["needed"] is not None:
            totals["stack"], units["stack"] = _number(stack["needed"]), "bytes"
    if not totals:
        raise KeyError("no figure")
    profiled, planned = tuple(_profiled(content)), tuple(_planned(content))
    regions = tuple(map(_region, content.get("regions") or ()))
    rows_of = "profile" if profiled else "plan" if planned else ""
    return Figures(path, _about(content), totals, units, profiled or planned, regions, rows_of)


def _numbers(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Number]:
    return {name: _number(row[name]) for name in names if row.get(name) is not None}


def _profiled(content: Mapping[str, Any]) -> Iterator[Row]:
    """The layers of a profile."""
    for layer in content.get("per_operator") or ():
        numbers = _numbers(layer, ("ram_alive", "macs", "calls", "instructions"))
        yield Row(str(layer["name"]), numbers, {"kernel": str(layer["kernel"])})


def _planned(content: Mapping[str, Any]) -> Iterator[Row]:
    """The operators of a plan: the regions that they are in have the figures."""
    if "regions" not in content:
        return
    for operator in content.get("operators") or ():
        words = {name: str(operator[name]) for name in ("kernel", "form")}
        yield Row(str(operator["name"]), {}, words)


def _region(region: Mapping[str, Any]) -> Row:
    operators = region["operators"]
    name = f"{operators[0]}-{operators[-1]}" if len(operators) > 1 else str(operators[0])
    numbers = _numbers(region, ("live_bytes", "calls", "macs", "cost"))
    return Row(name, numbers, {"runs": "streamed" if region["streamed"] else "whole"})


def _number(value: object) -> Number:
    """A number that arithmetic can take: JSON's have any number of digits, and Python reads NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("no number")
    if not abs(value) < MOST:  # nor is NaN
        raise ValueError("too large")
    return value


def _about(content: Mapping[str, Any]) -> str:
    """Whose figures they are: the network and the board, as far as the answer names them."""
    words = [str(content[key]) for key in ("model", "net") if isinstance(content.get(key), str)][:1]
    board = content.get("board")
    return " on ".join([*words, *([board] if isinstance(board, str) else [])])


def _locked(path: str, data: bytes) -> Figures:
    from buildtool.plan.locked import from_text

    try:
        locked = from_text(data)
    except BuildtoolError as error:
        raise error.at(path=path) from None
    plan = locked.plan
    totals: dict[str, Number] = {
        "ram": plan.arena_bytes,
        "macs": plan.macs,
        "f": plan.f,
        "cost": plan.cost,
    }
    pairs = zip(locked.operators, plan.kernels, strict=False)
    layers = tuple(Row(name, {}, {"kernel": kernel}) for name, kernel in pairs)
    return Figures(path, f"a plan for {locked.board}", totals, {"ram": "bytes"}, layers, (), "locked plan")
