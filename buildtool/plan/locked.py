"""A plan as a file that is kept beside the model: text that a version control system can compare.

JSON, by the names of a plan's fields, so that a later version finds its way: a field that is not there has
its default, and `_CARRIED` turns what an older schema said into what the next one says.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args, get_origin

from buildtool.errors import PlanError
from buildtool.graph.partviews import without_views
from buildtool.graph.secondpass import once_positions
from buildtool.graph.types import Graph
from buildtool.plan.codec import fields_of, plan_of
from buildtool.plan.types import Plan

FORMAT = "buildtool locked plan"
SCHEMA = 1
# schema -> the same file by the next one
_CARRIED: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


@dataclasses.dataclass(frozen=True)
class Locked:
    """A plan, the name of the board that it was made for, and what the network was (see `operators`)."""

    plan: Plan
    board: str
    operators: tuple[str, ...]


def operators(graph: Graph) -> tuple[str, ...]:
    """Each operator's kind, the shape that it makes, and that of its weights: what tells networks apart.

    What runs again in a second pass is there once, and a view is the slice that it stands for.
    """
    graph, found = without_views(graph), []
    for op in (graph.ops[position] for position in once_positions(graph)):
        weights = [t for t in op.inputs[1:] if t >= 0 and graph.tensors[t].is_constant]
        words = [str(op.kind), *(_shape(graph, t) for t in op.outputs)]
        found.append(" ".join([*words, *(f"of {_shape(graph, t)}" for t in weights)]))
    return tuple(found)


def _shape(graph: Graph, tensor: int) -> str:
    return "x".join(map(str, graph.tensors[tensor].shape))


def to_text(locked: Locked) -> bytes:
    """The file: a field a line, of lists an item a line."""
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "board": locked.board,
        "operators": list(locked.operators),
        "plan": _named(locked.plan),
    }
    return ("\n".join(_lines(content)) + "\n").encode()


def is_text(data: bytes) -> bool:
    """Whether these are the bytes of text, and not of an emitted .plan, which begins with an array of two."""
    return data[:1] != b"\x92"


def from_text(data: bytes) -> Locked:
    """What `to_text` wrote, now or in an earlier version; PlanError for anything else, whatever it is.

    That it is well formed does not make the plan legal: see `check`.
    """
    try:
        content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        hint = "a locked plan is written by: buildtool plan MODEL --board BOARD --out FILE"
        raise PlanError("not a locked plan: it is not JSON", line=error.lineno, hint=hint) from None
    except (ValueError, RecursionError):
        raise PlanError("not a locked plan: it is not JSON") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PlanError(f"not a locked plan: its format is not '{FORMAT}'")
    content = _carried(content)
    listed, board = content.get("operators"), content.get("board")
    named = isinstance(listed, list) and all(isinstance(one, str) for one in listed)
    if not named or not isinstance(board, str):
        raise PlanError("not a locked plan: it does not name its board and operators")
    return Locked(plan_of(_positional(content.get("plan"), Plan, "plan")), board, tuple(listed or ()))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A map; PlanError where it says a thing twice, as after a merge."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"not a locked plan: it says {twice!a:.40} twice in one place")
    return found


def _carried(content: dict[str, Any]) -> dict[str, Any]:
    """The same by this version's schema."""
    schema = content.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise PlanError(f"a locked plan of schema {schema!r:.20}")
    if schema > SCHEMA:
        raise PlanError(
            f"a locked plan of schema {schema}: this version of buildtool reads schemas up to {SCHEMA}",
            hint="use the version of buildtool that wrote it, or a later one",
        )
    for older in range(schema, SCHEMA):
        content = _CARRIED[older](content)
    return content


# ---- by name, by position ----------------------------------------------------------------------------


def _named(value: Any) -> Any:
    """Dataclasses as maps of their fields; those that have their default are left out."""
    if dataclasses.is_dataclass(value):
        pairs = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: _named(held) for field, held in pairs if held != field.default}
    return [_named(item) for item in value] if isinstance(value, tuple) else value


def _positional(value: object, kind: Any, where: str) -> object:
    """Maps as lists of what `kind` has, in its order; PlanError for a field that it does not have."""
    if get_origin(kind) is tuple and isinstance(value, list):
        return [_positional(item, get_args(kind)[0], f"{where}[{i}]") for i, item in enumerate(value)]
    if not dataclasses.is_dataclass(kind):
        return value
    assert isinstance(kind, type)
    if not isinstance(value, Mapping):
        raise PlanError(f"not a plan: {where} is a {type(value).__name__}")
    known = {field.name: field.default for field in dataclasses.fields(kind)}
    for name in value:
        if name not in known:
            raise PlanError(f"not a plan: {where} has no field '{name}'")
    found = []
    for name, annotation in fields_of(kind):
        if name in value:
            found.append(_positional(value[name], annotation, f"{where}.{name}"))
        elif known[name] is dataclasses.MISSING:
            raise PlanError(f"not a plan: {where} has no '{name}'")
        else:
            found.append(_unnamed(known[name]))
    return found


def _unnamed(default: Any) -> Any:
    """A field's default as a list has it."""
    return list(default) if isinstance(default, tuple) else default


def _lines(content: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """JSON whose maps at the top have a line a field, and lists in them a line an item."""
    yield indent + "{"
    inner = indent + " "
    last = len(content) - 1
    for number, (name, value) in enumerate(content.items()):
        comma = "," if number < last else ""
        key = f"{inner}{json.dumps(name)}: "
        if isinstance(value, dict):
            first, *rest = _lines(value, inner)
            yield key + first.lstrip()
            yield from rest[:-1]
            yield rest[-1] + comma
        elif isinstance(value, list) and value:
            yield key + "["
            items = [inner + " " + json.dumps(item, separators=(", ", ": ")) for item in value]
            yield from (item + "," for item in items[:-1])
            yield items[-1]
            yield inner + "]" + comma
        else:
            yield key + json.dumps(value) + comma
    yield indent + "}"
