"""Plays the runner of MLPerf Tiny: sends inputs to a firmware, reads its results, and judges them.

    python runner.py --program "qemu-system-arm ... -serial stdio -kernel kws.elf"
    python runner.py --port /dev/ttyACM0 --mode performance       (needs pyserial)
    python runner.py --program build/host/kws/kws.elf --data DATASETS --model kws_ref_model.tflite

Mode `accuracy` infers once for each sample; mode `performance` infers as often as the official scripts do.
DATASETS has the official samples: DATASETS/kws01/y_labels.csv and the files that it names. Without --data
the inputs are random, and there is no accuracy. With --model, a .tflite file or a network of `buildtool
zoo`, every result has to be what LiteRT's reference kernels give, to the printed digits; otherwise the
status is 1.
"""

from __future__ import annotations

import argparse
import csv
import os
import select
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

MOST_BYTES = 31  # of a `db` command: it has at most 80 characters
SECONDS = 60.0  # until an answer has come
RANDOM_SAMPLES = 5


class Benchmark(NamedTuple):
    """What the runner sends for a benchmark, and the official numbers of inferences and warm-ups."""

    elements: int
    kind: str  # of an element, as numpy spells it
    iterations: int
    warmups: int


BENCHMARKS = {
    "kws01": Benchmark(490, "i1", 70, 10),
    "vww01": Benchmark(96 * 96 * 3, "u1", 20, 5),
    "ic01": Benchmark(32 * 32 * 3, "u1", 20, 5),
    "ad01": Benchmark(640, "<f4", 1500, 10),
}


class Sample(NamedTuple):
    """An input as the runner sends it. `group`: results of one group are averaged. `label`: -1: not known."""

    group: str
    data: bytes
    label: int


# ---- the device ------------------------------------------------------------------------------------


class Device:
    """A firmware that answers commands, over a program's standard streams or a serial port."""

    def __init__(self, read: Callable[[float], bytes], write: Callable[[bytes], object]) -> None:
        self._read, self._write, self._received = read, write, b""

    def ask(self, command: str, seconds: float = SECONDS) -> list[str]:
        """Sends a command; returns the lines of its answer. Exits where it is an error, or none comes."""
        self._write(f"{command}%".encode("ascii"))
        lines = self.wait(seconds, command)
        for line in lines:
            if line.startswith("e-"):
                sys.exit(f"the firmware refused '{command[:40]}': {line}")
        return lines

    def wait(self, seconds: float, command: str = "") -> list[str]:
        """Returns the lines until the firmware is ready."""
        lines: list[str] = []
        end = time.monotonic() + seconds
        while True:
            while b"\n" in self._received:
                line, _, self._received = self._received.partition(b"\n")
                lines.append(line.decode("ascii", "replace").strip("\r\0"))
                if lines[-1] == "m-ready":
                    return lines[:-1]
            if time.monotonic() > end:
                sys.exit(f"no answer to '{command[:40]}' within {seconds:g} s; last lines: {lines[-3:]}")
            self._received += self._read(0.2)

    def field(self, command: str, name: str) -> str:
        """Returns NAME of a line "m-name-[NAME]" or "m-name-dut-[NAME]" in the answer to a command."""
        for line in self.ask(command):
            head, _, rest = line.partition("[")
            if head in (f"m-{name}-", f"m-{name}-dut-"):
                return rest.rstrip("]")
        sys.exit(f"the answer to '{command}' names no {name}")

    def load(self, data: bytes) -> None:
        """Loads an input into the firmware's buffer."""
        self.ask(f"db load {len(data)}")
        for at in range(0, len(data), MOST_BYTES):
            lines = self.ask(f"db {data[at : at + MOST_BYTES].hex()}")
        if "m-load-done" not in lines:
            sys.exit(f"the firmware did not take {len(data)} bytes")

    def infer(self, iterations: int, warmups: int) -> tuple[str, int]:
        """Returns the result vector as text, and the time of the iterations in microseconds, as the firmware
        measured it.
        """
        lines = self.ask(f"infer {iterations} {warmups}")
        stamps = [int(line[9:]) for line in lines if line.startswith("m-lap-us-")]
        results = [line[11:].strip("[]") for line in lines if line.startswith("m-results-")]
        if len(stamps) != 2 or len(results) != 1:
            sys.exit(f"the answer to 'infer' is not complete: {lines}")
        return results[0], (stamps[1] - stamps[0]) % 2**32


