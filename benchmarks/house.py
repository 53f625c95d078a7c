"""Measures the size and the order of the code: python -m benchmarks.house

Prints, in Markdown: lines of Python by folder, product files that name two kinds of operators (HARD_SWISH
stands for a lookup, MAXIMUM for a pair), modules that exactly one other module imports, modules that `plan
ds_cnn` imports in a new process and its CPU seconds (the least of `--runs`), and rooms (packages of
buildtool) by size. With `--sole`, the modules with one importer are listed, the smallest first.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/support")]

import test_rooms  # noqa: E402

PLACES = ("buildtool", "plugins", "site_scons", "tests")
KINDS = ("HARD_SWISH", "MAXIMUM")
FEW = 80  # lines below which a module with one importer has to say why it is apart
PLAN = ["plan", "ds_cnn", "--board", "cortex-m4", "--daemon", "off", "--no-cache"]


def lines(path: Path) -> int:
    """Returns the number of lines of a file."""
    return path.read_bytes().count(b"\n")


def product(suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Yields the product's files with one of `suffixes`, without tests."""
    for place in (*PLACES[:-1], "kernels"):
        yield from (path for path in sorted((ROOT / place).rglob("*")) if path.suffix in suffixes)


def naming(kind: str, suffix: str) -> list[str]:
    """Returns the product's files with the suffix `suffix` that name a kind of operator."""
    word = re.compile(rf"\b{kind}\b")
    found = (path for path in product((suffix,)) if word.search(path.read_text(encoding="utf-8")))
    return [path.relative_to(ROOT).as_posix() for path in found]


def sole() -> dict[str, int]:
    """Returns the modules that exactly one module imports, with their lines; packages are left out."""
    importers = Counter(target for targets in test_rooms.imports().values() for target in targets)
    once = (module for module, count in importers.items() if count == 1)
    paths = {module: test_rooms.MODULES[module] for module in once}
    found = {module: lines(path) for module, path in paths.items() if path.name != "__init__.py"}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def cold_plan(runs: int) -> tuple[int, float]:
    """Runs `plan` in new processes; returns the number of imported modules and the least CPU seconds."""
    code = f"import sys; from buildtool.fronts.cli.main import run; run({PLAN!r}); print(len(sys.modules))"
    counts, seconds = [], []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        counts.append(int(done.stdout.split()[-1]))
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return counts[0], min(seconds)


def table(runs: int) -> Iterator[str]:
    """Yields the lines of the table."""
    each = {place: sum(map(lines, sorted((ROOT / place).rglob("*.py")))) for place in PLACES}
    yield "| what | now |\n| --- | ---: |"
    yield f"| lines of Python in {', '.join(PLACES)} | {sum(each.values()):,} |"
    for place, count in each.items():
        files = len(list((ROOT / place).rglob("*.py")))
        yield f"| of these {place} ({files} files) | {count:,} |"
    for kind in KINDS:
        python, catalogues = len(naming(kind, ".py")), len(naming(kind, ".toml"))
        yield f"| product files that name {kind}; catalogues | {python}; {catalogues} |"
    alone = sole()
    few = sum(count < FEW for count in alone.values())
    yield f"| modules with exactly one importer; of these under {FEW} lines | {len(alone)}; {few} |"
    modules, seconds = cold_plan(runs)
    yield f"| modules that a cold `plan ds_cnn` imports; its CPU seconds | {modules}; {seconds:.2f} |"
    rooms: Counter[str] = Counter()
    for path in (ROOT / "buildtool").rglob("*.py"):
        rooms[path.relative_to(ROOT / "buildtool").parts[0]] += lines(path)
    yield "\n| room | lines |\n| --- | ---: |"
    for room, count in rooms.most_common():
        yield f"| {room} | {count:,} |"


def main() -> None:
    """Prints the table, or the list."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--sole", action="store_true", help="list the modules with one importer")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    if given.sole:
        for module, count in sole().items():
            print(f"{count:5} {module}")
        return
    for line in table(given.runs):
        print(line)


if __name__ == "__main__":
    main()
