"""What a build system has to know, in a few lines; --json has all of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import Cell, table

if TYPE_CHECKING:
    from buildtool.schema.builds import DescribeAnswer


def text(answer: DescribeAnswer) -> str:
    """The compiler with its flags, the groups of sources, and the files of the network."""
    tools, made = answer["tools"], answer["network"]
    lines = [
        f"board     {answer['board']}",
        f"compiler  {tools['identity']}: {tools['cc']}",
        f"core      {shlex.join([*tools['core'], *(f'-D{name}' for name in tools['defines'])])}",
        f"exact     {shlex.join(tools['exact'])}",
    ]
    if made is not None:
        lines += [f"network   {made['net']}", f"emitted   {', '.join(made['emitted'])}"]
    used = dict.fromkeys(answer["library"], "library") | dict.fromkeys(answer["image"], "image")
    rows: list[list[Cell]] = [
        [group["name"], used.get(group["name"], ""), len(group["sources"])] for group in answer["groups"]
    ]
    return "\n".join([*lines, "", table(["group", "part of", "sources"], rows)])
