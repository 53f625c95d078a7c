"""Runs networks on boards and compares every tensor with LiteRT's.

    run = exact("ds_cnn", "cortex-m4", {"strategy": "layerwise"})     # fails if any tensor differs
    run.plan.arena_bytes, run.outcome.stack_high_water

It does what `validate --tensors --reference litert` does, with two differences. It builds and runs only the
firmware image with traces. It keeps the reference's values and the network's graph for the next board.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.modes import Reference
from buildtool.base.session import Session
from buildtool.emit.sources import Sources, emit
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.planned import Planned, plan_model, refuse_unless_fits
from buildtool.firmware.run.compare import Array, difference, referrer
from buildtool.firmware.run.execute import Outcome, build_temporarily, execute
from buildtool.graph.secondpass import with_second_passes
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, SecondPass
from buildtool.plan.choose.channels import simplify_as
from buildtool.plan.models import load_network, tflite_file
from buildtool.plan.types import Plan, Removed

SEED = 20


@dataclass(frozen=True)
class Run:
    """A network that ran on a board and was exact."""

    made: Planned
    sources: Sources
    outcome: Outcome
    level: str  # "host" or "emulator"

    @property
    def plan(self) -> Plan:
        return self.made.plan


@functools.lru_cache(maxsize=2)
def _open_session(model: str) -> Session:
    return Session()


@functools.lru_cache(maxsize=2)
def _run_references(
    model: str, inputs: int, passes: tuple[SecondPass, ...], removed: tuple[Removed, ...]
) -> list[tuple[list[Array], dict[int, Array]]]:
    """Returns sets of inputs, each with LiteRT's tensors by their index in the rewritten graph."""
    network = load_network(model, _open_session(model))
    graph = with_second_passes(simplify_as(network.graph, removed).graph, passes)
    file = tflite_file(network.model, network.source)
    return [
        (values, _run_litert(file, network.source, graph, values))
        for values in draw_inputs(network.graph, inputs, SEED)
    ]


def _run_litert(file: bytes, source: Graph, graph: Graph, given: list[Array]) -> dict[int, Array]:
    """Returns LiteRT's tensors, and our executor's for those that are not in the file."""
    own = referrer(Reference.NUMPY, file, source, graph)(given, False)
    return {**own, **referrer(Reference.LITERT, file, source, graph)(given, False)}


def _find_kernel_outputs(made: Planned) -> set[int]:
    """Returns the tensors that kernels write."""
    kernels = zip(made.graph.ops, made.plan.kernels, strict=True)
    return {t for op, kernel in kernels if kernel for t in op.outputs}


def exact(
    model: str,
    board: str,
    options: Mapping[str, Any],
    *,
    toolchain: str = "",
    arena_in: str = "",
    inputs: int = 1,
) -> Run:
    """Plans, builds and runs a network (a path, or a name of the zoo). Fails if any tensor differs."""
    words = {"model": model, "board": board, "toolchain": toolchain, "options": {"order": "given", **options}}
    words |= {"arena_in": arena_in} if arena_in else {}
    request = parse({"kind": "build", **words})
    planned = plan_model(request.model, request.target, request.options, _open_session(model))
    sources = emit(planned.graph, planned.plan, planned.target, planned.model.name, planned.session)
    refuse_unless_fits(planned, len(sources.image.data))
    sets = _run_references(model, inputs, planned.plan.second_passes, planned.plan.removed)
    with build_temporarily(planned, sources, trace=True, emulated=True) as image:
        outcome = execute(planned, image, [values for values, _ in sets], trace=True)
    for number, (_, want) in enumerate(sets):
        got = {**outcome.traces[number], **outcome.outputs[number]}
        assert set(got) <= set(want) and set(planned.graph.outputs) <= set(got)
        assert set(outcome.traces[number]) >= _find_kernel_outputs(planned)
        wrong = difference(planned.graph, number, got, want, outcome.partial)
        assert not wrong, (board, wrong[0].json())
    answers = outcome.outputs[0].values()
    assert sum(np.unique(np.frombuffer(raw, np.uint8)).size for raw in answers) >= 2
    assert outcome.arena_high_water <= planned.plan.arena_bytes
    return Run(planned, sources, outcome, str(outcome.reality.level))


def file_of(network: Graph | bytes, folder: Path, name: str = "net") -> str:
    path = folder / f"{name}.tflite"
    path.write_bytes(write_model(network) if isinstance(network, Graph) else network)
    return str(path)


def validated(model: str, board: str, options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Returns the answer of `validate` for every tensor against LiteRT. Fails if one differs."""
    request = {"kind": "validate", "model": model, "board": board, "options": options, "inputs": 2}
    answer: dict[str, Any] = handle({**request, "reference": "litert", "tensors": True, "seed": 5, **more})
    assert answer["exact"], answer["first_difference"]
    assert answer["reference"]["name"] == "litert"
    assert answer["inputs"] == (more.get("inputs") or request["inputs"])
    assert answer["output_values"] >= 2
    assert answer["arena_high_water"] <= answer["arena_bytes"]
    return answer
