"""Checks of XMOS's lib_nn functions on random data, against what their documentation says of the results.

Each check draws a case, calls the vendor's function of the same name in the runner (a simulator of XS3's
instructions), and returns (results, expected): arrays to compare. The expected values are computed here, from
the public descriptions of the functions and of the vector unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from buildtool_plugins.xs3.machine import Machine

Array = npt.NDArray[Any]
Pair = tuple[Array, Array]
Check = Callable[["Case"], Pair]
CHECKS: dict[str, Check] = {}
MOST16, MOST32 = 2**15 - 1, 2**31 - 1


class Case:
    """A simulated machine with room for buffers, and a source of random numbers."""

    def __init__(self, machine: Machine, rng: np.random.Generator) -> None:
        self.m, self.rng = machine, rng
        machine.reset()

    def draw(self, low: int, high: int, *shape: int, dtype: npt.DTypeLike = np.int8) -> Array:
        """Returns random integers from low to high, both included."""
        return self.rng.integers(low, high + 1, shape).astype(dtype)

    def bytes(self, *shape: int) -> Array:
        """Returns an array of random int8."""
        return self.draw(-128, 127, *shape)

    def halves(self, *shape: int, most: int = MOST16) -> Array:
        """Returns an array of random int16 from -`most` to `most`."""
        return self.draw(-most, most, *shape, dtype=np.int16)

    def number(self, low: int, high: int) -> int:
        """Returns a random integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def call(self, name: str, *arguments: int) -> int:
        """Calls a function as XMOS's compiled code does, in dual issue; returns its result."""
        return self.m.call(name, *arguments, is_dual=True)

    def put(self, *arrays: Array) -> int:
        """Writes arrays into the machine's memory, one after the other; returns the address of the first."""
        return self.m.place(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays), after=160)

    def room(self, size: int) -> int:
        """Reserves `size` bytes of memory, fills them with 0x55, and returns their address."""
        address = self.m.reserve(size + 64)
        self.m.write(address, b"\x55" * size)
        return address

    def get(self, address: int, count: int, dtype: npt.DTypeLike = np.int8) -> Array:
        """Returns `count` elements of the machine's memory at an address."""
        return self.m.read(address, count, dtype)


def check(function: Check) -> Check:
    """Registers a check under the name of the vendor's function."""
    CHECKS[function.__name__] = function
    return function


# ---- arithmetic of the unit --------------------------------------------------------------------------


def rounded(value: Array, shift: Array | int) -> Array:
    """Returns value / 2^shift, rounded to the nearest integer, halves up. `shift` is 0 or more."""
    return np.where(
        np.asarray(shift) > 0, (value + (1 << np.maximum(shift, 1) - 1)) >> np.maximum(shift, 0), value
    )


def bounded(value: Array, most: int = MOST16) -> Array:
    """Returns the value saturated to the range from -`most` to `most`."""
    return np.clip(value, -most, most)


def shifted(value: Array, right: int) -> Array:
    """Returns 16-bit elements as the instruction VLASHR shifts them: `right` bits to the right, saturated."""
    return bounded(value >> right if right >= 0 else value << -right)


def sums(bits: Array) -> Array:
    """Returns the 16 accumulators whose upper and lower halfwords the registers vD and vR have."""
    wide = bits.astype(np.uint16).astype(np.int64)
    both = wide[16:] << 16 | wide[:16]
    return np.where(both >= 2**31, both - 2**32, both)


def registers(values: Array) -> Array:
    """Returns accumulators as halfwords: first the lower ones (register vR), then the upper ones (vD)."""
    return np.concatenate([values & 0xFFFF, values >> 16 & 0xFFFF]).astype(np.uint16)


def narrowed(value: Array, lowest: int = -32640) -> Array:
    """Returns 16-bit elements divided by 256, rounded and saturated to int8; below `lowest` they are -128."""
    return np.where(value < lowest, -128, bounded((value + 128) >> 8, 127))


# ---- products --------------------------------------------------------------------------------------


