"""Networks of operators of TFLM's signal library, and inputs of all magnitudes for them."""

import numpy as np
import statenets
from spread import spread

from buildtool.graph import types as g
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.types import Attrs, DType, OpKind
from buildtool.zoo.drawn import NetBuilder
from buildtool.zoo.drawn_signal import add_signal, emit_signal


def drawn_signals(seed, kinds=tuple(CUSTOM)):
    """A network of one operator of each kind, with inputs of their own."""
    net = NetBuilder(seed, "signals")
    return net.graph([t for kind in kinds for t in add_signal(net, kind)])


def draw(tensor, rng):
    """An input. Numbers are small or large; sounds are silent, or loud, or at the ends of int16."""
    if tensor.dtype is DType.FLOAT32:
        return (rng.normal(size=tensor.shape) * 10.0 ** rng.integers(-3, 5)).astype(np.float32)
    if tensor.shape == ():  # bits
        return np.array(rng.integers(0, 20), tensor.dtype.value)
    limits = np.iinfo(tensor.dtype.value)
    values = rng.integers(limits.min, limits.max, tensor.shape, tensor.dtype.value, endpoint=True)
    if tensor.dtype.value.startswith("u"):
        return values >> rng.integers(0, limits.bits, tensor.shape).astype(values.dtype)
    values = values >> values.dtype.type(rng.integers(0, limits.bits))
    ends = rng.random(tensor.shape) < (0.1 if rng.random() < 0.2 else 0)
    extremes = rng.choice([limits.min, limits.max, -1, 0], tensor.shape).astype(values.dtype)
    return np.where(ends, extremes, values)


def sounds(graph, count, seed):
    rng = np.random.default_rng(seed)
    return [[draw(graph.tensors[t], rng) for t in graph.inputs] for _ in range(count)]


# ---- a front end, and networks that read its features -------------------------------------------------

SAMPLES, CHANNELS, FRAMES = 480, 40, 49
_POINTS, _FIRST, _END = 512, 5, 241
_SUBTRACTION = g.SubtractionAttrs(409, 15975, 983, 15401, 819, 10, 14, False)


def _table(net, values):
    values = np.asarray(values, np.int16)
    return net.tensor(values.shape, None, DType.INT16, values)


def _numbers(net, x, kind, value):
    """An operator of int32 numbers and a constant."""
    constant = net.tensor((), None, DType.INT32, np.array(value, np.int32))
    attrs = {OpKind.DIV: g.QuotientAttrs(), OpKind.MINIMUM: Attrs(), OpKind.MAXIMUM: Attrs()}
    return net.op(kind, (x, constant), attrs.get(kind, g.ElementwiseAttrs()), None, DType.INT32)


def _channels(net, bins):
    """Tables of overlapping channels, wider from one to the next."""
    edges = np.unique(np.rint(np.geomspace(_FIRST, _END, CHANNELS + 2)).astype(int))
    edges = np.concatenate([edges, np.full(CHANNELS + 2 - len(edges), _END)])
    widths = np.diff(edges)
    firsts = np.cumsum(widths) - widths
    rising = np.concatenate([np.linspace(0, 4096, n, endpoint=False) for n in widths])
    tables = (rising, 4096 - rising, edges[:-1], firsts, widths)
    return [_table(net, values) for values in tables]


