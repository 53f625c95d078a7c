"""Prints how little memory four networks run in: benchmarks/goals.py [--short] [--board B ...] [--no-run]

For each network, use of its input image and limit on F, the plan with the least arena is emitted, compiled
and run (natively or in QEMU), and every tensor is compared with the executor. The bytes are those of the
arena, which contains everything: image rows, rings, accumulators, kernel scratch, alignment. "touched" is
what the run wrote to. The goal beside them was found by a search whose plans counted neither scratch nor
alignment, with hand-offs of four pixels. No program runs in fewer bytes than the bound (see lower_bounds.py;
an overwritable image is whole in memory). A second table, of plans alone, has the least arena by hand-off.
--no-run makes plans only. Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lower_bounds import lower_bound

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.graph.rewrite import rewrite
from buildtool.plan.models import load_network

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
IN_ZOO = {
    "mbv2_w035_144_random": "mbv2_w035_144",
    "mcunet_vww5": "mcunet_vww5",
    "mcunet_320k_imagenet": "mcunet_320k",
    "mobilenetv2_160": "mobilenetv2",
}
LIMITS = (("stream", 1.0), ("stream", 1.05), ("stream", 1.1), ("overwritable", 1.0))
GOALS = {  # kB, by LIMITS
    "mbv2_w035_144_random": (26.0, 18.0, 17.0, 68.0),
    "mcunet_vww5": (15.5, 13.0, 12.0, 22.5),
    "mcunet_320k_imagenet": (59.5, 48.0, 46.0, 100.0),
    "mobilenetv2_160": (72.0, 54.0, 44.0, 111.0),
}
HAND_OFFS = {"1": 1, "4": 4, "8": 8, "row": "row"}
BOARDS = ("host", "cortex-m4", "cortex-m55")


def model(name: str) -> str:
    """Returns the trained model file if it exists, else the zoo's network with the same topology."""
    path = MODELS / f"{name}.tflite"
    return str(path) if path.is_file() else IN_ZOO.get(name, name)


def options(image: str, limit: float, **more: Any) -> dict[str, Any]:
    """Returns the options for the least arena within a limit on F. All channels stay, as in the goals."""
    limits = {"objective": "ram", "image": image, "max_f": limit}
    return {"strategy": "best", "simplify": "structure", **limits, **more}


def plan(name: str, board: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Returns the plan as JSON."""
    found: dict[str, Any] = handle({"kind": "plan", "model": model(name), "board": board, "options": chosen})
    return found


def run(name: str, board: str, chosen: dict[str, Any]) -> str:
    """Builds, runs and compares; returns how many bytes of the arena were used, as text.

    Exits if the result is not exact.
    """
    request = {"kind": "validate", "model": model(name), "board": board, "tensors": True, "options": chosen}
    answer = handle(request)
    if not answer["exact"]:
        raise SystemExit(f"{name} on {board} differs: {answer['first_difference']}")
    return f"{answer['arena_high_water']:,}"


def bounds_of(name: str) -> dict[str, int]:
    """Returns the lower bound on memory in bytes, for each use of the input image."""
    graph = load_network(model(name), Session()).graph
    return {"stream": lower_bound(rewrite(graph))[0], "overwritable": graph.tensors[graph.inputs[0]].size}


def goals(boards: list[str], runs: bool) -> Iterator[str]:
    """Yields the lines of the first table: the arena of each network beside the goal for it."""
    heads = (f"{b}: arena | F | moved | touched" for b in boards)
    yield "| network | image | F at most | goal, kB | bound | " + " | ".join(heads) + " |"
    yield "| --- | --- | ---: | ---: | ---: |" + " ---: |" * 4 * len(boards)
    for name, wanted in GOALS.items():
        bounds = bounds_of(name)
        for (image, limit), goal in zip(LIMITS, wanted, strict=True):
            cells = [f"`{name}`", image, f"{limit:.2f}", f"{goal:g}", f"{bounds[image]:,}"]
            for board in boards:
                chosen = options(image, limit)
                found = plan(name, board, chosen)
                moved = sum(found["buffers"][move["source"]]["size"] for move in found["moves"])
                touched = run(name, board, chosen) if runs else "-"
                cells += [f"{found['arena_bytes']:,}", f"{found['f']:.3f}", f"{moved:,}", touched]
            yield "| " + " | ".join(cells) + " |"


def by_hand_off(board: str) -> Iterator[str]:
    """Yields the lines of the second table: the arena's bytes for each minimum of pixels per hand-off."""
    yield f"| network | image | F at most | {' | '.join(f'{n} px' if n != 'row' else n for n in HAND_OFFS)} |"
    yield "| --- | --- | ---: |" + " ---: |" * len(HAND_OFFS)
    for name in GOALS:
        for image, limit in LIMITS:
            arenas = [
                f"{plan(name, board, options(image, limit, hand_off=n))['arena_bytes']:,}"
                for n in HAND_OFFS.values()
            ]
            yield f"| `{name}` | {image} | {limit:.2f} | {' | '.join(arenas)} |"


def short(runs: bool) -> Iterator[str]:
    """Yields the README's table: arenas of zoo networks on Cortex-M4, layer by layer and with limits on F."""
    limits = [("overwritable", 1.0), *(one for one in LIMITS if one[0] == "stream")]
    heads = "image overwritable, F = 1.00 | image by rows, F = 1.00 | F <= 1.05 | F <= 1.10"
    yield f"| network | layer by layer | {heads} |"
    yield "| --- |" + " ---: |" * 5
    for name in IN_ZOO.values():
        cells = [f"`{name}`"]
        for chosen in ({"strategy": "layerwise"}, *(options(*limit) for limit in limits)):
            cells.append(f"{plan(name, 'cortex-m4', chosen)['arena_bytes']:,}")
            if runs:
                run(name, "cortex-m4", chosen)
        yield "| " + " | ".join(cells) + " |"


def main() -> None:
    """Prints both tables, or the short one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--board", action="append", default=[], help="default: " + " ".join(BOARDS))
    parser.add_argument("--no-run", action="store_true", help="plans only")
    parser.add_argument("--short", action="store_true", help="the README's table alone")
    given = parser.parse_args()
    if given.short:
        print(*short(not given.no_run), sep="\n")
        return
    boards = given.board or list(BOARDS)
    for line in goals(boards, not given.no_run):
        print(line, flush=True)
    print(f"\nBy hand-off, {boards[0]}:\n")
    for line in by_hand_off(boards[0]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
