"""Which faults do the tests find? python -m benchmarks.faults [--count 40] [--seed 2026] [--out FILE]

Draws statements and conditions of `buildtool/` and `plugins/` at random and puts one fault into each: the
opposite comparison, a constant off by one, a sum for a difference, `and` for `or`. Each fault is put alone
into a clone of HEAD. Then the tests of its room run, and after them the fast tests, until one fails. `--out`
writes the faults with the test that found each. `--again FILE` tries the faults of such a file whose
statements HEAD still has, and compares.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("buildtool", "plugins")
SWAPS = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.FloorDiv),
    (ast.And, ast.Or),
)
OPPOSITE = dict(SWAPS) | {second: first for first, second in SWAPS}
HANGS = 1500  # seconds after which a run of tests counts as a test that failed
MEMORY = 12 << 30  # bytes that the processes of a run may hold together


class Place(NamedTuple):
    """A statement or condition: its file, the byte offsets of its start and end, and its normalised text."""

    path: str
    first: int
    end: int
    text: str


class Fault(NamedTuple):
    """A statement's text, the faulty text that replaces it, and the test that finds the fault ("": none)."""

    before: str
    after: str
    test: str = ""


def git(*arguments: str) -> str:
    """Runs git in this repository, and returns what it prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def statements(commit: str) -> Iterator[Place]:
    """Yields the simple statements and the conditions in a commit's functions, without docstrings."""
    for path in git("ls-tree", "-r", "--name-only", commit, *PLACES).split():
        if not path.endswith(".py"):
            continue
        source = git("show", f"{commit}:{path}")
        lines = [0, *itertools.accumulate(len(line) for line in source.encode().splitlines(keepends=True))]
        for function in ast.walk(ast.parse(source)):
            for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                part = node.test if isinstance(node, ast.If | ast.While) else node
                constant = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
                if constant or not isinstance(
                    part, ast.expr | ast.Assign | ast.AugAssign | ast.Return | ast.Expr
                ):
                    continue
                if part is node and isinstance(part, ast.expr):
                    continue
                start, end = (
                    lines[part.lineno - 1] + part.col_offset,
                    lines[part.end_lineno - 1] + part.end_col_offset,
                )
                yield Place(path, start, end, ast.unparse(part))


def single_statements(commit: str) -> dict[str, Place]:
    """Returns the statements whose text occurs only once in a commit: text -> place."""
    places = {(place.path, place.first): place for place in statements(commit)}.values()
    counts = Counter(place.text for place in places)
    return {place.text: place for place in places if counts[place.text] == 1}


def damages(text: str) -> list[str]:
    """Returns variants of a statement's text, each with one operator, condition or whole number changed."""
    tree = ast.parse(f"def f():\n    {text}" if text.startswith("return") else text)
    texts = []
    for index, node in enumerate(ast.walk(tree)):
        changed = copy.deepcopy(tree)
        other = list(ast.walk(changed))[index]
        if isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITE:
            other.ops[0] = OPPOSITE[type(node.ops[0])]()
        elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OPPOSITE:
            other.op = OPPOSITE[type(node.op)]()
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            other.value += 1
        elif isinstance(node, ast.IfExp):
            other.test = ast.UnaryOp(ast.Not(), other.test)
        else:
            continue
        body = changed.body[0].body if text.startswith("return") else changed.body
        texts.append(ast.unparse(body[0]))
    return [line for line in texts if line != text]


def draw_faults(count: int, seed: int, places: dict[str, Place]) -> list[Fault]:
    """Returns random faults in statements of HEAD, at most one for each statement."""
    texts = sorted(places)
    rng = random.Random(seed)
    rng.shuffle(texts)
    faults = (Fault(text, rng.choice(options)) for text in texts if (options := damages(text)))
    return list(itertools.islice(faults, count))


def memory_of(session: int) -> int:
    """Returns the resident memory of all processes of a session, in bytes."""
    sizes = subprocess.run(["ps", "-o", "rss=", "-s", str(session)], stdout=subprocess.PIPE, text=True).stdout
    return sum(map(int, sizes.split())) << 10


def first_failure(tree: Path, tests: str) -> str:
    """Returns the first test in a folder that fails, or "" if all pass.

    A run that takes too long or too much memory counts as a failure.
    """
    command = ["./dev", "pytest", "-x", "-q", "-n", "2", "-m", "not slow", "--tb=no", *tests.split()]
    run = subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE, text=True, start_new_session=True)
    for waited in itertools.count():
        try:
            output = run.communicate(timeout=1)[0]
            break
        except subprocess.TimeoutExpired:
            memory = memory_of(run.pid)
            if waited >= HANGS or memory > MEMORY:
                os.killpg(run.pid, signal.SIGKILL)
                run.communicate()
                return (
                    f"{tests}: no end within {HANGS} s" if waited >= HANGS else f"{tests}: {memory:,} bytes"
                )
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    if named:
        return named[1]
    return "" if run.returncode in (0, 5) else f"{tests}: pytest ended with {run.returncode}"


def find_test(tree: Path, place: Place, after: str) -> str:
    """Returns the test that finds a fault, or "" if none does.

    The tests of the fault's package run first, then all fast tests.
    """
    path = tree / place.path
    source = path.read_bytes()
    try:
        path.write_bytes(source[: place.first] + after.encode() + source[place.end :])
        room = PurePosixPath(place.path).parent.relative_to(place.path.split("/")[0])
        near = next((str(p) for p in (room, *room.parents) if (tree / "tests" / p).is_dir()), ".")
        return (first_failure(tree, f"tests/{near}") if near != "." else "") or first_failure(tree, "tests")
    finally:
        path.write_bytes(source)


def main() -> None:
    """Draws the faults, tries one after the other and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--out", type=Path, help="file for the faults, as JSON")
    parser.add_argument("--again", type=Path, help="a file that --out wrote: try its faults")
    options = parser.parse_args()
    places = single_statements("HEAD")
    if options.again:
        known = [Fault(*row) for row in json.loads(options.again.read_text(encoding="utf-8"))]
        faults = [fault for fault in known if fault.before in places]
    else:
        faults = draw_faults(options.count, options.seed, places)
    results = []
    print("| place | statement | fault | found by | before |\n| --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
        (tree.parent / "shared").symlink_to(ROOT.parent / "shared")
        if failed := first_failure(tree, "tests"):
            sys.exit(f"{failed} fails without a fault")
        for fault in faults:
            place = places[fault.before]
            test = find_test(tree, place, fault.after)
            results.append(fault._replace(test=test))
            cells = (place.path, fault.before, fault.after, test or "-", fault.test or "-")
            print(
                "| " + " | ".join(re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in cells) + " |",
                flush=True,
            )
            if options.out:
                options.out.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(f"\n{sum(bool(result.test) for result in results)} of {len(results)} faults found", end="")
    print(f", {sum(bool(fault.test) for fault in faults)} before" if options.again else "")


if __name__ == "__main__":
    main()
