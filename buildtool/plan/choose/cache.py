"""Caches results of planning beyond a process: choices, refusals, and the figures of fronts.

A cache key has exactly what the value depends on. It has no names, weights or quantisation of the network,
and not the board's name or toolchain, so that a network that was trained again, or a board with another
compiler, uses the same entries. A refusal names operators, so its key has the names.

Every plan that is read from bytes passes the checker (`plan.check`) and the checks of `stated` before it is
used.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgpack

from buildtool.base.errors import PlanError, from_data, to_data
from buildtool.base.plain import to_plain
from buildtool.base.session import Namespace
from buildtool.graph.topology import topology_digest
from buildtool.plan.summary.fit import holds
from buildtool.plan.types import Plan
from buildtool.target.digest import planning_digest
from buildtool.target.hardware import FirmwareUse

if TYPE_CHECKING:
    from buildtool.graph.types import Graph
    from buildtool.plan.choose.problem import Prepared

_SCHEMA = 3  # version of the cached bytes
_MOST_REFUSALS = 256
# Bytes of a choice. A real one has about 200 for each operator; hostile bytes of 16 MB would take minutes.
_MOST_BYTES, _MOST_BYTES_PER_OP = 1 << 16, 1 << 12
MOST_CHECKED = 4096  # digests of legal plans that a session remembers


@dataclass(frozen=True)
class Choice:
    """The chosen plan.

    index: the plan's graph is the one at this position of `Prepared.every_graph`, with the plan's views.
    factor: the optimality gap (see `planners.factor_of`).
    firmware: the memory that the plan's firmware takes beside the arena.
    ended: whether the work budget ended before all plans that may be better were placed.
    """

    index: int
    plan: Plan
    factor: float
    firmware: tuple[FirmwareUse, ...] = ()
    ended: bool = False


def choice(prepared: Prepared, make: Callable[[], Choice]) -> Choice:
    """Returns the cached choice, or the one that `make` returns. A PlanError from `make` is cached, too."""
    session, key = prepared.session, parts(prepared)
    namespace = Namespace("plans", lambda new: _pack(new, prepared), lambda data: _unpack(data, prepared))
    cached = session.load(namespace, key)
    if cached is not None:
        return cached
    named = {**key, "names": _names_digest(prepared.graphs[0]), "board": prepared.target.board.name}
    refusal = session.load(_REFUSALS, named, _MOST_REFUSALS)
    if refusal is not None:
        raise from_data(refusal).at(path=prepared.path)
    try:
        new = make()
    except PlanError as error:
        path = "" if error.path == prepared.path else error.path
        session.store(_REFUSALS, named, {**to_data(error), "path": path}, _MOST_REFUSALS)
        raise
    session.store(namespace, key, new)
    return new


def parts(prepared: Prepared) -> dict[str, Any]:
    """Returns all values that a plan or a front of this problem depends on, by name: the cache key."""
    from buildtool.target import catalogue

    target, options = prepared.target, prepared.options
    graph = prepared.graphs[0]
    kernels = catalogue.select_all(target, graph)
    return {
        "schema": _SCHEMA,
        "topology": [topology_digest(one) for one in prepared.graphs],
        "target": planning_digest(target),
        "kernels": [kernel.name if kernel else "" for kernel in kernels],
        "most_ram": prepared.ram,  # the option's and the board's
        **({"firmware": _taken(target.board.firmware)} if prepared.is_beside_code else {}),
        **({} if prepared.varied else {"varied": False}),
        **to_plain(options, named=True),
    }


def check_plan(plan: Plan, graph: Graph, prepared: Prepared) -> None:
    """Raises PlanError if a plan is not legal.

    Equal plans are checked once per session, for equal topologies and targets.
    """
    from buildtool.plan.check.check import check
    from buildtool.plan.codec import digest

    key = (digest(plan), topology_digest(graph), planning_digest(prepared.target))
    prepared.session.remember("checked", key, lambda: check(plan, graph, prepared.target), MOST_CHECKED)


def _names_digest(graph: Graph) -> str:
    """Returns the digest of the names of all operators and tensors, which messages may contain."""
    names = (*(tensor.name for tensor in graph.tensors), *(op.place for op in graph.ops))
    data = b"".join(name.encode(errors="surrogateescape") + b"\0" for name in names)
    return hashlib.sha256(data).hexdigest()


# ---- payloads ----------------------------------------------------------------------------------------


def _taken(firmware: tuple[FirmwareUse, ...]) -> list[list[str | int]]:
    return [[one.memory, one.what, one.bytes] for one in firmware]


def _pack(choice: Choice, prepared: Prepared) -> bytes:
    """Returns the choice as bytes; no bytes if the plan is too large for the board.

    Such a plan is not checked, so only the session caches it.
    """
    from buildtool.plan.codec import to_bytes

    if not holds(prepared.target.with_firmware(choice.firmware).board, choice.plan):
        return b""
    return bytes(msgpack.packb([choice.index, choice.factor, choice.ended, to_bytes(choice.plan)]))


def _unpack(data: bytes, prepared: Prepared) -> Choice:
    """Returns the choice in `data`, whose plan is checked. Raises an exception if `data` is anything else."""
    from buildtool.plan.choose.stated import firmware_beside, refuse_another, refuse_wrong_cost
    from buildtool.plan.codec import from_bytes

    if len(data) > _MOST_BYTES + _MOST_BYTES_PER_OP * len(prepared.graph.ops):
        raise ValueError("longer than any plan of this network")
    index, factor, ended, plan_bytes = msgpack.unpackb(data)
    if type(index) is not int or index < 0:
        raise ValueError("no such order of operators")
    is_factor = isinstance(factor, float) and math.isfinite(factor) and factor >= 1.0
    if not is_factor or not isinstance(ended, bool) or not isinstance(plan_bytes, bytes):
        raise ValueError("not a choice")
    plan = from_bytes(plan_bytes)
    graph = prepared.graph_for(index, plan)
    refuse_another(plan, graph, prepared)
    check_plan(plan, graph, prepared)
    refuse_wrong_cost(plan, graph, prepared)
    firmware = firmware_beside(plan, graph, prepared)
    if not holds(prepared.target.with_firmware(firmware).board, plan):
        raise ValueError("a plan that does not fit")
    return Choice(index, plan, factor, firmware, ended)


def _unpack_refusal(data: bytes) -> Mapping[str, Any]:
    content = msgpack.unpackb(data, unicode_errors="surrogateescape")
    if not isinstance(content, dict) or content.get("code") != PlanError.code:
        raise ValueError("not a refusal")
    return content


_REFUSALS: Namespace[Mapping[str, Any]] = Namespace(
    "refusals", lambda error: bytes(msgpack.packb(error, unicode_errors="surrogateescape")), _unpack_refusal
)