def _direct(
    c: Case, name: str, dtype: npt.DTypeLike, dot: Callable[[Array, Array], Array], most: int
) -> Pair:
    """Checks a direct convolution: a window of pixels, which consist of whole vectors, against 16 channels.

    `dtype` is the type of inputs and weights, which are from -`most` - 1 to `most`. `dot` computes the
    expected sums.
    """
    per = 32 // np.dtype(dtype).itemsize
    kh, kw, chunks, groups = c.number(1, 3), c.number(1, 3), c.number(1, 3), c.number(1, 2)
    width, group = kw + c.number(0, 2), c.number(0, groups - 1)
    x = c.draw(-most - 1, most, kh, width, chunks * per, dtype=dtype)
    w = c.draw(-most - 1, most, groups * 16, kh * kw * chunks, per, dtype=dtype)
    packed = w.reshape(groups, 16, -1, per)[:, ::-1].transpose(0, 2, 1, 3)
    pixel, kernel = chunks * 32, kh * kw * chunks * 32
    parameters = np.array([kernel, kh - 1, kw - 1, chunks - 1, 0, (width - kw) * pixel], np.int32)
    out = c.room(64)
    c.call(name, c.put(parameters), out, c.put(x), group * 16, c.put(packed))
    taps = x[:, :kw].reshape(-1, per).astype(np.int64)
    return sums(c.get(out, 32, np.uint16)), dot(taps, w[group * 16 : group * 16 + 16].astype(np.int64))


def _products(taps: Array, w: Array) -> Array:
    return bounded((taps[None] * w).sum((1, 2)), MOST32)


def _equal_bits(taps: Array, w: Array) -> Array:
    differing = np.unpackbits((taps[None] ^ w).astype(np.int8).view(np.uint8), axis=2).sum(
        (1, 2), dtype=np.int64
    )
    return 128 * taps.shape[0] - differing


@check
def mat_mul_direct_int8_impl_asm(c: Case) -> Pair:
    """Checks sums of int8 products over a window, with 32 inputs per vector."""
    return _direct(c, "mat_mul_direct_int8_impl_asm", np.int8, _products, 127)


@check
def mat_mul_direct_int16_impl_asm(c: Case) -> Pair:
    """Checks sums of int16 products over a window, with 16 inputs per vector; they stay within 32 bits."""
    return _direct(c, "mat_mul_direct_int16_impl_asm", np.int16, _products, 1000)


@check
def mat_mul_direct_binary_impl_asm(c: Case) -> Pair:
    """Checks sums over a window of bits that stand for -1 and 1: half of the sum of their products."""
    return _direct(c, "mat_mul_direct_binary_impl_asm", np.int8, _equal_bits, 127)


