"""Packs a kernel's constants into the bytes that it reads, by the packing.py of its kernel family.

Such a file defines `PACKINGS`: for each packing's name, a function that returns the bytes of the block for a
graph and an operator. It belongs to the family, as the C sources do, and may import `buildtool.emit.blocks`.
A block's length depends on the topology alone, never on values: the catalogue has a formula for it.

A family whose kernels requantise differently from the reference also defines `BOUNDS`: for a packing's name,
a function that returns a `Bound` for a graph and an operator. Other packings are exact.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType

from buildtool.base.errors import BuildtoolError, TargetError, described, did_you_mean, from_exception
from buildtool.emit.blocks import Packing, align
from buildtool.graph.types import ElementwiseAttrs, Graph, Op, WidenedAttrs
from buildtool.target.catalogue import constants_bytes
from buildtool.target.kernels import kernels_root
from buildtool.target.types import NO_PACKING, KernelVariant

_OTHERS = "this is an error in the kernel family, not in the network: please report it to its authors"


def pack(graph: Graph, op: Op, kernel: KernelVariant) -> bytes:
    """Returns the `constants` block of `kernel` for `op`: little-endian, a multiple of 16 bytes long.

    Raises TargetError if the family has no such packing, or if the block's length differs from the
    catalogue's; UnsupportedError for values that the kernel does not support; InternalError or TargetError if
    the packing itself fails.
    """
    if kernel.packing == NO_PACKING:
        return b""
    if kernel.packer is None:
        raise TargetError(f"no kernel family has packing '{kernel.packing}' (kernel '{kernel.name}')")
    functions = packings(kernel.packer)
    build = functions.get(kernel.packing)
    if build is None:
        raise TargetError(
            f"packing '{kernel.packing}' is in the catalogue, but not in PACKINGS",
            path=str(kernel.packer),
            hint=did_you_mean(kernel.packing, functions),
        )
    block = align(_build_packing(build, graph, op, kernel))
    expected = constants_bytes(kernel, graph, op)
    if len(block) != expected:
        raise TargetError(
            f"packing '{kernel.packing}' made {len(block)} bytes, but its catalogue has {expected}",
            operator=op.place,
            path=str(kernel.packer),
            hint=f"correct `bytes` of [packing.{kernel.packing}]",
        )
    return block


def _build_packing(build: Packing, graph: Graph, op: Op, kernel: KernelVariant) -> bytes:
    """Calls a family's packing, and returns its bytes.

    If it fails or does not return bytes, the fault is the family's: raises InternalError for families that
    come with buildtool, and TargetError for others.
    """
    try:
        block = build(graph, _without_filling(op))
    except Exception as error:  # other people's code may raise anything
        if isinstance(error, BuildtoolError):
            raise
        if kernel.packer is not None and kernel.packer.is_relative_to(kernels_root()):
            raise from_exception(error).at(path=str(kernel.packer), operator=op.place) from error
        what = f"packing '{kernel.packing}' failed: {described(error)}"
        raise TargetError(what, operator=op.place, path=str(kernel.packer), hint=_OTHERS) from error
    if not isinstance(block, bytes):
        what = f"packing '{kernel.packing}' returned '{type(block).__name__}', not bytes"
        raise TargetError(what, operator=op.place, path=str(kernel.packer), hint=_OTHERS)
    return block


def _without_filling(op: Op) -> Op:
    """Returns the operator as its kernel sees it.

    An ADD whose second operand has fewer channels has a third, constant operand for the channels that are
    missing. Its kernel is called on parts of the channels, with two operands only, so the result has only
    these.
    """
    op = op.as_seen
    if not isinstance(op.attrs, WidenedAttrs):
        return op
    return replace(op, inputs=op.inputs[:2], attrs=ElementwiseAttrs(op.attrs.activation))


def packings(file: Path) -> Mapping[str, Packing]:
    """Returns the functions in a family's packing.py, by name. Raises TargetError if the file cannot be
    loaded.
    """
    functions = getattr(load_packing(file), "PACKINGS", None)
    if not isinstance(functions, Mapping):
        raise TargetError("this packing.py defines no PACKINGS", path=str(file))
    return functions


@cache
def load_packing(file: Path) -> ModuleType:
    """Imports a family's packing.py as a module. Raises TargetError if it cannot be loaded."""
    name = f"buildtool_packing_{hashlib.sha256(str(file).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise TargetError("this kernel family has no such file", path=str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    try:
        spec.loader.exec_module(module)
    except BuildtoolError:
        raise
    except Exception as error:  # other people's modules may raise anything
        raise TargetError(f"this packing.py cannot be loaded: {error}", path=str(file)) from error
    return module


@dataclass(frozen=True)
class Bound:
    """A proven bound for the error of an operator's output, for all inputs.

    `steps`: the largest error, in whole output steps.
    `before_rounding`: the same before the last rounding.
    `rounded`: how many of the `channels` are not exact.
    """

    steps: int
    before_rounding: float
    rounded: int
    channels: int


def proven_bound(graph: Graph, op: Op, kernel: KernelVariant) -> Bound | None:
    """Returns the proven bound of `kernel` for `op`; None if the kernel is exact."""
    if kernel.packing == NO_PACKING or kernel.packer is None:
        return None
    prove = getattr(load_packing(kernel.packer), "BOUNDS", {}).get(kernel.packing)
    bound = prove(graph, op) if prove is not None else None
    assert bound is None or isinstance(bound, Bound)
    return bound if bound is not None and bound.rounded else None
