"""Asking `describe`: of a library with any compiler of the board, of firmware with the project's kind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from buildtool.client import BuildtoolError, Client, Digests, code_digest, code_files, described
from buildtool.fronts.cmake.requests import Context

if TYPE_CHECKING:
    from buildtool.client import answers

EMITTED = "emitted"  # the root in an answer that a network's own folder stands for
_KINDS = {"GNU": ("gcc", "BUILDTOOL_GCC"), "Clang": ("clang", "BUILDTOOL_CLANG")}


def describe(
    context: Context, request: Mapping[str, object], *, same_kind: bool = False
) -> answers.DescribeAnswer:
    """The answer to `describe`; paths in the request are absolute.

    `same_kind`: flags and start-up code are for the project's own compiler. What makes a library needs no
    compiler of the board's: it is asked with the project's where the board's own is not installed.
    """
    if same_kind:
        return _as_own(context, request)
    try:
        return _asked(request)
    except BuildtoolError as error:
        if error.code != "TOOL" or context["compiler_id"] not in _KINDS:
            raise
        try:
            return _as_own(context, request)
        except BuildtoolError:
            raise error from None


def _as_own(context: Context, request: Mapping[str, object]) -> answers.DescribeAnswer:
    """With the project's compiler, if it is of a kind that boards know; else with the board's."""
    kind, variable = _KINDS.get(context["compiler_id"], ("", ""))
    if not kind:
        return _asked(request)
    before = os.environ.get(variable)
    os.environ[variable] = context["compiler"]
    try:
        return _asked({**request, "toolchain": kind})
    finally:
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before


def _asked(request: Mapping[str, object]) -> answers.DescribeAnswer:
    folder = str(Path.cwd())
    seen = Digests(f"files of the CMake project in {folder}")
    client = Client(folder)
    try:
        answer = described({"kind": "describe", **request}, folder, code_digest(), seen, client.request)
    finally:
        client.close()
    seen.save()
    return cast("answers.DescribeAnswer", answer)


def group(answer: answers.DescribeAnswer, name: str) -> answers.SourceGroup:
    """A group of sources by its name."""
    return next(group for group in answer["groups"] if group["name"] == name)


def located(answer: answers.DescribeAnswer, place: answers.Place, emitted: str = "") -> str:
    """The path of a place; `emitted` is the network's own folder."""
    root = emitted if place["root"] == EMITTED else answer["roots"].get(place["root"], "")
    return f"{root}/{place['path']}" if place["path"] and root else place["path"] or root


def is_native(answer: answers.DescribeAnswer) -> bool:
    """Whether the board is this machine: its image needs no other form. The answer is of a network."""
    return answer["network"] is not None and not answer["network"]["binaries"]


def depends(answer: answers.DescribeAnswer) -> Iterator[str]:
    """The files that the answer depends on, buildtool's own among them."""
    yield from sorted({located(answer, place) for place in answer["depends"]} | set(code_files()))
