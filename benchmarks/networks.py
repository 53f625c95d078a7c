"""Prints the table of networks that docs/figures.md holds: python benchmarks/networks.py [NETWORK...]

Without names: every int8 model in ../shared/models, then the zoo. Layer-by-layer plans. Bytes: arenas with
inputs, outputs and kernel scratch in them; the weight image as each core's kernels pack it. Instructions
are executed ones, counted exactly in QEMU for one input; the result is compared with the executor.
Nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from buildtool import zoo
from buildtool.api import handle
from buildtool.base.errors import UnsupportedError

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


def networks() -> list[str]:
    """Paths of the trained models that are there, and the zoo's names."""
    return [*(str(path) for path in sorted(MODELS.glob("*.tflite"))), *zoo.names()]


def plan(model: str, board: str, **options: str) -> dict[str, Any]:
    """The layer-by-layer plan."""
    request = {"kind": "plan", "model": model, "board": board}
    return handle({**request, "options": {"strategy": "layerwise", **options}})


def profile(model: str, board: str) -> dict[str, Any]:
    """Counted instructions and stack; stops if the result is not exact."""
    options = {"strategy": "layerwise"}
    answer = handle({"kind": "profile", "model": model, "board": board, "options": options})
    if not answer["exact"]:
        raise SystemExit(f"{model} on {board} differs from the executor")
    return answer


def row(model: str) -> tuple[list[str], str]:
    """A network's cells, and the compiler that built it."""
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


def lines(models: Sequence[str]) -> Iterator[str]:
    """The table, a line as soon as it is known; then the compilers."""
    compilers = set()
    yield "| " + " | ".join(HEADINGS) + " |"
    yield "| --- |" + " ---: |" * (len(HEADINGS) - 1)
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
    """Prints the table for the networks named, or for all."""
    for line in lines(sys.argv[1:] or networks()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
