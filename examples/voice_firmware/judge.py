"""Compares what the firmware printed with TensorFlow Lite Micro and LiteRT, line by line.

python judge.py FRONT.tflite WORDS.tflite SOUND.wav STEP_MS HOP OUTPUT.txt
"""

import sys
import wave
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tflite_micro.python.tflite_micro import runtime

RATE = 16  # samples in a millisecond
ROOM = 1 << 20  # bytes for TFLM's arena


def frames(path, sound, step):
    """Yields the features of each step, as TFLM computes them."""
    front = runtime.Interpreter.from_file(path, arena_size=ROOM)
    shape = front.get_input_details(0)["shape"]
    length = int(np.prod(shape))
    for at in range(0, len(sound) - length + 1, step):
        front.set_input(sound[at : at + length].reshape(shape), 0)
        front.invoke()
        yield front.get_output(0).reshape(-1)


class Words:
    """The network that reads features, in LiteRT. If `hop` is not 0, it runs once for so many frames."""

    def __init__(self, path, hop):
        kernels = OpResolverType.BUILTIN_REF
        self._engine = Interpreter(path, experimental_op_resolver_type=kernels)
        self._engine.allocate_tensors()
        (self._input,), (self._output,) = self._engine.get_input_details(), self._engine.get_output_details()
        empty = self._input["quantization"][1] if hop else 0  # a moving window has zero points at first
        self._window = np.full(int(np.prod(self._input["shape"])), empty, np.int8)
        self._hop, self._frames = max(hop, 1), 0
        names = {op["op_name"] for op in self._engine._get_ops_details()}
        self._keeps_state = "VAR_HANDLE" in names
        self._there = 0

    def hear(self, frame):
        """Returns the classes after a frame, None where the network waits for more."""
        if self._keeps_state:
            self._window[self._there : self._there + len(frame)] = frame
            self._there = (self._there + len(frame)) % len(self._window)
            if self._there:
                return None
        else:
            self._window = np.concatenate([self._window[len(frame) :], frame])
            self._frames += 1
            if self._frames % self._hop:
                return None
        self._engine.set_tensor(self._input["index"], self._window.reshape(self._input["shape"]))
        self._engine.invoke()
        return self._engine.get_tensor(self._output["index"]).reshape(-1)


def main(front, words, path, step, hop, output):
    """Compares all steps; ends with a message at the first one that differs."""
    with wave.open(path, "rb") as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    printed = Path(output).read_text(encoding="ascii").splitlines()
    lines = [line.split() for line in printed if line.startswith("frame")]
    network, classes, heard = Words(words, int(hop)), set(), 0
    right = list(frames(front, sound, RATE * int(step)))
    if len(right) != len(lines) or not lines:
        sys.exit(f"{len(lines)} steps, expected {len(right)}")
    for number, (line, frame) in enumerate(zip(lines, right, strict=True)):
        expected = ["frame", *map(str, frame)]
        scores = network.hear(frame)
        if scores is not None:
            expected += ["|", *map(str, scores)]
            classes.add(tuple(scores))
            heard += 1
        if line != expected:
            sys.exit(f"step {number} differs:\n{' '.join(line)}\nexpected\n{' '.join(expected)}")
    different = len(set(map(bytes, right)))
    print(f"{len(lines)} steps: features EQUAL to TensorFlow Lite Micro's, {different} different ones")
    print(f"{heard} outputs: EQUAL to LiteRT's, {len(classes)} different ones")


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