def program(command: str) -> tuple[Device, subprocess.Popen[bytes]]:
    """Starts a program whose standard streams are the firmware's serial port."""
    process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None and process.stdout is not None
    given, output = process.stdin, process.stdout.fileno()

    def read(seconds: float) -> bytes:
        if not select.select([output], [], [], seconds)[0]:
            return b""
        if data := os.read(output, 1 << 16):
            return data
        sys.exit("the program ended")

    def write(data: bytes) -> None:
        try:
            given.write(data)
        except BrokenPipeError:
            sys.exit("the program ended")

    return Device(read, write), process


def port(name: str, baud: int) -> Device:
    """Opens a serial port."""
    try:
        import serial
    except ImportError:
        sys.exit("serial ports need the package pyserial: pip install pyserial")
    opened = serial.Serial(name, baud, timeout=0.2)
    return Device(lambda _: opened.read(max(1, opened.in_waiting)), opened.write)


# ---- samples ---------------------------------------------------------------------------------------


def official(folder: Path, benchmark: str) -> Iterator[Sample]:
    """Yields the samples of a data set as the official runner reads it; windows of ad01's files."""
    with (folder / benchmark / "y_labels.csv").open(encoding="utf-8") as file:
        for row in csv.reader(file):
            data = (folder / benchmark / row[0]).read_bytes()
            size, stride = (int(row[3]), int(row[4])) if len(row) > 4 else (len(data), len(data))
            for at in range(0, len(data) - size + 1, stride):
                yield Sample(row[0], data[at : at + size], int(row[2]))


def random(benchmark: Benchmark) -> Iterator[Sample]:
    """Yields inputs that a seed makes: noise of another mean and width each. Floats are features in dB."""
    rng, kind = np.random.default_rng(1), np.dtype(benchmark.kind)
    low, high = (-67, 2) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
    for number in range(RANDOM_SAMPLES):
        noise = rng.normal(rng.uniform(low, high), rng.uniform(5, 40), benchmark.elements)
        yield Sample(f"random {number}", np.clip(noise, low, high).astype(kind).tobytes(), -1)


# ---- LiteRT ----------------------------------------------------------------------------------------


def network(model: str) -> bytes:
    """Returns the .tflite file, or the network of the zoo."""
    if model.endswith(".tflite"):
        return Path(model).read_bytes()
    from buildtool import zoo
    from buildtool.base.errors import BuildtoolError

    try:
        return zoo.build(model)
    except BuildtoolError as error:
        sys.exit(str(error))


class Reference:
    """LiteRT's reference kernels, and the arithmetic before and after the network."""

    def __init__(self, model: str, benchmark: Benchmark) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter, OpResolverType
        except ImportError:
            sys.exit("--model needs LiteRT: pip install ai-edge-litert")
        self._benchmark = benchmark
        kernels = OpResolverType.BUILTIN_REF
        self._engine = Interpreter(model_content=network(model), experimental_op_resolver_type=kernels)
        self._engine.allocate_tensors()
        (self._input,), (self._output,) = self._engine.get_input_details(), self._engine.get_output_details()

    def results(self, data: bytes) -> str:
        """Returns the result vector as the firmware has to print it."""
        sent = np.frombuffer(data, self._benchmark.kind)
        self._engine.set_tensor(self._input["index"], self.quantise(data))
        self._engine.invoke()
        scale, zero_point = self._output["quantization"]
        output = self._engine.get_tensor(self._output["index"]).reshape(-1).astype(np.int32)
        values = (output - zero_point).astype(np.float32) * np.float32(scale)
        if sent.dtype.kind == "f":
            squares = np.square(values - sent)
            values = np.add.accumulate(squares)[-1:] / np.float32(len(squares))  # in order, as the firmware
        return ",".join(f"{value:.3f}" for value in values)

    def quantise(self, data: bytes) -> np.ndarray:
        """Returns the network's input, as the official firmware makes it of what the runner sends."""
        sent, shape = np.frombuffer(data, self._benchmark.kind), self._input["shape"]
        if sent.dtype.kind != "f":
            values = sent.astype(np.int32) - (128 if sent.dtype.kind == "u" else 0)
        else:
            scale, zero_point = self._input["quantization"]
            scaled = (sent / np.float32(scale)).astype(np.float64)
            rounded = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)  # halves away from zero
            values = np.clip(rounded + zero_point, -128, 127)
        return values.astype(np.int8).reshape(shape)


# ---- modes -----------------------------------------------------------------------------------------


