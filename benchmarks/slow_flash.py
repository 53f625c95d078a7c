"""Least arenas with weights in slow flash, on board xcore: python -m benchmarks.slow_flash

For each network and use of its input image, at F = 1: the arena without weights (board `host`), with the
constants of the plain kernels and with those of the vector unit's kernels, and the estimated milliseconds of
the latter: for computing, for loading, and for both as far as they overlap.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from buildtool.api import handle

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT.parent / "shared/models"
NETWORKS = {
    "mobilenetv2_160": "mobilenetv2_160",
    "mbv2_w035_144": "mbv2_w035_144_random",
    "mcunet_vww5": "mcunet_vww5",
    "mcunet_320k": "mcunet_320k_imagenet",
}
IMAGES = ("overwritable", "resident")


def write_plain_board(folder: Path) -> str:
    """Writes xcore's board file with the plain kernels of one thread; returns its path."""
    text = (ROOT / "plugins/buildtool_plugins/xcore/boards/xcore.toml").read_text()
    text = re.sub(r"(?m)^families = .*$", 'families = ["reference"]', text)
    path = folder / "plain.toml"
    path.write_text(re.sub(r"(?m)^threads = .*$", "", text))
    return str(path)


def plan(network: str, board: str, image: str) -> dict[str, Any]:
    """Returns the answer for the least arena."""
    options = {"objective": "ram", "max_f": 1.0, "image": image}
    model = str(MODELS / f"{NETWORKS[network]}.tflite")
    return handle({"kind": "plan", "model": model, "board": board, "options": options})


def main() -> None:
    """Prints the table as Markdown."""
    print("| network | image | without weights | with, plain kernels | with, `xcore` | ms |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as folder:
        plain = write_plain_board(Path(folder))
        for network in NETWORKS:
            for image in IMAGES:
                answers = [plan(network, board, image) for board in ("host", plain, "xcore")]
                arenas = " | ".join(f"{answer['arena_bytes']:,}" for answer in answers)
                of = answers[-1]["estimate"]
                parts = [of[f"{part}_seconds"] * 1000 for part in ("compute", "load", "total")]
                times = "{:.1f} + {:.1f}: {:.1f}".format(*parts)
                print(f"| `{network}` | {image} | {arenas} | {times} |", flush=True)


if __name__ == "__main__":
    main()
