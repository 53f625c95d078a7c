"""Placing in C, compiled for the tests with all warnings as errors, and a placement by brute force."""

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from buildtool.plan.place import native
from buildtool.plan.place.arena import Problem

SOURCE = Path(native.__file__).with_name("search.c")
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror", "-shared", "-fPIC"]


@cache
def compiled(source: Path = SOURCE) -> Path:
    """A shared library made of search.c, or another file, as it is now; it stays until the process ends."""
    folder = TemporaryDirectory(prefix="exact-")
    _kept.append(folder)
    path = Path(folder.name) / f"{source.stem}.so"
    subprocess.run(["gcc", *FLAGS, str(source), "-o", str(path)], check=True)
    return path


_kept: list[TemporaryDirectory[str]] = []


def lowest(problem: Problem, top: int) -> int | None:
    """The least height of any placement up to `top`, found by trying every offset of every item."""
    return next((height for height in range(top + 1) if _fits(problem, height, [])), None)


def _fits(problem: Problem, height: int, offsets: list[int]) -> bool:
    index = len(offsets)
    if index == len(problem.items):
        return True
    item, size = problem.items[index], problem.sizes[index]
    tried = range(0, height + 1, item.alignment) if item.offset is None else [item.offset]
    for offset in tried:
        if offset + size > height:
            break
        if all(_apart(problem, index, offset, other, at) for other, at in enumerate(offsets)):
            offsets.append(offset)
            if _fits(problem, height, offsets):
                return True
            offsets.pop()
    return False


def _apart(problem: Problem, a: int, at_a: int, b: int, at_b: int) -> bool:
    """Whether two items may lie like that."""
    one, two = problem.items[a], problem.items[b]
    if one.upper <= two.lower or two.upper <= one.lower:
        return True
    if at_a + problem.sizes[a] <= at_b or at_b + problem.sizes[b] <= at_a:
        return True
    at = {a: at_a, b: at_b}
    return any(
        {p.output, p.input} == {a, b} and at[p.input] >= at[p.output] + p.distance
        for p in problem.permissions
    )
