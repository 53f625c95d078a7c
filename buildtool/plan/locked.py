"""A plan as a file that is kept beside the model: text that a version control system can compare.

JSON, by the names of a plan's fields; a field that is not there has its default.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from buildtool.base.errors import PlanError
from buildtool.base.plain import to_plain
from buildtool.graph.partviews import without_views
from buildtool.graph.secondpass import once_positions
from buildtool.graph.types import Graph
from buildtool.plan.codec import plan_of
from buildtool.plan.types import Plan

FORMAT = "buildtool locked plan"
SCHEMA = 1


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
    graph, lines = without_views(graph), []
    for op in (graph.ops[position] for position in once_positions(graph)):
        weights = [t for t in op.inputs[1:] if t >= 0 and graph.tensors[t].is_constant]
        words = [str(op.kind), *(_shape(graph, t) for t in op.outputs)]
        lines.append(" ".join([*words, *(f"of {_shape(graph, t)}" for t in weights)]))
    return tuple(lines)


def _shape(graph: Graph, tensor: int) -> str:
    return "x".join(map(str, graph.tensors[tensor].shape))


def to_text(locked: Locked) -> bytes:
    """The file: a field a line, of lists an item a line."""
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "board": locked.board,
        "operators": list(locked.operators),
        "plan": to_plain(locked.plan, named=True, defaults=False),
    }
    return (_json(content) + "\n").encode()


def is_text(data: bytes) -> bool:
    """Whether these are the bytes of text, and not of an emitted .plan, which begins with an array of two."""
    return data[:1] != b"\x92"


def from_text(data: bytes) -> Locked:
    """What `to_text` wrote; PlanError for anything else, whatever it is.

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
    schema = content.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise PlanError(f"a locked plan of schema {schema!r:.20}")
    if schema != SCHEMA:
        raise PlanError(
            f"a locked plan of schema {schema}: this version of buildtool reads schema {SCHEMA}",
            hint="use the version of buildtool that wrote it, or a later one",
        )
    listed, board = content.get("operators"), content.get("board")
    named = isinstance(listed, list) and all(isinstance(one, str) for one in listed)
    if not named or not isinstance(board, str):
        raise PlanError("not a locked plan: it does not name its board and operators")
    return Locked(plan_of(content.get("plan")), board, tuple(listed or ()))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A map; PlanError where it says a thing twice, as after a merge."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"not a locked plan: it says {twice!a:.40} twice in one place")
    return content


def _json(value: Any, indent: str = "") -> str:
    """JSON in which a map has a line for each field, and a list among these a line for each item."""
    if not value or not isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, dict):
        begin, *items, end = (
            "{",
            *(f"{json.dumps(k)}: {_json(v, indent + ' ')}" for k, v in value.items()),
            "}",
        )
    else:
        begin, *items, end = "[", *(json.dumps(item, separators=(", ", ": ")) for item in value), "]"
    return "\n".join([begin, ",\n".join(f"{indent} {item}" for item in items), indent + end])
