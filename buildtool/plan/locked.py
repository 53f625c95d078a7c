"""Locked plans: a plan as a text file beside the model, which a version control system can compare.

The file is JSON with the names of the plan's fields. An absent field has its default.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
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
COMMAND = "buildtool plan MODEL --board BOARD --out FILE"  # in hints; `name_files` puts the names in


@dataclasses.dataclass(frozen=True)
class Locked:
    """A plan, the name of its board, and a description of its network (see `operators`)."""

    plan: Plan
    board: str
    operators: tuple[str, ...]


def name_files(error: PlanError, model: str, board: str, file: str, settings: str) -> PlanError:
    """Puts the command that makes a new plan into those hints of an error that contain the text COMMAND.

    `model`: the model's path. `board`: its name. `file`: the path of the refused plan. `settings`: further
    options of the command. Returns `error`.
    """
    stem, suffix = os.path.splitext(file)  # noqa: PTH122 - a Path would change how it is written
    out = f"{stem}_new{suffix if suffix not in ('', '.tflite', '.onnx') else '.plan'}"
    words = ["buildtool", "plan", model, "--board", board, *settings.split(), "--out", out]
    error.hints = tuple(
        hint._replace(text=hint.text.replace(COMMAND, shlex.join(words))) for hint in error.hints
    )
    return error


def operators(graph: Graph) -> tuple[str, ...]:
    """Returns a line for each operator: its kind, its output's shape and its weights' shape.

    An operator that runs again in a second pass is listed once. A view is listed as its slice.
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
    """Returns the text of the file: a line for each field, and for each item of a list."""
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "board": locked.board,
        "operators": list(locked.operators),
        "plan": to_plain(locked.plan, named=True, defaults=False),
    }
    return (_json(content) + "\n").encode()


def is_text(data: bytes) -> bool:
    """Returns whether the bytes are text. An emitted .plan is not: it begins with a msgpack array of two."""
    return data[:1] != b"\x92"


def from_text(data: bytes) -> Locked:
    """Returns the locked plan whose text `to_text` wrote. Raises PlanError for any other bytes.

    A well-formed plan may still be illegal: see `check`.
    """
    try:
        content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_map_without_duplicates)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        hint = f"a locked plan is written by: {COMMAND}"
        raise PlanError("not a locked plan: it is not JSON", line=line, hint=hint) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PlanError(f"not a locked plan: its format is not '{FORMAT}'")
    schema = content.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise PlanError(f"not a locked plan: its schema is {schema!r:.20}, not a whole number above 0")
    if schema != SCHEMA:
        raise PlanError(
            f"the locked plan has schema {schema}: this version of buildtool reads schema {SCHEMA}",
            hint="use the version of buildtool that wrote it, or a later one",
        )
    lines, board = content.get("operators"), content.get("board")
    are_texts = isinstance(lines, list) and all(isinstance(line, str) for line in lines)
    if not are_texts or not isinstance(board, str):
        raise PlanError("not a locked plan: it does not name its board and operators")
    return Locked(plan_of(content.get("plan")), board, tuple(lines or ()))


def _map_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the pairs as a map. Raises PlanError if a key occurs twice, as after a careless merge."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"not a locked plan: one object has {duplicate!a:.40} twice")
    return content


def _json(value: Any, indent: str = "") -> str:
    """Returns JSON with a line for each field of a map, and for each item of a list that is a field."""
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
