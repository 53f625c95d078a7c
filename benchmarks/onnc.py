"""Prints ONNC's table of docs/internals/figures.md: `python benchmarks/onnc.py` (needs the onnx package).

It has the bytes of activations and weights of classic networks, and the bytes that must be live at once: of
activations alone, and with weights loaded for their operator. Bytes stand beside every ratio.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from buildtool.api import handle

NETWORKS = Path(__file__).with_name("networks")
LIGHT = ("bvlc_alexnet", "vgg19", "inception_v1", "inception_v2", "resnet50", "densenet121", "shufflenet")
LIGHT += ("squeezenet", "zfnet512")
HEADINGS = (
    "network",
    "activations",
    "weights",
    "activations live at once",
    "with weights loaded at use",
    "planned",
    "best order",
)


def files() -> Iterator[tuple[str, Path, str]]:
    """Yields (title of the row, file, how operators are counted)."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    yield "yolo9000-544", NETWORKS / "yolo9000.cfg", "separate"
    yield "yolo9000-544, fused", NETWORKS / "yolo9000.cfg", "fused"
    yield "yolov1", NETWORKS / "yolov1.cfg", "separate"
    yield "VGG-19, from its layers", NETWORKS / "vgg19.cfg", "separate"
    for name in LIGHT:
        yield f"light_{name}.onnx", folder / f"light_{name}.onnx", "separate"


def analysed(path: Path, operators: str, **options: str) -> dict[str, Any]:
    """Returns the answer of `buildtool analyze`."""
    return handle({"kind": "analyze", "model": str(path), "options": {"operators": operators, **options}})


def row(title: str, path: Path, operators: str) -> tuple[str, ...]:
    """Returns the cells of one network."""
    flash = analysed(path, operators)
    loaded = analysed(path, operators, weights="load")
    best = analysed(path, operators, order="best")
    return (
        title,
        f"{flash['activation_bytes']:,}",
        f"{flash['weight_bytes']:,}",
        part(flash, "live_bound_bytes"),
        part(loaded, "live_bound_bytes"),
        f"{flash['planned_bytes']:,} / {loaded['planned_bytes']:,}",
        f"{best['live_bound_bytes']:,}",
    )


def part(answer: dict[str, Any], key: str) -> str:
    """Returns a number of bytes, and its percentage of the total bytes, as text."""
    return f"{answer[key]:,} ({100 * answer[key] / answer['total_bytes']:.1f} % of {answer['total_bytes']:,})"


def table() -> str:
    """Returns a Markdown table of all networks, in bytes."""
    rows = [row(*file) for file in files()]
    lines = [HEADINGS, ("---", *["---:"] * 6), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    print(table())