def front_end(seed=0):
    """A network of the form of TFLM's audio_preprocessor_int8: 480 samples to 40 features of int8."""
    net = NetBuilder(seed, "front")
    sound = net.feed((1, SAMPLES), None, DType.INT16)
    hann = _table(net, np.rint(4096 * np.sin(np.pi * (np.arange(SAMPLES) + 0.5) / SAMPLES) ** 2))
    (x,) = emit_signal(
        net, OpKind.SIGNAL_WINDOW, [sound, hann], g.ShiftedAttrs(12), ((1, SAMPLES), DType.INT16)
    )
    x = net.op(OpKind.RESHAPE, (x,), Attrs(), None, DType.INT16, shape=(SAMPLES,))
    x, bits = emit_signal(
        net, OpKind.SIGNAL_FFT_AUTO_SCALE, [x], Attrs(), ((SAMPLES,), DType.INT16), ((), DType.INT32)
    )
    (x,) = emit_signal(net, OpKind.SIGNAL_RFFT, [x], g.FftAttrs(_POINTS), ((_POINTS + 2,), DType.INT16))
    bins = (_POINTS // 2 + 1,), DType.UINT32
    (x,) = emit_signal(net, OpKind.SIGNAL_ENERGY, [x], g.EnergyAttrs(_FIRST, _END), bins)
    x = net.op(OpKind.CAST, (x,), Attrs(), None, DType.INT32)
    part = g.SliceAttrs((_FIRST,), (1,), (_END - _FIRST,))
    x = net.op(OpKind.STRIDED_SLICE, (x,), part, None, DType.INT32, shape=(_END - _FIRST,))
    ends = [net.tensor((n,), None, DType.INT32, np.zeros(n, np.int32)) for n in (_FIRST, bins[0][0] - _END)]
    joined = (ends[0], x, ends[1])
    x = net.op(OpKind.CONCATENATION, joined, g.AxisAttrs(0), None, DType.INT32, shape=bins[0])
    x = net.op(OpKind.CAST, (x,), Attrs(), None, DType.UINT32)
    of = (CHANNELS,), DType.UINT32
    tables = [x, *_channels(net, bins[0][0])]
    (x,) = emit_signal(net, OpKind.SIGNAL_FILTER_BANK, tables, Attrs(), ((CHANNELS,), DType.UINT64))
    (x,) = emit_signal(net, OpKind.SIGNAL_FILTER_BANK_SQUARE_ROOT, [x, bits], Attrs(), of)
    x, noise = emit_signal(net, OpKind.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION, [x], _SUBTRACTION, of, of)
    gains = _table(net, np.rint(16384 * 0.97 ** np.arange(125)))
    (x,) = emit_signal(net, OpKind.SIGNAL_PCAN, [x, noise, gains], g.ShiftedAttrs(6), of)
    (x,) = emit_signal(
        net, OpKind.SIGNAL_FILTER_BANK_LOG, [x], g.SignalLogAttrs(64, 3), ((CHANNELS,), DType.INT16)
    )
    x = net.op(OpKind.CAST, (x,), Attrs(), None, DType.INT32)
    steps = {"MUL": 256, "ADD": 333, "DIV": 666, "SUB": 128, "MINIMUM": 127, "MAXIMUM": -128}
    for kind, value in steps.items():
        x = _numbers(net, x, OpKind(kind), value)
    return net.graph([net.op(OpKind.CAST, (x,), Attrs(), None, DType.INT8)])


def words(seed=1):
    """A keyword network of the form of TFLM's micro_speech: all frames at once."""
    net = NetBuilder(seed, "words")
    x = net.move(OpKind.RESHAPE, net.input((1, FRAMES * CHANNELS)), (1, FRAMES, CHANNELS, 1))
    x = net.conv(x, 8, kernel=(10, 8), stride=(2, 2), same=True, activation=g.Activation.RELU)
    return spread(net.graph([net.softmax(net.dense(net.flatten(x), 4))]), seed)


def streaming_words(seed=2):
    """A keyword network of the form of microWakeWord's: three frames at a time, with windows of more."""
    net = NetBuilder(seed, "streaming")
    x = net.move(OpKind.RESHAPE, net.input((1, 3, CHANNELS)), (1, 3, 1, CHANNELS))
    x = net.conv(statenets.window(net, x, 5), 16, kernel=(3, 1), activation=g.Activation.RELU)
    x = net.conv(statenets.window(net, x, 9), 8, kernel=(9, 1), activation=g.Activation.RELU)
    return net.graph([net.unary(OpKind.LOGISTIC, net.dense(net.flatten(x), 2))])
