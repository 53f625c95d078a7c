"""Prints the tables of networks in docs/internals/figures.md:

    python benchmarks/networks.py [--code] [NETWORK...]

Without names, the networks are every int8 model in ../shared/models, then the zoo. Plans are layer by layer.
Bytes are those of arenas with inputs, outputs and kernel scratch, and of the weight image as each core's
kernels pack it. Instructions are executed ones, counted exactly in QEMU for one input; the result is compared
with the executor.

`--code` prints bytes of code and constants beside the weights in the image that `buildtool build` links, as
`buildtool sizes` reports them: the kernels that the network uses, its own C, start-up code and the test
firmware, which reads inputs, writes outputs and checks the arena's guards. It contains no C library. Nothing
is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from buildtool import zoo
from buildtool.api import handle
from buildtool.base.errors import UnsupportedError
from buildtool.target.registry import load_board

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
BOARDS = ("cortex-m4", "cortex-m55")
HEADINGS = (
    "network",
    "MACs",
    "activations, nothing in place",
    "M4 arena",
    "its bound",
    "M4 weights",
    "M4 instructions",
    "per MAC",
    "M4 stack",
    "M55 arena",
    "M55 weights",
    "M55 instructions",
    "per MAC",
    "M55 stack",
)
TFLM = 190_000  # the same for a 96 x 96 MobileNetV1 0.25, TFLM with CMSIS-NN and 13 operators
CODE = ("network", *(cell for board in BOARDS for cell in (board, f"over {TFLM:,}")))
Row = Callable[[str], tuple[list[str], str]]


def networks() -> list[str]:
    """Returns the paths of the trained models that exist, and the names of the zoo."""
    return [*(str(path) for path in sorted(MODELS.glob("*.tflite"))), *zoo.names()]


def plan(model: str, board: str, **options: str) -> dict[str, Any]:
    """Returns the layer-by-layer plan."""
    request = {"kind": "plan", "model": model, "board": board}
    return handle({**request, "options": {"strategy": "layerwise", **options}})


def profile(model: str, board: str) -> dict[str, Any]:
    """Returns the counted instructions and the stack; exits if the result is not exact."""
    options = {"strategy": "layerwise"}
    answer = handle({"kind": "profile", "model": model, "board": board, "options": options})
    if not answer["exact"]:
        raise SystemExit(f"{model} on {board} differs from the executor")
    return answer


def row(model: str) -> tuple[list[str], str]:
    """Returns a network's cells, and the compiler of its firmware."""
    # The host's kernels take no scratch: what is left is the activations.
    apart = plan(model, "host", in_place="none")
    numbers = [apart["macs"], apart["arena_bytes"]]
    cells = [f"`{apart['model']}`", *(f"{n:,}" for n in numbers)]
    compiler = ""
    for board in BOARDS:
        planned, made = plan(model, board), profile(model, board)
        compiler = made["compiler"]
        bound = [planned["arena_bound_bytes"]] if board == BOARDS[0] else []
        bytes_ = [planned["arena_bytes"], *bound, planned["flash_bytes"]]
        ratio = made["instructions"] / made["macs"]
        cells += [f"{n:,}" for n in bytes_]
        cells += [f"{made['instructions']:,}", f"{ratio:.2f}", f"{made['stack_high_water']:,}"]
    return cells, compiler


def code_bytes(answer: dict[str, Any], board: str) -> int:
    """Returns the bytes in the memory for code, without weights and arena, from an answer to `build`."""
    code = load_board(board).code
    sections = [s for memory in answer["sizes"] if memory["memory"] == code for s in memory["sections"]]
    return sum(s["bytes"] for s in sections if not s["name"].startswith(".nn_"))


def code_row(model: str, toolchain: str) -> tuple[list[str], str]:
    """Returns a network's cells for code size, and the compiler of its firmware."""
    cells, made = [], {}
    for board in BOARDS:
        request = {"kind": "build", "model": model, "board": board, "toolchain": toolchain}
        made = handle({**request, "options": {"strategy": "layerwise"}})
        size = code_bytes(made, board)
        cells += [f"{size:,}", f"{100 * size / TFLM:.0f} %"]
    return [f"`{made['net']}`", *cells], made["compiler"]


def lines(models: Sequence[str], headings: Sequence[str], row: Row) -> Iterator[str]:
    """Yields the lines of the table, each as soon as it is known, and then the compilers."""
    compilers = set()
    yield "| " + " | ".join(headings) + " |"
    yield "| --- |" + " ---: |" * (len(headings) - 1)
    for model in models:
        try:
            cells, compiler = row(model)
        except UnsupportedError:  # the float network among the models
            continue
        compilers.add(compiler)
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield f"Compiled by {', '.join(sorted(compilers))}."


def main() -> None:
    """Prints the table for the given networks, or for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--code", action="store_true")
    parser.add_argument("--toolchain", default="", help="with --code")
    given = parser.parse_args()
    headings, made = (
        (HEADINGS, row) if not given.code else (CODE, partial(code_row, toolchain=given.toolchain))
    )
    for line in lines(given.networks or networks(), headings, made):
        print(line, flush=True)


if __name__ == "__main__":
    main()
