"""Requantisation on 16 bits on xcore: bounds, differences seen, and issues saved, for each network.

    python benchmarks/vpu16.py ../shared/models/mlperf_kws.tflite ds_cnn --inputs 5

Prints the table of docs/internals/vpu16.md. Inputs are random, of seed 0. Issues are instructions of one
invoke, of all threads together, as they are counted in the model of the vector unit, of the operators whose
kernels use it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from buildtool.api import handle

TITLES = (
    *("network", "operators", "channels on 16 bits", "proven off", "bound", "seen", "values different"),
    *("output off", "VPU issues", "all issues"),
)


def row(model: str, inputs: int) -> list[str]:
    """Returns the table row of one network."""
    path = Path(model)
    asked = {"model": str(path.resolve()) if path.is_file() else model, "board": "xcore"}
    answer: Any = handle({"kind": "validate", **asked, "requantise": "vpu16", "inputs": inputs})
    bounds = answer["bounds"]
    assert answer["within_bounds"], model

    def total(key: str) -> Any:
        return sum(each[key] for each in bounds)

    exact, rounded = (_issues(asked | {"requantise": name}) for name in ("exact", "vpu16"))
    return [
        Path(model).stem,
        str(len(bounds)),
        f"{total('channels_rounded'):,} of {total('channels'):,}",
        f"{max(each['bound_before_rounding'] for each in bounds):.3f}",
        str(max(each["bound"] for each in bounds)),
        str(max(each["max_abs_diff"] for each in bounds)),
        f"{100 * total('elements_different') / total('elements'):.2f} %",
        str(answer["max_abs_diff"]),
        *(f"{a:,} -> {b:,} ({b / a - 1:+.0%})" for a, b in zip(exact, rounded, strict=True)),
    ]


def _issues(asked: dict[str, str]) -> tuple[int, int]:
    """Returns the issues (instructions) of the vector unit, and those of vector unit and core together."""
    issues = handle({"kind": "profile", **asked})["issues"]
    return issues["vpu"], issues["vpu"] + issues["scalar"]


def main() -> None:
    """Prints the table as Markdown, each row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--inputs", type=int, default=5)
    args = parser.parse_args()
    print(f"| {' | '.join(TITLES)} |\n|{' --- |' * len(TITLES)}")
    for model in args.models:
        print(f"| {' | '.join(row(model, args.inputs))} |", flush=True)


if __name__ == "__main__":
    main()
