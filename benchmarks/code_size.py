"""Prints the table of code sizes in docs/figures.md: python benchmarks/code_size.py [NETWORK...]

Bytes of code and constants beside the weights in the image that `buildtool build` links, as `buildtool sizes`
reports them: the kernels that the network uses, its own C, start-up code and the test firmware, which reads
inputs, writes outputs and checks the arena's guards. No C library is in it. Without names: every int8 model
in ../shared/models, then the zoo. Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from networks import BOARDS, networks

from buildtool.api import handle
from buildtool.base.errors import UnsupportedError
from buildtool.target.registry import load_board

TFLM = 190_000  # the same for a 96 x 96 MobileNetV1 0.25, TFLM with CMSIS-NN and 13 operators


def code_bytes(answer: dict[str, Any], board: str) -> int:
    """Of a `build` answer: what lies in the code's memory and is neither weights nor arena."""
    code = load_board(board).code
    sections = [s for memory in answer["sizes"] if memory["memory"] == code for s in memory["sections"]]
    return sum(s["bytes"] for s in sections if not s["name"].startswith(".nn_"))


def build(model: str, board: str, toolchain: str) -> dict[str, Any]:
    """Layer by layer."""
    request = {"kind": "build", "model": model, "board": board, "toolchain": toolchain}
    return handle({**request, "options": {"strategy": "layerwise"}})


def lines(models: Sequence[str], toolchain: str) -> Iterator[str]:
    """The table, a line as soon as it is known; then the compilers."""
    compilers = set()
    yield "| network | " + " | ".join(f"{board} | over {TFLM:,}" for board in BOARDS) + " |"
    yield "| --- |" + " ---: |" * (2 * len(BOARDS))
    for model in models:
        try:
            made = {board: build(model, board, toolchain) for board in BOARDS}
        except UnsupportedError:  # the float network among the models
            continue
        compilers |= {answer["compiler"] for answer in made.values()}
        sizes = [code_bytes(answer, board) for board, answer in made.items()]
        cells = [f"{size:,} | {100 * size / TFLM:.0f} %" for size in sizes]
        yield "| " + " | ".join([f"`{made[BOARDS[0]]['net']}`", *cells]) + " |"
    yield ""
    yield f"Compiled by {', '.join(sorted(compilers))}."


def main() -> None:
    """Prints the table for the networks named, or for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--toolchain", default="")
    given = parser.parse_args()
    for line in lines(given.networks or networks(), given.toolchain):
        print(line, flush=True)


if __name__ == "__main__":
    main()