def _generic(c: Case, name: str, dot: Callable[[Array, Array], Array]) -> Pair:
    """Checks products of a patch with a random number of channels.

    The last chunk of weights has only as many bytes as the patch. `dot` computes the expected sums.
    """
    count, size = c.number(1, 40), 4 * c.number(1, 40)
    group = c.number(0, (count - 1) // 16)
    x, w = c.bytes(size), c.bytes(count, size)
    packed = []
    for first in range(0, count, 16):
        rows = w[first : first + 16][::-1]
        packed += [rows[:, at : at + 32].ravel() for at in range(0, size, 32)]
    parameters = np.array([count, size], np.int32)
    out, zeros = c.room(64), np.zeros(32, np.int8)
    c.call(name, c.put(parameters), out, c.put(x, zeros), group, c.put(*packed))
    channels = w[group * 16 : group * 16 + 16].astype(np.int64)
    want = dot(x.astype(np.int64)[None], channels[:, None])
    return sums(c.get(out, 32, np.uint16))[: len(want)], want


@check
def mat_mul_generic_int8_impl_asm(c: Case) -> Pair:
    """Checks sums of int8 products of a patch."""
    return _generic(c, "mat_mul_generic_int8_impl_asm", _products)


@check
def mat_mul_generic_binary_impl_asm(c: Case) -> Pair:
    """Checks binary products of a patch that consists of whole vectors.

    Other patches cannot be checked: the bits behind them would count.
    """
    count, chunks = c.number(1, 40), c.number(1, 4)
    group = c.number(0, (count - 1) // 16)
    x, w = c.bytes(chunks, 32), c.bytes(count, chunks, 32)
    packed = [w[at : at + 16][::-1].transpose(1, 0, 2) for at in range(0, count, 16)]
    out = c.room(64)
    parameters = np.array([count, chunks * 32], np.int32)
    c.call("mat_mul_generic_binary_impl_asm", c.put(parameters), out, c.put(x), group, c.put(*packed))
    want = _equal_bits(x.astype(np.int64), w[group * 16 : group * 16 + 16].astype(np.int64))
    return sums(c.get(out, 32, np.uint16))[: len(want)], want


def _depthwise(c: Case, name: str, dtype: npt.DTypeLike, most: int) -> Pair:
    kh, kw, channels, group = c.number(1, 4), c.number(1, 4), 16 * c.number(1, 3), c.number(0, 1)
    width = kw + c.number(0, 2)
    x = c.draw(-most - 1, most, kh, width, channels, dtype=dtype)
    w = c.draw(-most - 1, most, 2, kh * kw, 16, dtype=dtype)
    size = np.dtype(dtype).itemsize
    pixel = channels * size
    parameters = np.array([kh * kw * 16 * size, kh - 1, kw - 1, pixel, (width - kw) * pixel], np.int32)
    out = c.room(64)
    c.call(name, c.put(parameters), out, c.put(x), group, c.put(w))
    taps = x[:, :kw, :16].reshape(-1, 16).astype(np.int64)
    return sums(c.get(out, 32, np.uint16)), bounded((taps * w[group].astype(np.int64)).sum(0), MOST32)


@check
def mat_mul_dw_direct_impl_asm(c: Case) -> Pair:
    """Checks sums of a depthwise convolution in int8, for 16 channels."""
    return _depthwise(c, "mat_mul_dw_direct_impl_asm", np.int8, 127)


@check
def mat_mul_dw_direct_int16_impl_asm(c: Case) -> Pair:
    """Checks sums of a depthwise convolution in int16, for 16 channels."""
    return _depthwise(c, "mat_mul_dw_direct_int16_impl_asm", np.int16, 8000)


@check
def maxpool_direct_impl_asm(c: Case) -> Pair:
    """Checks the maximum over a window, for 16 channels."""
    kh, kw, channels = c.number(1, 4), c.number(1, 4), 16 * c.number(1, 3)
    width = kw + c.number(0, 2)
    x = c.bytes(kh, width, channels)
    parameters = np.array([0, kh - 1, kw - 1, channels, (width - kw) * channels], np.int32)
    out = c.room(64)
    c.call("maxpool_direct_impl_asm", c.put(parameters), out, c.put(x), 0)
    return c.get(out, 16), x[:, :kw, :16].max((0, 1))


# ---- output transforms -----------------------------------------------------------------------------


def _accumulators(c: Case) -> Array:
    return (c.rng.normal(0, 2.0 ** c.number(4, 30), 16)).clip(-MOST32, MOST32).astype(np.int64)


@check
def output_transform_fn_impl_asm(c: Case) -> Pair:
    """Checks requantisation: a shift for all channels, a multiplier and a bias per channel, a shift."""
    n, first, last = 4 * c.number(1, 4), c.number(-6, 16), c.number(-2, 8)
    acc, mul, bias = _accumulators(c), c.halves(n), c.halves(n)
    out = c.room(32)
    parameters = np.array([0, 0, first, last], np.int16)
    end = c.call(
        "output_transform_fn_impl_asm", c.put(parameters), out, c.put(registers(acc)), c.put(mul, bias), n
    )
    x = bounded(rounded(acc, max(first, 0)))
    x = shifted(x, first) if first < 0 else x
    want = narrowed(shifted(bounded(bounded(rounded(x[:n] * mul, 14)) + bias), last))
    return np.append(c.get(out, n + 1), end - out), np.append(want, [0x55, n])


@check
def output_transform_fn_int_channelwise_impl_asm(c: Case) -> Pair:
    """Checks requantisation: a shift, a multiplier and a bias per channel, a shift for all channels."""
    n, last = 4 * c.number(1, 4), c.number(-2, 8)
    acc, mul, bias, first = _accumulators(c), c.halves(n), c.halves(n), c.draw(0, 24, n, dtype=np.int16)
    out = c.room(32)
    parameters = np.array([0, 0, last, 0], np.int16)
    tables = c.put(first, mul, bias)
    c.call(
        "output_transform_fn_int_channelwise_impl_asm",
        c.put(parameters),
        out,
        c.put(registers(acc)),
        tables,
        n,
    )
    x = bounded(rounded(acc[:n], first.astype(np.int64)))
    want = narrowed(shifted(bounded(bounded(rounded(x * mul, 14)) + bias), last))
    return c.get(out, n + 1), np.append(want, 0x55)


@check
def output_transform_fn_int_clamped_impl_asm(c: Case) -> Pair:
    """Checks requantisation of binary products: offset, clamp at 0, shift, multiplier, bias, shift."""
    count = 4 * c.number(1, 10)
    group = c.number(0, (count - 1) // 16)
    n, first, last = min(16, count - 16 * group), c.number(-3, 6), c.number(-2, 6)
    acc, tables = c.halves(16), c.halves((count + 15) // 16, 3, 16)
    packed = [tables[k, :, : min(16, count - 16 * k)] for k in range(len(tables))]
    out = c.room(32)
    parameters = np.concatenate(
        [np.array([count], np.int32).view(np.int16), np.array([first, last], np.int16)]
    )
    name = "output_transform_fn_int_clamped_impl_asm"
    c.call(name, c.put(parameters), out, c.put(acc, acc), group, c.put(*packed))
    offset, mul, bias = (tables[group, k, :n].astype(np.int64) for k in range(3))
    x = shifted(np.maximum(bounded(acc[:n] + offset), 0), first)
    want = narrowed(shifted(bounded(bounded(rounded(x * mul, 14)) + bias), last), -32512)
    return c.get(out, n), want  # it stores zeros behind them


@check
def output_transform_fn_binary_impl_asm(c: Case) -> Pair:
    """Checks a bit per channel: whether the product plus the channel's threshold is below 0."""
    acc, thresholds, group = c.halves(16), c.halves(3, 16), c.number(0, 2)
    out = c.room(8)
    c.call("output_transform_fn_binary_impl_asm", out, c.put(acc), group, c.put(thresholds))
    negative = acc.astype(np.int64) + thresholds[group] < 0
    return c.get(out, 1, np.uint16), np.packbits(negative, bitorder="little").view(np.uint16)


@check
def output_transform_fn_int16_impl_asm(c: Case) -> Pair:
    """Checks requantisation to int16: an offset and a multiplier of 32 bits per channel.

    The tables have the odd channels before the even ones.
    """
    n, acc = c.number(1, 16), _accumulators(c) // 2
    add, mul = c.draw(-(2**20), 2**20, 16, dtype=np.int64), c.draw(-(2**18), 2**18, 16, dtype=np.int64)
    order = [add[1::2], mul[1::2], add[::2], mul[::2]]
    # the vector of each half has its channels in this order
    order = [half.reshape(4, 2).ravel() for half in order]
    out = c.room(64)
    tables = c.put(np.concatenate(order).astype(np.int32))
    c.call("output_transform_fn_int16_impl_asm", c.put(registers(acc)), tables, out, n)
    want = np.clip(rounded(bounded(acc + add, MOST32) * mul, 30), -MOST16 - 1, MOST16)
    return c.get(out, n + 1, np.int16), np.append(want[:n], 0x5555)


@check
def output_transform_maxpool_impl_asm(c: Case) -> Pair:
    """Checks a copy of up to 16 bytes."""
    n, acc = c.number(1, 16), c.bytes(32)
    out = c.room(32)
    end = c.call("output_transform_maxpool_impl_asm", 0, out, c.put(acc), 0, n)
    return np.append(c.get(out, n + 1), end - out), np.append(acc[:n], [0x55, n])


# ---- elementwise -----------------------------------------------------------------------------------


def _add_case(c: Case) -> tuple[Array, Array, Array, int, int, Array]:
    start, count = 4 * c.number(0, 3), c.number(1, 70)
    a, b = c.bytes(start + count), c.bytes(start + count)
    m1, m2, bias, shift = (
        c.number(-4000, 4000),
        c.number(-4000, 4000),
        c.number(-(2**18), 2**18),
        c.number(8, 13),
    )
    values = np.array([m1, m2, shift, bias >> 16, bias & 0xFFFF]).astype(np.uint16)
    sum_ = bounded(bias + a[start:].astype(np.int64) * m1 + b[start:].astype(np.int64) * m2, MOST32)
    want = np.clip(rounded(sum_, shift), -128, 127)
    return a, b, np.repeat(values, 16), start, count, want


def _add_bytes(c: Case, name: str) -> Pair:
    a, b, parameters, start, count, want = _add_case(c)
    out = c.room(start + count + 1)
    c.call(name, out, c.put(a), c.put(b), c.put(parameters), start, count)
    return c.get(out + start, count + 1), np.append(want, 0x55)


@check
def add_elementwise_asm(c: Case) -> Pair:
    """Checks an addition of int8 tensors: a factor for each tensor, a bias, a shift."""
    return _add_bytes(c, "add_elementwise_asm")


@check
def mul_elementwise_asm(c: Case) -> Pair:
    """Checks a multiplication of int8 tensors: zero points, a factor, a bias, a shift."""
    return _multiply_bytes(c, "mul_elementwise_asm")


def _multiply_bytes(c: Case, name: str) -> Pair:
    count, a_zero, b_zero = c.number(1, 60), c.number(-100, 100), c.number(-100, 100)
    a, b = c.bytes(count), c.bytes(count)
    bias, scalar, shift = c.number(-9000, 9000), c.number(500, 16000), c.number(-2, 2)
    parameters = [*np.array([a_zero, b_zero], np.int8).view(np.int16), bias, scalar, shift]
    out = c.room(count + 20)
    c.call(name, c.put(a), c.put(b), count, c.put(np.array(parameters, np.int16)), out)
    product = (a.astype(np.int64) + a_zero + 1) * (b.astype(np.int64) + b_zero + 1) - 1
    value = bounded(bounded(rounded(bounded(rounded(product, 1)) * scalar, 14)) + bias)
    return c.get(out, count), narrowed(shifted(value, shift))


@check
def add_int16_tensor_asm(c: Case) -> Pair:
    """Checks an addition of int16 tensors, with a factor for each tensor and lane of the vector.

    Sums that round to exactly -32768 are left out: the unit makes them -32767.
    """
    n = c.number(1, 70)
    a, b, m = c.halves(n), c.halves(n), c.halves(2, 16)
    out = c.room(2 * n + 2)
    c.call("add_int16_tensor_asm", out, c.put(a), c.put(b), n, c.put(m))
    lanes = np.arange(n) % 16
    sum_ = bounded(a.astype(np.int64) * m[0, lanes] + b.astype(np.int64) * m[1, lanes], MOST32)
    want = np.clip(rounded(sum_, 14), -32768, 32767)
    got = c.get(out, n + 1, np.int16)
    return np.where(rounded(sum_, 14) == -32768, 0, got[:n]), np.where(rounded(sum_, 14) == -32768, 0, want)


def _multiply_halves(c: Case, name: str) -> Pair:
    n, shift, factor = c.number(1, 40), c.number(17, 30), c.number(1, MOST16)
    a, b = c.halves(n), c.halves(n)
    out = c.room(2 * n + 2)
    c.call(name, out, c.put(a), c.put(b), n, c.put(np.array([factor, shift], np.int16)))
    want = np.clip(rounded(a.astype(np.int64) * b * factor, shift), -32768, 32767)
    return c.get(out, n + 1, np.int16), np.append(want, 0x5555)


@check
def multiply_int16_tensor_asm(c: Case) -> Pair:
    """Checks a multiplication of int16 tensors: a factor and a shift, in 64 bits."""
    return _multiply_halves(c, "multiply_int16_tensor_asm")


def _requantise(c: Case, name: str) -> Pair:
    n, m = c.number(1, 70), c.halves(16)
    x = c.halves(n)
    out = c.room(2 * n + 2)
    c.call(name, out, c.put(x), n, c.put(m))
    wide, lanes = x.astype(np.int64), np.arange(n) % 16
    sum_ = wide * 65536 + 32768
    for _ in range(2):
        sum_ = bounded(sum_ + wide * m[lanes], MOST32)
    return c.get(out, n + 1, np.int16), np.append(sum_ >> 16, 0x5555)


@check
def requantize_int16_tensor_asm(c: Case) -> Pair:
    """Checks x + 2 * x * m / 2^16 of int16, with a factor m for each lane of the vector."""
    return _requantise(c, "requantize_int16_tensor_asm")


@check
def dequantize_int16_tensor_asm(c: Case) -> Pair:
    """Checks the conversion of int16 to float32: x becomes the lower bits of a float from 2.0 on."""
    n = c.number(1, 40)
    x = c.halves(n)
    scale, offset = np.float32(c.rng.uniform(1, 50)), np.float32(-2.0 - 32768 * 2.0**-22)
    out = c.room(4 * n + 4)
    c.call("dequantize_int16_tensor_asm", out, c.put(x), n, c.put(np.array([scale, offset], np.float32)))
    base = (x.astype(np.int64) + 0x40008000).astype(np.uint32).view(np.float32)
    return c.get(out, n, np.float32), ((base + offset).astype(np.float32) * scale).astype(np.float32)


@check
def quantize_int16_tensor_asm(c: Case) -> Pair:
    """Checks the conversion of float32 to int16: floor(x * scale + 1/2), clamped."""
    n, scale = c.number(1, 40), np.float32(c.rng.uniform(100, 2000) * 2.0**-23)
    x = c.rng.normal(0, 20, n).astype(np.float32)
    out = c.room(2 * n + 2)
    c.call("quantize_int16_tensor_asm", out, c.put(x), n, c.put(np.array([scale], np.float32)))
    value = (2.0**-24 + x.astype(np.float64) * np.float64(scale)).astype(np.float32).astype(np.float64)
    return c.get(out, n, np.int16), np.clip(np.floor(value * 2**23), -32768, 32767)


@check
def quadratic_interpolation_128(c: Case) -> Pair:
    """Checks a function of int16 that is a polynomial on each interval of 512 inputs.

    The polynomials stay within 32 bits. The first interval is left out: the unit saturates -32768 to -32767
    there.
    """
    n = c.number(1, 70)
    x = c.halves(n, most=32255)
    a, b = c.draw(-40, 40, 128, dtype=np.int8), c.draw(0, 8000, 128, dtype=np.int16)
    constant = c.draw(-(2**28), 2**28, 128, dtype=np.int32)
    table = np.zeros(128, np.dtype([("c", "<i4"), ("a", "i1"), ("_", "i1"), ("b", "<i2")]))
    table["a"], table["b"], table["c"] = a, b, constant
    out = c.room(2 * n + 2)
    c.call("quadratic_interpolation_128", out, c.put(x), c.put(table.view(np.uint8)), n)
    k, d = (x.astype(np.int64) >> 9) + 64, (x.astype(np.int64) & 511) - 256
    want = (
        constant[k].astype(np.int64) + b[k].astype(np.int64) * d * 256 + a[k].astype(np.int64) * d * d
    ) >> 16
    return c.get(out, n + 1, np.int16), np.append(want, 0x5555)


@check
def expand_8_to_16(c: Case) -> Pair:
    """Checks the conversion of int8 to int16."""
    n = c.number(1, 70)
    x, out = c.bytes(n), c.room(2 * n + 2)
    c.call("expand_8_to_16", out, c.put(x), n)
    return c.get(out, n + 1, np.int16), np.append(x, 0x5555)


def _look_up(c: Case, name: str) -> Pair:
    start, count = c.number(0, 20), c.number(1, 80)
    x, table, out = c.bytes(start + count), c.bytes(256), c.room(start + count + 1)
    c.call(name, out, c.put(x), c.put(table), start, count)
    return c.get(out + start, count + 1), np.append(table[x[start:].view(np.uint8)], 0x55)


@check
def lookup8_asm(c: Case) -> Pair:
    """Checks a lookup in a table of 256 bytes; its loop is entered by a computed jump."""
    return _look_up(c, "lookup8_asm")


def _signs(c: Case, name: str) -> Pair:
    start, length = 32 * c.number(0, 2), 8 * c.number(1, 12)  # whole bytes of bits
    x, zero = c.bytes(start + length), np.repeat(c.bytes(1), 32)
    out = c.room(4 * ((start + length + 31) // 32) + 4)
    c.call(name, out, c.put(x), c.put(zero), c.put(np.array([start, length], np.int32)))
    words = (length + 31) // 32
    bits = np.zeros(32 * words, bool)
    bits[:length] = x[start:] < zero[0]
    return c.get(out + start // 8, words, np.uint32), np.packbits(bits, bitorder="little").view(np.uint32)


@check
def bsign_8(c: Case) -> Pair:
    """Checks a bit per element: whether the element is below the zero point."""
    return _signs(c, "bsign_8")


# ---- copies ----------------------------------------------------------------------------------------


@check
def im_to_col_valid_impl_asm(c: Case) -> Pair:
    """Checks a copy of a window's pixels one after the other, followed by 32 zero bytes."""
    kh, kw, channels = c.number(1, 3), c.number(1, 3), 4 * c.number(1, 20)
    height, width = kh + c.number(0, 3), kw + c.number(0, 3)
    x = c.bytes(height, width, channels)
    y0, x0 = c.number(0, height - kh), c.number(0, width - kw)
    chunks, rest = divmod(channels, 32)
    row, mask = width * channels, (1 << rest) - 1
    step = channels - 32 * (chunks + 1)
    values = [row, channels, kh - 1, kw - 1, chunks, -rest, step, row - kw * channels, mask, 0]
    out = c.room(kh * kw * channels + 32 + 1)
    c.call("im_to_col_valid_impl_asm", c.put(np.array(values, np.int32)), out, c.put(x), y0, x0, 0)
    patch = x[y0 : y0 + kh, x0 : x0 + kw].ravel()
    return c.get(out, len(patch) + 33), np.concatenate([patch, np.zeros(32), [0x55]])


@check
def pad_3_to_4_asm(c: Case) -> Pair:
    """Checks pixels of three bytes that get a fourth byte; the function takes blocks of 24 bytes."""
    blocks, pad = c.number(1, 5), c.number(0, 255)
    x, out = c.bytes(24 * blocks), c.room(32 * blocks + 1)
    c.call("pad_3_to_4_asm", out, c.put(x), blocks, pad << 24)
    want = np.concatenate([x.reshape(-1, 3), np.full((8 * blocks, 1), np.uint8(pad).astype(np.int8))], axis=1)
    return c.get(out, 32 * blocks + 1), np.append(want.ravel(), 0x55)


@check
def pad_1_to_4_asm(c: Case) -> Pair:
    """Checks pixels of one byte that get three more bytes; the function takes blocks of 4 bytes."""
    blocks, pad = c.number(1, 20), c.number(0, 2**24 - 1)
    x, out = c.bytes(4 * blocks), c.room(16 * blocks + 1)
    c.call("pad_1_to_4_asm", out, c.put(x), blocks, pad << 8)
    return c.get(out, 4 * blocks, np.uint32), x.view(np.uint8).astype(np.uint32) | np.uint32(pad << 8)


def _copy(c: Case, name: str, unit: int) -> Pair:
    count = c.number(1, 6)
    x, out = c.bytes(count * unit), c.room(count * unit + 1)
    c.call(name, out, c.put(x), count)
    return c.get(out, count * unit + 1), np.append(x, 0x55)


@check
def vpu_memcpy_vector_int_asm(c: Case) -> Pair:
    """Checks a copy of vectors of 32 bytes."""
    return _copy(c, "vpu_memcpy_vector_int_asm", 32)


@check
def vpu_memcpy_vector_ext_asm(c: Case) -> Pair:
    """Checks a copy of blocks of 128 bytes; the function prefetches them."""
    return _copy(c, "vpu_memcpy_vector_ext_asm", 128)


@check
def vpu_memmove_word_aligned(c: Case) -> Pair:
    """Checks a copy between ranges that may overlap."""
    size, n = 400, c.number(1, 200)
    memory = c.bytes(size)
    base = c.put(memory)
    to, from_ = 4 * c.number(0, 49), 4 * c.number(0, 49)
    c.call("vpu_memmove_word_aligned", base + to, base + from_, n)
    want = memory.copy()
    want[to : to + n] = memory[from_ : from_ + n]
    return c.get(base, size), want


@check
def vpu_memset32_asm(c: Case) -> Pair:
    """Checks that a word is written repeatedly, in whole vectors."""
    value, count = c.number(0, 2**32 - 1), c.number(0, 5)
    out = c.room(32 * count + 4)
    c.call("vpu_memset32_asm", out, value, count)
    return c.get(out, 8 * count + 1, np.uint32), np.append(np.full(8 * count, value), 0x55555555).astype(
        np.uint32
    )


@check
def vpu_memset_256(c: Case) -> Pair:
    """Checks that a vector is written repeatedly, from any address on.

    The vector has one byte repeated, so that the result does not depend on the address.
    """
    value, offset, n = c.bytes(1), c.number(0, 3), c.number(1, 100)
    out = c.room(120)
    c.call("vpu_memset_256", out + offset, c.put(np.repeat(value, 32)), n)
    want = np.full(120, 0x55)
    want[offset : offset + n] = value
    return c.get(out, 120), want


# ---- C that XMOS's compiler compiled ---------------------------------------------------------------


@check
def lookup8_ref(c: Case) -> Pair:
    """Checks the same as `lookup8_asm`."""
    return _look_up(c, "lookup8_ref")


@check
def bsign_8_ref(c: Case) -> Pair:
    """Checks the same as `bsign_8`."""
    return _signs(c, "bsign_8_ref")


@check
def mul_elementwise_ref(c: Case) -> Pair:
    """Checks the same as `mul_elementwise_asm`, with cases in which nothing saturates to 16 bits."""
    while True:
        got, want = _multiply_bytes(c, "mul_elementwise_ref")
        if np.abs(want).max() < 127:
            return got, want
        c.m.reset()


@check
def multiply_int16_tensor_ref(c: Case) -> Pair:
    """Checks the same as `multiply_int16_tensor_asm`."""
    return _multiply_halves(c, "multiply_int16_tensor_ref")


@check
def add_elementwise(c: Case) -> Pair:
    """Checks the function that calls `add_elementwise_asm`."""
    return _add_bytes(c, "add_elementwise")


@check
def pad_3_to_4_run(c: Case) -> Pair:
    """Checks the same as `pad_3_to_4_asm`, for any number of pixels and from any address on."""
    pixels, pad, offset = c.number(1, 60), c.number(0, 127), c.number(0, 7)
    x, out = c.bytes(offset + 3 * pixels), c.room(4 * pixels + 1)
    c.call("pad_3_to_4_run", out, c.put(x) + offset, pixels, pad << 24 | pad)
    want = np.concatenate([x[offset:].reshape(-1, 3), np.full((pixels, 1), pad)], axis=1)
    return c.get(out, 4 * pixels + 1), np.append(want.ravel(), 0x55)


@check
def mkmsk(c: Case) -> Pair:
    """Checks an integer whose n lowest bits are 1."""
    n = c.number(0, 32)
    return np.array([c.call("mkmsk", n)]), np.array([(1 << n) - 1])


@check
def argmax_16(c: Case) -> Pair:
    """Checks the position of the largest element; of equal ones the first counts."""
    x, out = c.halves(c.number(1, 50), most=30), c.room(8)
    c.call("argmax_16", out, c.put(x), len(x))
    return c.get(out, 1, np.int32), np.array([x.argmax()])


@check
def requantize_16_to_8_ref(c: Case) -> Pair:
    """Checks int16 divided by 256, rounded with halves up, as int8."""
    start, count = c.number(0, 5), c.number(1, 40)
    x, out = c.halves(start + count), c.room(start + count)
    c.call("requantize_16_to_8_ref", out, c.put(x), start, count)
    return c.get(out + start, count), np.clip(rounded(x[start:].astype(np.int64), 8), -128, 127)
