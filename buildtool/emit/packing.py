"""A kernel's constants as the bytes that it reads, made by the packing.py of a kernel family.

Such a file defines `PACKINGS`: by name, a function from a graph and an operator of it to the block's
bytes. It is Python that belongs to the family, as its C does, and may import `buildtool.emit.blocks`. A
block's length depends on the topology alone, never on values: the catalogue has a formula for it.

A family whose kernels requantise otherwise than the reference also defines `BOUNDS`: by the name of a
packing, a function from a graph and an operator of it to a `Bound`. What is not in there is exact.
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

_OTHERS = "this is an error in the kernel family, not in the network: please tell whoever ships it"


def pack(graph: Graph, op: Op, kernel: KernelVariant) -> bytes:
    """The `constants` block of `kernel` for `op`: little-endian, a multiple of 16 bytes long.

    Raises TargetError where the family has no such packing or its block has another length than its
    catalogue says, UnsupportedError for values that the kernel cannot work with, InternalError or TargetError
    where the packing fails.
    """
    if kernel.packing == NO_PACKING:
        return b""
    if kernel.packer is None:
        raise TargetError(f"no kernel family has packing '{kernel.packing}' (kernel '{kernel.name}')")
    known = packings(kernel.packer)
    build = known.get(kernel.packing)
    if build is None:
        raise TargetError(
            f"packing '{kernel.packing}' is in the catalogue, but not in PACKINGS",
            path=str(kernel.packer),
            hint=did_you_mean(kernel.packing, known),
        )
    block = align(_build_packing(build, graph, op, kernel))
    expected = constants_bytes(kernel, graph, op)
    if len(block) != expected:
        raise TargetError(
            f"packing '{kernel.packing}' made {len(block)} bytes, its catalogue says {expected}",
            operator=op.place,
            path=str(kernel.packer),
            hint=f"correct `bytes` of [packing.{kernel.packing}]",
        )
    return block


def _build_packing(build: Packing, graph: Graph, op: Op, kernel: KernelVariant) -> bytes:
    """What a family's packing makes.

    Where it fails or makes no bytes, that is the family's fault and never the network's: an InternalError if
    the family comes with buildtool, TargetError if it is somebody else's.
    """
    try:
        block = build(graph, _of_all_channels(op))
    except Exception as error:  # somebody else's code may raise anything
        if isinstance(error, BuildtoolError):
            raise
        if kernel.packer is not None and kernel.packer.is_relative_to(kernels_root()):
            raise from_exception(error).at(path=str(kernel.packer), operator=op.place) from error
        what = f"packing '{kernel.packing}' failed: {described(error)}"
        raise TargetError(what, operator=op.place, path=str(kernel.packer), hint=_OTHERS) from error
    if not isinstance(block, bytes):
        what = f"packing '{kernel.packing}' made no bytes but '{type(block).__name__}'"
        raise TargetError(what, operator=op.place, path=str(kernel.packer), hint=_OTHERS)
    return block


def _of_all_channels(op: Op) -> Op:
    """The operator as its kernel knows it: a filling of channels has the quantisation of what it fills up."""
    op = op.as_seen
    if not isinstance(op.attrs, WidenedAttrs):
        return op
    return replace(op, inputs=op.inputs[:2], attrs=ElementwiseAttrs(op.attrs.activation))


def packings(file: Path) -> Mapping[str, Packing]:
    """The layouts that a family's packing.py makes, by name; TargetError if it cannot be loaded."""
    known = getattr(load_packing(file), "PACKINGS", None)
    if not isinstance(known, Mapping):
        raise TargetError("it defines no PACKINGS", path=str(file))
    return known


@cache
def load_packing(file: Path) -> ModuleType:
    """A family's packing.py, as the module that it is; TargetError if it cannot be loaded."""
    name = f"buildtool_packing_{hashlib.sha256(str(file).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise TargetError("this kernel family has no such file", path=str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BuildtoolError:
        raise
    except Exception as error:  # somebody else's module may raise anything
        raise TargetError(f"it cannot be loaded: {error}", path=str(file)) from error
    return module


@dataclass(frozen=True)
class Bound:
    """The largest |result - reference| of an operator's output, whatever its inputs are.

    `steps`: of the output, whole ones; `before_rounding`: how far the value is off before its last rounding,
    in steps; `rounded` of its `channels` are not exact.
    """

    steps: int
    before_rounding: float
    rounded: int
    channels: int


def proven_bound(graph: Graph, op: Op, kernel: KernelVariant) -> Bound | None:
    """The proven bound of `kernel` on `op`; None where it is exact."""
    if kernel.packing == NO_PACKING or kernel.packer is None:
        return None
    prove = getattr(load_packing(kernel.packer), "BOUNDS", {}).get(kernel.packing)
    found = prove(graph, op) if prove is not None else None
    assert found is None or isinstance(found, Bound)
    return found if found is not None and found.rounded else None
