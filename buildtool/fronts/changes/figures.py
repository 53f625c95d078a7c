"""The figures of a saved JSON answer or of a locked plan, by the names that `diff` compares.

`buildtool plan`, `profile`, `validate`, `build` and `sizes` print such answers with `--json`; `buildtool plan
--out` writes a locked plan.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from buildtool.base.errors import BuildtoolError, UsageError
from buildtool.base.layers import short_names
from buildtool.fronts.changes.sizetree import LEVELS, Part

if TYPE_CHECKING:
    from buildtool.schema.datasets import Accuracy

MOST_BYTES = 1 << 26  # largest file
_HEAD_BYTES = 1 << 12  # read first, to recognise the kind of file
MOST = 1 << 63  # upper limit for a figure
_HINT = "give a report, the output of `buildtool plan|profile|validate|build|sizes --json`, or a locked plan"
_SPACE = b"\xef\xbb\xbf \t\r\n"
_BEGINNINGS = (b"{", b"<", b"")  # of JSON, a report's page, an empty file
DATA_ID = "buildtool-report"  # id of the element with the data in a report's page
_BEGIN = re.compile(rb'<script type="application/json" id="' + DATA_ID.encode() + rb'">')
_END = b"</script>"
Number = int | float


@dataclass(frozen=True)
class Metric:
    """A total figure.

    - `name`: its name in `--fail-if`.
    - `key`: its key in the answer ("": it is a sum of parts).
    - `unit`: its unit ("" for a plain number).
    """

    name: str
    unit: str
    key: str


SHARES = ("top1", "recall", "precision")  # recall and precision: of the worst class
PERCENT = "%"  # the beginning of the unit of shares
COST = "cost"
STATE = "state"  # most networks have none
VARIABLES = "variables"
KINDS = ("code", "constants", VARIABLES)  # of a firmware image's parts
OWNERS = ("network", "kernels", "application")  # of the parts in flash
_OF_DATA_SETS = ("inputs", "inputs_run", "inputs_equal", "elements_different")
HIGHER_IS_BETTER = (*SHARES, *_OF_DATA_SETS[:3])
# In the order of the tables. The command that wrote a file decides which of these figures the file has.
METRICS = (
    Metric("ram", "bytes", "arena_bytes"),
    Metric(STATE, "bytes", "state_bytes"),
    Metric("weights", "bytes", "flash_bytes"),
    Metric("stack", "bytes", "stack_high_water"),
    Metric("macs", "", "macs"),
    Metric("f", "", "f"),
    Metric(COST, "", "cost"),  # the answer has its unit
    Metric("instructions", "", "instructions"),
    Metric("cycles", "", "cycles"),
    Metric("ms", "estimated", "estimated_ms"),
    Metric("run_ms", "", "run_ms"),
    *(Metric(name, "", f"data set {name}") for name in (*SHARES, *_OF_DATA_SETS)),  # shares in per cent
    *(Metric(name, "bytes", "") for name in (*KINDS, *map("flash.{}".format, OWNERS))),  # sums of parts
)
MEMORY = "memory."  # the beginning of names such as memory.flash: bytes that a firmware image takes


@dataclass(frozen=True)
class Row:
    """A layer or a region. `label` is its short name.

    `numbers` has its numbers by column, and `words` its texts, such as its kernel, by column.
    """

    name: str
    numbers: Mapping[str, Number]
    words: Mapping[str, str]
    label: str


@dataclass(frozen=True)
class Figures:
    """The figures of a file.

    - `about`: what they describe, in words.
    - `totals`, `units`: by the metric's name.
    - `rows_of`: the command that wrote the layers and regions ("": there are none). Rows of different
      commands cannot be compared.
    - `parts`: the parts of a firmware image (schema.builds.SizePart).
    """

    path: str
    about: str
    totals: Mapping[str, Number]
    units: Mapping[str, str]
    layers: tuple[Row, ...]
    regions: tuple[Row, ...]
    rows_of: str = ""
    parts: tuple[Part, ...] = ()


def read(path: str) -> Figures:
    """Returns the figures of a file. Raises UsageError if the file is neither an answer nor a plan."""
    text = data(path)
    # The JSON inside a report's page has no `<`, so that the first end tag ends it.
    begin = _BEGIN.search(text)
    end = text.find(_END, begin.end()) if begin else -1
    try:
        content = json.loads((text[begin.end() : end] if begin and end >= 0 else text).decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise UsageError("not a JSON file", path=path, hint=_HINT) from None
    if not isinstance(content, dict):
        raise _unknown_file(path)
    if content.get("format") is not None:
        return _read_locked(path, text)
    if "error" in content:
        raise UsageError(
            "the file has an error instead of an answer: the command that wrote it failed", path=path
        )
    return of_answer(path, content)


def of_answer(path: str, content: Mapping[str, Any]) -> Figures:
    """Returns the figures of an answer from the file `path`. Raises UsageError if it has no figures."""
    try:
        return _answer(path, content)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise _unknown_file(path) from None


def data(path: str) -> bytes:
    """Returns the bytes of a file that may have an answer.

    The file is read once, since it may be a pipe. If its beginning is not that of an answer, the rest is not
    read. Raises UsageError for a file that cannot be read or is too large.
    """
    try:
        with _open_file(path) as file:
            content = file.read(_HEAD_BYTES)
            if content.lstrip(_SPACE)[:1] in _BEGINNINGS:
                content += file.read(MOST_BYTES + 1 - len(content))
    except OSError as error:
        what = f"cannot read the file: {error.strerror}"
        raise UsageError(what, path=path, hint="check the path") from None
    except ValueError:  # a null character
        raise UsageError("cannot read the file: this is not a path", path=repr(path)) from None
    if len(content) > MOST_BYTES:
        raise UsageError(f"the file has more than {MOST_BYTES:,} bytes", path=path)
    return content


def _open_file(path: str) -> BinaryIO:
    """Opens a file for reading. Raises UsageError for a pipe without a writer, which would block."""
    if not Path(path).is_fifo():
        return Path(path).open("rb")
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)  # a read waits for an existing writer, and ends without one
    file = os.fdopen(handle, "rb")
    if not file.peek(1):
        file.close()
        raise UsageError(
            "nothing writes to this pipe", path=path, hint="start its writer first, or name a file"
        )
    return file


def _unknown_file(path: str) -> UsageError:
    return UsageError("this is not an answer of buildtool that can be compared", path=path, hint=_HINT)


def _answer(path: str, content: Mapping[str, Any]) -> Figures:
    totals: dict[str, Number] = {}
    units: dict[str, str] = {}
    how = str(content.get("cycles_are") or "")
    share_unit = f"{PERCENT} of the {(content.get('accuracy') or {}).get('predictor')}"  # the two may differ
    own_units = {COST: str(content.get("cost_unit", "")), "cycles": how, "run_ms": how}
    own_units |= dict.fromkeys(SHARES, share_unit)
    content = _flatten_data_set(content) if "fed" in content else _with_run(content)
    for metric in METRICS:
        value = content.get(metric.key) if metric.key else None
        if value is not None:
            totals[metric.name] = _number(value)
            units[metric.name] = own_units.get(metric.name, metric.unit)
    for memory in content.get("sizes") or ():
        name = MEMORY + str(memory["memory"])
        totals[name], units[name] = _number(memory["used"]), "bytes"
    for stack in content.get("stacks") or ():
        if stack["needed"] is not None:
            totals["stack"], units["stack"] = _number(stack["needed"]), "bytes"
    parts = tuple(map(_part, content.get("parts") or ()))
    for name, size in _totals_of_parts(parts):
        totals[name] = totals.get(name, 0) + size
        units[name] = "bytes"
    if not totals:
        raise KeyError("no figures")
    rows_of, layers = _layers(content)
    # The network and the board, where the answer names them.
    nets = [content.get(key) for key in ("model", "net") if isinstance(content.get(key), str)][:1]
    about = " on ".join(word for word in (*nets, content.get("board")) if isinstance(word, str))
    return Figures(path, about, totals, units, layers, tuple(_regions(content)), rows_of, parts)


def _with_run(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns an answer with figures of a run moved to the top level: its measured time, or a report's
    counts.
    """
    seconds, run = content.get("seconds"), content.get("run")
    if seconds is not None:
        return {**content, "run_ms": 1000 * _number(seconds)}
    if isinstance(run, Mapping):
        names = ("instructions", "cycles", "cycles_are")
        return {**content, **{name: run[name] for name in names}, "run_ms": run["milliseconds"]}
    return content


