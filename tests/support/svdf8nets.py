"""Files of one SVDF with 8-bit weights over time and an 8-bit state, and what it computes by definition."""

from dataclasses import dataclass

import numpy as np
from flatfiles import FileOperator, FileTensor, constant, write


@dataclass(frozen=True)
class Drawn:
    """An SVDF. Scales: of the input, the two filters, the state, the output."""

    rank: int
    feature: np.ndarray
    time: np.ndarray
    bias: np.ndarray | None
    scales: tuple[float, ...]
    zeros: tuple[int, int, int]  # of the input, the state, the output
    batch: int

    def file(self, *, bits=8):
        """The file, with 8 or 16 bits of the weights over time and of the state."""
        x, feature, time, state, out = self.scales
        (features, memory), (_, inputs) = self.time.shape, self.feature.shape
        kind = f"int{bits}"
        tensors = [
            FileTensor((self.batch, inputs), scale=x, zero=self.zeros[0]),
            FileTensor(self.feature.shape, data=self.feature, scale=feature),
            FileTensor(self.time.shape, kind, self.time.astype(kind), time),
            FileTensor((self.batch, features * memory), kind, None, state, self.zeros[1], variable=True),
            FileTensor((self.batch, features // self.rank), scale=out, zero=self.zeros[2]),
        ]
        inputs_ = [0, 1, 2, -1, 3]
        if self.bias is not None:
            tensors.append(constant(self.bias, scale=state * time, zero=0))
            inputs_[3] = 5
        options = {"Rank": self.rank, "FusedActivationFunction": 1}
        return write(
            tensors, [FileOperator("SVDF", inputs_, [4], "SVDFOptions", options, version=3)], [0], [4]
        )


def drawn(seed, *, zero=None, quiet=False):
    """Draws an SVDF. `quiet`: no value of the state is clamped. `zero`: the state's zero point."""
    rng = np.random.default_rng(seed)
    batch, rank, units, memory, inputs = (int(rng.integers(1, n)) for n in (4, 4, 7, 9, 30))
    features = units * rank
    feature = rng.integers(-127, 128, (features, inputs)).astype(np.int8)
    time = rng.integers(-127, 128, (features, memory)).astype(np.int8)
    x, first, second = (float(np.float32(rng.uniform(0.005, 0.1))) for _ in range(3))
    spread = x * first * 5000 * np.sqrt(inputs)  # of the real sums
    most = x * first * 255 * float(np.abs(feature.astype(int)).sum(1).max())
    state = float(np.float32(most / 120 if quiet else spread / rng.uniform(20, 300)))
    out = float(np.float32(state * second * 3000 * np.sqrt(memory * rank) / rng.uniform(30, 90)))
    bias = rng.integers(-20000, 20000, units).astype(np.int32) if seed % 4 else None
    zeros = [int(rng.integers(-128, 128)) for _ in range(3)]
    zeros[1] = zeros[1] if zero is None else zero
    return Drawn(rank, feature, time, bias, (x, first, second, state, out), tuple(zeros), batch)


def steps_of(net, count, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(-128, 128, (net.batch, net.feature.shape[1])).astype(np.int8) for _ in range(count)]