class Check:
    """Compares results with the reference, if there is one; counts them."""

    def __init__(self, reference: Reference | None) -> None:
        self._reference, self.count, self.different = reference, 0, set[str]()

    def result(self, sample: Sample, result: str) -> None:
        """Exits where a result is not the reference's."""
        self.count += 1
        self.different.add(result)
        expected = self._reference.results(sample.data) if self._reference else result
        if result != expected:
            sys.exit(f"{sample.group} differs:\n{result}\nexpected\n{expected}")

    def verdict(self) -> str:
        """Returns a line about all results."""
        judged = "EQUAL to LiteRT's" if self._reference else "not compared (--model)"
        return f"{self.count} results, {len(self.different)} different ones: {judged}"


def accuracy(device: Device, samples: list[Sample], check: Check) -> None:
    """Infers each sample once; prints how many of the known labels are right."""
    vectors: dict[tuple[str, int], list[list[float]]] = {}
    for sample in samples:
        device.load(sample.data)
        result, _ = device.infer(1, 0)
        check.result(sample, result)
        vectors.setdefault((sample.group, sample.label), []).append([float(v) for v in result.split(",")])
    print(check.verdict())
    labels = np.array([label for _, label in vectors])
    means = np.array([np.mean(group, axis=0) for group in vectors.values()])
    if (labels < 0).any():
        print("the inputs are random: there is no accuracy")
    elif means.shape[1] == 1:
        print(f"AUC {area(means[:, 0], labels):.3f} of {len(labels)} files")
    else:
        print(f"top-1 {100 * np.mean(means.argmax(axis=1) == labels):.1f} % of {len(labels)} files")


def area(scores: np.ndarray, labels: np.ndarray) -> float:
    """Returns the area under the ROC curve: how often an anomaly has the higher score. NaN with one class."""
    pairs = scores[labels == 1][:, None] - scores[labels == 0][None, :]
    return float(np.mean((pairs > 0) + 0.5 * (pairs == 0))) if pairs.size else float("nan")


def performance(device: Device, samples: list[Sample], check: Check, loops: Benchmark, windows: int) -> None:
    """Measures as the official scripts do; prints each window and the median."""
    rates, iterations = [], loops.iterations
    for window in range(windows):
        sample = samples[window % len(samples)]
        device.load(sample.data)
        result, microseconds = device.infer(iterations, loops.warmups)
        check.result(sample, result)
        rates.append(iterations / (microseconds / 1e6))
        print(f"window {window}: {iterations} inferences, {microseconds:,} us by the firmware's clock")
    print(check.verdict())
    print(f"median {statistics.median(rates):.3f} inferences a second by the firmware's clock")


def play(device: Device, args: argparse.Namespace) -> None:
    """Asks the device which benchmark it is, and plays the mode."""
    device.ask("name")
    name = device.field("profile", "model")
    if name not in BENCHMARKS:
        sys.exit(f"the firmware is of '{name}': expected {', '.join(BENCHMARKS)}")
    benchmark = BENCHMARKS[name]
    samples = list(official(args.data, name) if args.data else random(benchmark))[: args.samples]
    check = Check(Reference(args.model, benchmark) if args.model else None)
    if not samples:
        sys.exit(f"{args.data} has no samples of {name}")
    print(f"{name}: {args.mode} mode, {len(samples)} {'given' if args.data else 'random'} samples")
    if args.mode == "accuracy":
        accuracy(device, samples, check)
    else:
        loops = benchmark._replace(iterations=args.iterations or benchmark.iterations)
        performance(device, samples, check, loops, args.windows)


def parsed() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--program", help="a program whose standard streams are the firmware's serial port")
    where.add_argument("--port", help="the serial port of a board")
    parser.add_argument("--baud", type=int, default=115200)
    parser.add_argument("--mode", choices=("accuracy", "performance"), default="accuracy")
    parser.add_argument("--data", type=Path, help="a folder with the official data sets")
    parser.add_argument("--samples", type=int, help="how many samples, from the first one")
    parser.add_argument("--iterations", type=int, default=0, help="inferences of a window")
    parser.add_argument("--windows", type=int, default=5, help="windows of performance mode")
    parser.add_argument("--model", help="the network, to compare with LiteRT")
    return parser.parse_args()


def main() -> None:
    """Opens the device, and plays. Exits with a message where a file cannot be read."""
    args = parsed()
    if args.port:
        play(port(args.port, args.baud), args)
        return
    device, process = program(args.program)
    try:
        device.wait(SECONDS)
        play(device, args)
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(str(error))
