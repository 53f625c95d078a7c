"""The operators of TFLM's signal library that keep samples from one invoke to the next.

TFLM does not write frames that are not valid yet. Here they are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Values
from buildtool.graph.signal import kept_samples, steps_before
from buildtool.graph.types import Graph, Op


def frame(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_FRAMER: (frames, whether all are valid, state).

    The state is the last samples of each channel, then the number of steps so far.
    """
    attrs, (x, state) = attributes(op, g.FramerAttrs), inputs
    rows = x.reshape(-1, x.shape[-1])
    kept, before = kept_samples(attrs), int(state[-1])
    samples = np.concatenate([state[:-1].reshape(len(rows), kept), rows], axis=1)
    steps, needed = x.shape[-1] // attrs.step, steps_before(attrs)
    places = attrs.step * np.arange(steps)[:, None] + np.arange(attrs.size)
    valid = before + 1 + np.arange(steps) >= needed
    frames = np.where(valid[:, None], samples[:, places], 0).astype(np.int16)
    count = np.array([min(before + steps, needed)], np.int16)
    new_state = np.concatenate([samples[:, samples.shape[1] - kept :].reshape(-1), count])
    shape = (*x.shape[:-1], steps, attrs.size)
    return [frames.reshape(shape), np.array(valid.all()), new_state.astype(np.int16)]


def overlap_add(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_OVERLAP_ADD: (samples, state). The state is the sums to which later frames add."""
    step, (x, state) = attributes(op, g.OverlapAddAttrs).step, inputs
    size, real = x.shape[-1], x.dtype == np.float32
    sums: Any = state.copy()
    parts: list[Any] = []
    for frames in np.moveaxis(x.reshape(-1, x.shape[-2], size), 1, 0):
        sums = sums + frames if real else _saturate(sums.astype(np.int64) + frames)
        parts.append(sums[:, :step])
        sums = np.concatenate([sums[:, step:], np.zeros((len(sums), step), sums.dtype)], axis=1)
    shape = (*x.shape[:-2], x.shape[-2] * step)
    return [np.concatenate(parts, axis=1).reshape(shape), sums]


def _saturate(x: Any) -> Any:
    return np.clip(x, -32768, 32767).astype(np.int16)


def stack(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_STACKER: (stacked frames, whether they are valid, state).

    The state is earlier frames, then a counter. The counter is 0 at first. The first frame is then also used
    for the frames that would come before it. Later the counter is 1 more than the number of frames in the
    state.
    """
    attrs, (x, state) = attributes(op, g.StackerAttrs), inputs
    number, counter = attrs.before + 1 + attrs.after, int(state[-1])
    earlier = state[:-1].reshape(number - 1, len(x))
    frames = np.concatenate([earlier, x[None]])
    if counter == 0:
        frames[number - 1 - attrs.before :] = x
    count = counter if counter else 1 + attrs.before
    valid = count >= number
    left = count - attrs.step if valid else count
    new_state = np.append(frames[1:].reshape(-1), np.int16(left + 1)).astype(np.int16)
    stacked = frames.reshape(-1) if valid else np.zeros(frames.size, np.int16)
    return [stacked, np.array(valid), new_state]


def delay(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SIGNAL_DELAY: (earlier samples, state). The state is the last samples."""
    length, (x, state) = attributes(op, g.DelayAttrs).length, inputs
    rows = x.reshape(-1, x.shape[-1])
    if not length:
        return [x.copy(), state.copy()]
    samples = np.concatenate([state, rows], axis=1)
    return [samples[:, : rows.shape[1]].reshape(x.shape), samples[:, rows.shape[1] :]]
