"""Prints the table of docs/guides/mlperf-tiny.md: python benchmarks/mlperf_tiny.py

MLPerf Tiny's four networks, from ../shared, on four boards. The example's firmware for the board's core and
memory sizes runs in QEMU, the example's runner plays performance mode, and QEMU counts the instructions of an
inference. Results have to equal LiteRT's. `profile` estimates the cycles of the same plan on the board
(docs/internals/time.md), and has to count as many instructions. Nothing is measured on a board. A second
table has the estimates beside the best times that were measured on these boards: with kernels and weights in
flash, and, by the example's own files of boards, in RAM.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from buildtool_plugins.qemu.counting import counting_plugin, parse_counts

from buildtool.api import handle
from buildtool.fronts.examples import write_example
from buildtool.target.registry import load_board

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT.parent / "shared/models"
sys.path.insert(0, str(ROOT / "examples/mlperf_tiny"))
import runner  # noqa: E402

NETWORKS = {"kws": "mlperf_kws", "vww": "mlperf_vww96", "ic": "mlperf_resnet8", "ad": "mlperf_ad"}
# The machine in QEMU of each board.
BOARDS = {
    "nucleo-l4r5zi": "mps2-an386",
    "nucleo-u575zi-q": "mps2-an505",
    "stm32f746g-disco": "mps2-an500",
    "nucleo-h7a3zi-q": "mps2-an500",
}
# The shortest times in the closed division of v1.1 to v1.3, in ms: 1,000 by the median throughput of
# closed/SUBMITTER/results/BOARD/NETWORK/performance/results.txt in mlcommons/tiny_results_v1.1 and v1.3.
MEASURED = {
    "nucleo-l4r5zi": {"kws": 43.42, "vww": 89.44, "ic": 165.67, "ad": 4.05},  # ST's, Plumerai's
    "nucleo-u575zi-q": {"kws": 28.99, "vww": 59.27, "ic": 104.29, "ad": 3.21},  # ST's, Plumerai's
    "stm32f746g-disco": {"kws": 17.75, "vww": 34.08, "ic": 61.57, "ad": 1.70},  # Plumerai's, Bosch's
    "nucleo-h7a3zi-q": {"kws": 13.86, "vww": 26.82, "ic": 46.83, "ad": 1.35},  # Plumerai's, Bosch's
}
IN_RAM = ROOT / "examples/mlperf_tiny/boards"
FROM_RAM = ", from RAM"
# Weights that the RAM beside arena and kernels does not hold.
TOO_LARGE = {("stm32f746g-disco", "ad")}
ITERATIONS, WARMUPS = 3, 1


def build(folder: Path, network: str, model: Path, board: str) -> Path:
    """Builds the example's firmware for a board in QEMU."""
    words = [sys.executable, "-P", "-m", "SCons", "-Q", f"network={network}", f"model={model}"]
    done = subprocess.run(
        [*words, f"board=qemu/qemu-{board}.toml"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return folder / f"build/qemu-{board}/{network}/{network}.elf"


def play(elf: Path, machine: str, sample: runner.Sample, reference: runner.Reference) -> int:
    """Plays MLPerf's performance mode; returns the executed instructions of one inference."""
    counts = elf.with_suffix(".counts")
    plugin = f"{counting_plugin()},isa=arm,out={counts}"
    qemu = f"qemu-system-arm -plugin {plugin} -display none -monitor none -serial stdio -M {machine}"
    log = elf.with_suffix(".log")  # where QEMU says that it was terminated
    device, process = runner.program(f"sh -c 'exec {qemu} -kernel {elf} 2>{log}'")
    try:
        device.wait(runner.SECONDS)
        device.load(sample.data)
        result, _ = device.infer(ITERATIONS, WARMUPS)
    finally:
        process.terminate()  # the plugin writes at the end
        process.wait()
    runner.Check(reference).result(sample, result)
    _, total = parse_counts(counts.read_bytes())
    instructions, rest = divmod(total, ITERATIONS + WARMUPS)
    if rest:
        raise SystemExit(f"{elf.stem}: inferences of one input took different numbers of instructions")
    return instructions


def profile(model: Path, board: str, values: Path, **settings: str) -> tuple[int, float]:
    """Returns the instructions of an inference by `profile`, and the estimated milliseconds on the board."""
    request = {"kind": "profile", "model": str(model), "board": board, "input": str(values), **settings}
    answer = handle({**request, "options": {"image": "resident"}})
    if not answer["exact"]:
        raise SystemExit(f"{model.stem} on {board} differs from the reference")
    return answer["instructions"], answer["cycles"] / load_board(board).clock_hz * 1000


def count(folder: Path, network: str, board: str) -> tuple[int, float, float]:
    """Returns the instructions of an inference, and the estimated milliseconds, from flash and from RAM."""
    model, values = MODELS / f"{NETWORKS[network]}.tflite", folder / f"{network}.npy"
    benchmark = runner.BENCHMARKS[f"{network}01"]
    reference, sample = runner.Reference(str(model), benchmark), next(iter(runner.random(benchmark)))
    np.save(values, reference.quantise(sample.data))
    counted = play(build(folder, network, model, board), BOARDS[board], sample, reference)
    instructions, milliseconds = profile(model, board, values)
    if instructions != counted:
        raise SystemExit(f"{network} on {board}: {counted} instructions, and {instructions} by profile")
    where = {"weights_in": "flash"} if (board, network) in TOO_LARGE else {}
    _, from_ram = profile(model, str(IN_RAM / f"{board}-ram.toml"), values, **where)
    return counted, milliseconds, from_ram


def beside(found: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yields the lines of the table of estimated and measured milliseconds; `found`: by board and network."""
    yield f"| board | {' | '.join(f'{name}: ours | measured | ratio' for name in NETWORKS)} |"
    yield "| --- |" + " ---: | ---: | ---: |" * len(NETWORKS)
    for title, ours in found.items():
        measured = MEASURED[title.removesuffix(FROM_RAM)]
        pairs = [(ours[name], measured[name]) for name in NETWORKS]
        row = [f"{own:,.2f} | {best:,.2f} | {own / best:.2f}" for own, best in pairs]
        yield f"| {title} | {' | '.join(row)} |"


def main() -> None:
    """Prints the tables."""
    print(f"| board | MHz | {' | '.join(f'{name}: instructions | ms' for name in NETWORKS)} |")
    print("| --- | ---: |" + " ---: |" * (2 * len(NETWORKS)))
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="mlperf-") as name:
        folder = Path(name, "firmware")
        write_example("mlperf_tiny", folder)
        for board in BOARDS:
            row = [board, str(load_board(board).clock_hz // 10**6)]
            for network in NETWORKS:
                instructions, milliseconds, from_ram = count(folder, network, board)
                found.setdefault(board, {})[network] = milliseconds
                found.setdefault(board + FROM_RAM, {})[network] = from_ram
                row += [f"{instructions:,}", f"{milliseconds:,.1f}"]
            print(f"| {' | '.join(row)} |", flush=True)
    print()
    for line in beside(found):
        print(line)


if __name__ == "__main__":
    main()
