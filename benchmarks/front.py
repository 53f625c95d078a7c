"""Prints how long `buildtool front` and `buildtool plan` take without a cache.

    python benchmarks/front.py [NETWORK ...]

Each command runs in a fresh process, on a file, as a user's does. Without names: every int8 model in
../shared/models, the zoo, and networks made in code (made.py: topologies that the zoo does not have, and
chains of growing length). All figures are CPU seconds except the last one, the peak memory of the process in
MB.

- `start`: Python, imports and the options, until the request is answered
- `read`: from the file to a graph that is ready to be planned
- `search`: regions and blocks
- `place`: buffers, moves and lifetimes of all plans that were looked at
- `check`: proofs
- `rest`: the remaining parts of the answer, and printing
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from command_parts import PARTS
from made import made

from buildtool import zoo
from buildtool.graph.tflite.writer import write_model

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
IMAGES = ("overwritable", "resident", "stream")
MADE = (
    *("gates:16", "unet:4", "dense:55", "dense:103", "dense:151", "detection:160", "wired:40"),
    *("chain:300", "chain:1000", "chain:3000", "blocks:50", "blocks:200"),
    *("joined:62", "joined:250", "tree:62", "tree:250", "woven:62", "woven:250"),
)


def fresh(words: list[str]) -> dict[str, float]:
    """Runs a command in a new process; returns its CPU seconds by part, or nothing if it fails."""
    command = [sys.executable, str(Path(__file__).with_name("command_parts.py")), *words]
    cold = {"BUILDTOOL_DAEMON": "off", "BUILDTOOL_CACHE": "off"}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | cold)
    if done.returncode:
        print(f"{' '.join(words)}: {done.stderr.strip().splitlines()[0]}", file=sys.stderr)
        return {}
    found: dict[str, float] = json.loads(done.stdout)
    return found


def files(names: list[str], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields the name and the file of each network.

    Networks are written to files first, because making one takes more time and memory than planning it.
    """
    for name in names:
        graph = made(name)
        if graph is None and Path(name).suffix:
            yield Path(name).stem, Path(name).resolve()
            continue
        path = folder / f"{name.replace(':', '_').replace('=', '')}.tflite"
        path.write_bytes(zoo.build(name) if graph is None else write_model(graph))
        yield name, path


def main() -> None:
    """Prints the benchmark's tables; see the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--command", choices=("front", "plan"), default="front")
    parser.add_argument("--images", nargs="+", choices=IMAGES, default=list(IMAGES))
    parser.add_argument("--board", default="cortex-m4")
    parser.add_argument("--options", default="", help="more of the command's own, in one word")
    args = parser.parse_args()
    models = [str(path) for path in sorted(MODELS.glob("*.tflite")) if "float" not in path.name]
    names = args.networks or [*models, *zoo.names(), "mobilenetv2:size=224", *MADE]
    print("| network | image | points | whole | " + " | ".join(PARTS) + " | MB |")
    print("| --- | --- |" + " ---: |" * (len(PARTS) + 3))
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files(names, Path(folder)):
            for image in args.images:
                words = [args.command, str(path), "--board", args.board, "--image", image]
                found = fresh([*words, *args.options.split()])
                if found:
                    cells = " | ".join(f"{found[part]:.2f}" for part in ("whole", *PARTS))
                    print(
                        f"| {name} | {image} | {found['points']} | {cells} | {found['MB']:.0f} |", flush=True
                    )


if __name__ == "__main__":
    main()
