"""The gallery of the documentation: reports of six networks on six boards.

    python -m benchmarks.gallery [FOLDER]

Prints the table of docs/start/gallery.md; with FOLDER, also writes the reports there, as the site's build
does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import buildtool


class Shown(NamedTuple):
    """A report of the gallery: its network, board and options, and what a reader can see in it."""

    network: str
    board: str
    options: dict[str, Any]
    words: str

    @property
    def file(self) -> str:
        """The name of the report's file."""
        return f"{self.network.partition(':')[0]}-{self.board}.html"

    @property
    def command(self) -> str:
        """The command that makes the report."""
        given = (f"--{name.replace('_', '-')} {value}" for name, value in self.options.items())
        return " ".join(["buildtool report", self.network, "--board", self.board, *given])


REPORTS = (
    Shown("ds_cnn", "hifive1", {"ram": "6K"}, "keyword spotting on a RISC-V board with 16 KB of RAM"),
    Shown(
        "mcunet_vww5",
        "nucleo-f412zg",
        {"ram": "13K", "image": "stream"},
        "a camera network by rows, in 13 KB",
    ),
    Shown("mobilenetv2", "cortex-m55", {"ram": "64K", "image": "stream"}, "MobileNetV2 at 160x160 in 64 KB"),
    Shown("squeezenet", "stm32f746g-disco", {"image": "stream"}, "branches that are streamed, 224x224"),
    Shown("mobilenetv1_025_96", "esp32-c3", {"objective": "ram"}, "the least RAM that the front has"),
    Shown("resnet8", "xcore", {}, "weights that are loaded into the arena, on five threads"),
)
HEAD = """\
| network | board | what you see | arena, bytes | F | report | command |
| --- | --- | --- | ---: | ---: | --- | --- |"""


def main() -> None:
    """Prints the table, and writes the reports if a folder is given."""
    print(HEAD)
    for shown in REPORTS:
        report = made(shown)
        cells = [f"`{shown.network}`", shown.board, shown.words, f"{report.arena_bytes:,}", f"{report.f:.3f}"]
        link = f'<a href="../gallery/{shown.file}">open</a>'
        print(f"| {' | '.join([*cells, link, f'`{shown.command}`'])} |", flush=True)
    if sys.argv[1:]:
        write(Path(sys.argv[1]))


def write(folder: Path) -> None:
    """Writes all reports to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for shown in REPORTS:
        made(shown).save(folder / shown.file)


def made(shown: Shown) -> buildtool.Report:
    """Returns the report, which is made now."""
    return buildtool.open(shown.network).report(shown.board, **shown.options)


if __name__ == "__main__":
    main()
