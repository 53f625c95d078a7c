"""Compares the memories of boards with public files of the vendors, which lie outside of the project.

    python benchmarks/board_sources.py FOLDER           # a checkout or a bare clone in FOLDER/OWNER+NAME

board_sources.toml says which file describes which board. A memory is `same` if it is a region of the file, or
several regions that adjoin; `part` if it lies within them (a boot loader has the rest, or the board divides
it); `other` if it is not in the file. Nothing of the files is kept.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from buildtool.base.errors import BuildtoolError
from buildtool.target.chipfiles.reading import read_facts
from buildtool.target.hardware import Memory
from buildtool.target.registry import load_board

Span = tuple[int, int]  # the first address, and the one behind the last
SOURCES = Path(__file__).with_suffix(".toml")
_CHIP = re.compile(r"(?ms)^- name: (\S+)$(.*?)(?=^- name: |\Z)")
_REGION = re.compile(r"(?s)  - !\w+\n.*?start: (\w+)\s+end: (\w+)")


def read_file(folder: Path, repository: str, name: str) -> bytes | None:
    """Returns a file of a checkout, or of the newest commit of a bare clone; None if it does not exist."""
    home = folder / repository.replace("/", "+")
    if (home / name).is_file():
        return (home / name).read_bytes()
    for bare in (home / "repo", home):
        if (bare / "HEAD").is_file():
            command = ["git", f"--git-dir={bare}", "show", f"HEAD:{name}"]
            done = subprocess.run(command, capture_output=True, check=False)
            return done.stdout if done.returncode == 0 else None
    return None


def spans(name: str, data: bytes, chip: str) -> list[Span]:
    """Returns the memories of a `chip` that a vendor's file describes.

    Raises BuildtoolError if the file cannot be read.
    """
    if name.endswith(".yaml"):
        text = data.decode()
        bodies = [body for found, body in _CHIP.findall(text) if found == chip]
        return [(int(a, 0), int(b, 0)) for body in bodies for a, b in _REGION.findall(body)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(data)
        return [(each.base, each.base + each.size) for each in read_facts(path, chip).regions]


def unions(regions: Sequence[Span]) -> set[Span]:
    """Returns every region, and the union of every sequence of regions that adjoin."""
    found = set(regions)
    while more := {(a, d) for a, b in found for c, d in regions if b == c} - found:
        found |= more
    return found


def verdict(memory: Memory, known: set[Span]) -> str:
    """Returns whether the memory is `same`, `part` or `other`, as the module's docstring says."""
    low, high = memory.base, memory.base + memory.size
    if (low, high) in known:
        return "same"
    return "part" if any(a <= low and high <= b for a, b in known) else "other"


def compare(folder: Path) -> Iterator[tuple[str, str, dict[str, list[str]]]]:
    """Yields a board, its source, and its memories by verdict, for every vendor's file that exists."""
    for source in tomllib.loads(SOURCES.read_text())["source"]:
        for board, place in source["files"].items():
            name, _, chip = place.partition("#")
            data = read_file(folder, source["repository"], name)
            if data is None:
                continue
            known, memories = unions(spans(name, data, chip)), {"same": [], "part": [], "other": []}
            for memory in load_board(board).memories:
                memories[verdict(memory, known)].append(memory.name)
            yield board, source["what"], memories


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    rows = []
    for board, what, memories in sorted(compare(parser.parse_args().folder), key=lambda row: row[0]):
        rows.append([board, what, *(", ".join(names) for names in memories.values())])
    print("| board | source | the same | a part of it | not in it |\n| --- | --- | --- | --- | --- |")
    for board, *cells in rows:
        print(f"| `{board}` | {' | '.join(cells)} |")


if __name__ == "__main__":
    try:
        main()
    except BuildtoolError as error:
        raise SystemExit(str(error)) from None
