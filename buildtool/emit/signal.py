"""Writes the geometries (nn_signal.h) and packs the constants for kernels of the signal library."""

from __future__ import annotations

import math

import numpy as np

from buildtool.emit.arguments import Fields
from buildtool.graph import types as g
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.fourier import twiddles
from buildtool.graph.reference.signal import log_table
from buildtool.graph.signal import kept_samples, radices, steps_before
from buildtool.graph.types import DType, Graph, Op, OpKind

_BITS = {DType.INT16: 16, DType.INT32: 32, DType.FLOAT32: 0}
_LOW_32 = 0xFFFFFFFF
_MAX_RADICES = 16


def geometry(graph: Graph, op: Op) -> tuple[str, str, Fields]:
    """Returns the type of the geometry struct, its name ("geometry") and its fields."""
    first = graph.tensors[op.inputs[0]]
    *outer, last = first.shape
    name, fields = _fields(graph, op, math.prod(outer), last)
    return f"nn_{name}_geometry", "geometry", list(fields.items())


def _fields(graph: Graph, op: Op, rows: int, last: int) -> tuple[str, dict[str, object]]:
    """Returns the name of the geometry struct (nn_NAME_geometry) and its fields. The operand has `rows` rows
    of `last` elements.
    """
    match op.attrs:
        case g.FftAttrs(points):
            stages = radices(points)
            listed = "{" + ", ".join(map(str, (*stages, *[0] * (_MAX_RADICES - len(stages))))) + "}"
            counts = {"frames": rows, "samples": last, "points": points, "stages": len(stages)}
            return "fft", {**counts, "radices": listed}
        case g.EnergyAttrs(first, end):
            return "signal_energy", {"bins": last // 2, "first": first, "end": end}
        case g.SubtractionAttrs() as a:
            return "signal_subtraction", {
                "channels": last,
                "smoothing": _unsigned(a.smoothing, a.odd_smoothing),
                "remaining": _unsigned(a.remaining, a.odd_remaining),
                "least": f"{a.least & _LOW_32}u",
                "smoothing_bits": a.smoothing_bits,
                "bits": a.bits,
                "clamps": int(a.clamps),
            }
        case g.SignalLogAttrs(scale, bits):
            return "signal_log", {"channels": last, "bits": bits, "scale": f"{scale & _LOW_32}u"}
        case g.FramerAttrs() as a:
            kept = {"kept": kept_samples(a), "needed": steps_before(a)}
            return "signal_framer", {
                "channels": rows,
                "samples": last,
                "size": a.size,
                "step": a.step,
                **kept,
            }
        case g.OverlapAddAttrs(step):
            frames = graph.tensors[op.inputs[0]].shape[-2]
            return "signal_overlap", {
                "channels": rows // frames,
                "frames": frames,
                "size": last,
                "step": step,
            }
        case g.StackerAttrs() as a:
            return "signal_stacker", {"channels": last, "before": a.before, "after": a.after, "step": a.step}
        case g.DelayAttrs(length):
            return "signal_delay", {"channels": rows, "samples": last, "length": length}
    if op.kind is OpKind.SIGNAL_WINDOW:
        shift = attributes(op, g.ShiftedAttrs).shift
        return "signal_window", {"frames": rows, "samples": last, "shift": shift}
    if op.kind is OpKind.SIGNAL_PCAN:
        return "signal_pcan", {"channels": last, "shift": attributes(op, g.ShiftedAttrs).shift}
    if op.kind is OpKind.SIGNAL_FILTER_BANK:
        weights = graph.tensors[op.inputs[1]].elements
        return "signal_bank", {"channels": graph.tensors[op.outputs[0]].elements, "weights": weights}
    return "signal_count", {"count": last}


def _unsigned(*values: int) -> str:
    return "{" + ", ".join(f"{value & _LOW_32}u" for value in values) + "}"


# ---- constants ---------------------------------------------------------------------------------


def _tables(graph: Graph, op: Op, *positions: int) -> bytes:
    """Packs the int16 operands at `positions`, one after the other."""
    tables = (graph.tensors[op.inputs[position]].data for position in positions)
    return b"".join(np.asarray(table).astype("<i2").tobytes() for table in tables)


def window_block(graph: Graph, op: Op) -> bytes:
    """Packs the weights of a window function."""
    return _tables(graph, op, 1)


def bank_block(graph: Graph, op: Op) -> bytes:
    """Packs the three tables for the channels of a filter bank, then its two tables of weights."""
    return _tables(graph, op, 3, 4, 5, 1, 2)


def gains_block(graph: Graph, op: Op) -> bytes:
    """Packs the table of gains of PCAN (per-channel amplitude normalisation)."""
    return _tables(graph, op, 2)


def log_block(_graph: Graph, _op: Op) -> bytes:
    """Packs the table of logarithms, padded with a 0."""
    return log_table().astype("<u2").tobytes() + bytes(2)


def fft_block(graph: Graph, op: Op) -> bytes:
    """Packs the twiddle factors of a Fourier transform's stages, then those that separate even from odd
    samples.
    """
    bits, points = _BITS[graph.tensors[op.inputs[0]].dtype], attributes(op, g.FftAttrs).points
    tables = twiddles(points, bits, op.kind is OpKind.SIGNAL_IRFFT)
    return b"".join(table.astype(table.dtype.newbyteorder("<")).tobytes() for table in tables)
