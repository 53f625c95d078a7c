"""How far float32 operators are from onnxruntime's: python -m benchmarks.onnx_floats [SEEDS]

Each operator of `tests/support/onnxfloats.py` runs on SEEDS random tensors (100), in onnxruntime without
optimisations, and in buildtool's executor, which has the bits of the firmware. Distances are in units in the
last place of the largest magnitude of a result. Needs onnxruntime (`./dev --with quantize`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

import onnxruntime
from onnxfloats import CASES, distance, network


def evaluate(model: Any, feed: dict[str, Any]) -> list[Any]:
    """Returns the outputs of a model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return list(session.run(None, feed))


def main() -> None:
    """Prints a table of the operators by their largest distance."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    groups: dict[float, list[str]] = {}
    for name in CASES:
        most = max(distance(network(name, seed), evaluate, seed + 1) for seed in range(seeds))
        groups.setdefault(round(most, 1), []).append(name)
    for most, names in sorted(groups.items()):
        print(f"{most:4.1f}  {', '.join(names)}")


if __name__ == "__main__":
    main()
