"""The errors of a command as a SARIF 2.1.0 log, which CI services show beside the lines of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import Requantise
from buildtool.fronts.texts.validation import first_exceeding
from buildtool.options import spell, spell_name

VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
DIFFERENT = "DIFFERENT"  # the rule for an output that differs from the reference
RULES = {
    "MODEL": "The file is not a well-formed model or table.",
    "UNSUPPORTED": "The model uses something that is not supported.",
    "PLAN": "No plan meets the limits.",
    "TARGET": "A board, core or kernel catalogue is unknown or inconsistent.",
    "TOOL": "A compiler, an emulator or another tool is missing or failed.",
    "USAGE": "An option or a name is wrong.",
    "MACHINE": "The operating system refuses an operation.",
    "INTERNAL": "A bug in buildtool.",
    DIFFERENT: "The output differs from the reference.",
}


def log(
    errors: Sequence[BuildtoolError], version: str, status: int, answer: Mapping[str, Any] | None = None
) -> str:
    """Returns the log of a command that ended with `status`.

    If `answer` has outputs that are not within their bounds, this is a result, too.
    """
    results = [_result(error) for error in errors]
    if answer is not None and answer.get("within_bounds") is False:
        results.append(_difference(answer))
    names = sorted({result["ruleId"] for result in results})
    rules = [{"id": name, "shortDescription": {"text": RULES.get(name, name)}} for name in names]
    for result in results:
        result["ruleIndex"] = names.index(result["ruleId"])
    run = {
        "tool": {"driver": {"name": "buildtool", "version": version, "rules": rules}},
        "invocations": [{"executionSuccessful": not errors, "exitCode": status}],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=2, sort_keys=True) + "\n"


def _result(error: BuildtoolError) -> dict[str, Any]:
    option = f"{spell_name(error.option)}: " if error.option else ""
    hint = error.help(spell)
    text = f"{option}{error.text}" + (f"\nhint: {hint}" if hint else "")
    result: dict[str, Any] = {"ruleId": error.code, "level": "error", "message": {"text": text}}
    location: dict[str, Any] = {}
    # A path without a suffix or a folder is a network of the zoo.
    is_file = bool(Path(error.path).suffix) or "/" in error.path
    if is_file:
        # A relative path is relative to the root of the sources, which the CI service sets.
        parsed = Path(error.path)
        uri = quote(parsed.as_posix(), errors="surrogateescape")
        artifact = (
            {"uri": f"file://{uri}"} if parsed.is_absolute() else {"uri": uri, "uriBaseId": "%SRCROOT%"}
        )
        location["physicalLocation"] = {"artifactLocation": artifact}
        if error.line:
            column = {"startColumn": error.column} if error.column else {}
            location["physicalLocation"]["region"] = {"startLine": error.line, **column}
    parts = (("" if is_file else error.path, "module"), (error.operator, "function"))
    logical = [{"name": name, "kind": kind} for name, kind in (*parts, (error.tensor, "variable")) if name]
    if logical:
        location["logicalLocations"] = logical
    return result | ({"locations": [location]} if location else {})


def _difference(answer: Mapping[str, Any]) -> dict[str, Any]:
    first = answer.get("first_difference")
    text = f"{answer['model']} on {answer['board']}: the output differs from the reference"
    if answer["requantise"] != Requantise.EXACT:  # the first difference need not exceed a bound
        first, text = first_exceeding(answer["bounds"]), f"{text} by more than is proven"
    result: dict[str, Any] = {"ruleId": DIFFERENT, "level": "error", "message": {"text": text}}
    if isinstance(first, Mapping):
        result["message"]["text"] = f"{text}, first at {first['operator']}, tensor '{first['tensor']}'"
        logical = [{"name": first["operator"], "kind": "function"}]
        result["locations"] = [{"logicalLocations": logical}]
    return result