def _flatten_data_set(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns an answer on a data set with its figures at the top level, under the keys of METRICS."""
    run, accuracy = content.get("firmware") or {}, content.get("accuracy")
    sizes: dict[str, Any] = {name: run.get(name) for name in ("arena_bytes", "stack_high_water")}
    numbers = {"inputs": content.get("inputs"), "inputs_run": run.get("inputs")}
    numbers |= {name: run.get(name) for name in ("inputs_equal", "elements_different")}
    if accuracy is not None:
        numbers |= {name: round(100 * _number(share), 9) for name, share in shares(accuracy).items()}
    names = {key: content.get(key) for key in ("model", "board")}
    return {**names, **sizes, **{f"data set {name}": value for name, value in numbers.items()}}


def shares(accuracy: Accuracy) -> dict[str, float]:
    """Returns top-1, recall and precision, from 0 to 1. Recall and precision are those of the worst class."""
    top1 = accuracy["firmware"] if accuracy["predictor"] == "firmware" else accuracy["reference"]
    classes = accuracy["classes"]
    assert top1 is not None
    return {
        "top1": top1["top1"],
        "recall": min((c["recall"] for c in classes if c["recall"] is not None), default=0.0),
        # A class that is never predicted has no precision. It counts as 0.
        "precision": min((c["precision"] or 0.0 for c in classes if c["inputs"]), default=0.0),
    }


def _part(part: Mapping[str, Any]) -> Part:
    size = _number(part["bytes"])
    if not isinstance(size, int):
        raise TypeError("not a whole number")
    return {**{name: str(part[name]) for name in ("kind", *LEVELS)}, "bytes": size}


def _totals_of_parts(parts: Sequence[Part]) -> Iterator[tuple[str, int]]:
    """Yields the bytes of the parts of each kind, and each owner's bytes in flash."""
    if parts:
        yield from ((metric.name, 0) for metric in METRICS if not metric.key)
    for part in parts:
        kind, owner, size = part["kind"], part["owner"], part["bytes"]
        assert isinstance(size, int)
        if kind in KINDS:
            yield str(kind), size
        if kind != VARIABLES and owner in OWNERS:
            yield f"flash.{owner}", size


def _numbers(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Number]:
    return {name: _number(row[name]) for name in names if row.get(name) is not None}


# Where answers have layers: (key, command, numbers, words). The first row whose key is present applies.
_LAYERS = (
    ("layers", "report", "ram_alive weight_bytes macs calls cost instructions cycles", "kernel form"),
    ("per_operator", "profile", "ram_alive macs calls instructions cycles estimated_ms", "kernel"),
    ("operators", "plan", "", "kernel form"),  # their regions have the figures
)


def _layers(content: Mapping[str, Any]) -> tuple[str, tuple[Row, ...]]:
    """Returns the command that wrote an answer's layers ("": it has none), and the layers."""
    for key, rows_of, numbers, words in _LAYERS:
        layers = content.get(key)
        if layers and (rows_of != "plan" or "regions" in content):
            labels = short_names([str(one["name"]) for one in layers])
            return rows_of, tuple(
                Row(
                    str(one["name"]),
                    _numbers(one, numbers.split()),
                    {name: str(one[name]) for name in words.split()},
                    label,
                )
                for one, label in zip(layers, labels, strict=True)
            )
    return "", ()


def _regions(content: Mapping[str, Any]) -> Iterator[Row]:
    """Yields the regions, named after their first and last operators.

    These names stay the same when other layers are added.
    """
    operators = content.get("operators") or ()
    names = {one["position"]: str(one["name"]) for one in operators}
    labels = dict(zip(names, short_names(list(names.values())), strict=True))

    def span(words: Mapping[int, str], ops: Sequence[int]) -> str:
        return " - ".join(words.get(op, str(op)) for op in dict.fromkeys((ops[0], ops[-1])))

    for region in content.get("regions") or ():
        ops = region["operators"]
        numbers = _numbers(region, ("live_bytes", "calls", "macs", "cost"))
        words = {"runs": "streamed" if region["streamed"] else "whole"}
        yield Row(span(names, ops), numbers, words, span(labels, ops))


def _number(value: object) -> Number:
    """Returns a value that is a finite number. Raises TypeError or ValueError for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    if not abs(value) < MOST:  # true for NaN too
        raise ValueError("too large")
    return value


def _read_locked(path: str, data: bytes) -> Figures:
    from buildtool.plan.locked import from_text

    try:
        locked = from_text(data)
    except BuildtoolError as error:
        raise error.at(path=path) from None
    plan = locked.plan
    totals = {"ram": plan.arena_bytes, "macs": plan.macs, "f": plan.f, COST: plan.cost}
    units = {"ram": "bytes", COST: str(plan.cost_unit)}
    rows = zip(locked.operators, plan.kernels, short_names(locked.operators), strict=False)
    layers = tuple(Row(name, {}, {"kernel": kernel}, label) for name, kernel, label in rows)
    return Figures(path, f"a plan for {locked.board}", totals, units, layers, (), "locked plan")
