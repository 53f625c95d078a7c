"""The handlers: one function for each kind of request, from the typed request to its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.api import requests as r
from buildtool.base.errors import BuildtoolError
from buildtool.base.files import File
from buildtool.schema import SCHEMA
from buildtool.target.scratch import scratch

if TYPE_CHECKING:
    from buildtool.base.session import Session
    from buildtool.firmware.flashing.signing import Signing
    from buildtool.schema.analysis import AnalysisAnswer, NetworkAnswer
    from buildtool.schema.boards import (
        BoardEntry,
        BoardsAnswer,
        OperatorKernels,
        OpsAnswer,
        TfliteOperator,
        ZooAnswer,
        ZooFile,
    )
    from buildtool.schema.builds import (
        ArenaAnswer,
        BuildAnswer,
        BundleAnswer,
        DescribeAnswer,
        EmitAnswer,
        SizesAnswer,
        TflmAnswer,
    )
    from buildtool.schema.checks import CheckAnswer
    from buildtool.schema.datasets import DatasetAnswer
    from buildtool.schema.fronts import FrontAnswer
    from buildtool.schema.plans import PlanAnswer, TraceAnswer
    from buildtool.schema.reports import ReportAnswer
    from buildtool.schema.runs import DebugAnswer, FlashAnswer, ProfileAnswer, ValidationAnswer

_MOST_KEY_BYTES = 1 << 16


def answer(request: r.Request, session: Session) -> dict[str, Any]:
    """The answer to a request: what the types of buildtool.schema say, and their version."""
    return {**_HANDLERS[type(request)](request, session), "schema": SCHEMA}


def ops(request: r.Ops, session: Session) -> OpsAnswer:
    """Which operators run, and by which kernel, on the cores of every known board."""
    from buildtool.graph.ops import ALIAS_KINDS
    from buildtool.graph.partviews import VIEW_KINDS
    from buildtool.graph.tflite import support
    from buildtool.graph.types import OpKind
    from buildtool.plan.models import load_model, read_graph
    from buildtool.target.registry import board_names, load_target

    of_model: Counter[OpKind] | None = None
    if request.model is not None:
        source, _ = read_graph(load_model(request.model), session)
        of_model = Counter(op.kind for op in source.ops)
    targets = [load_target(name) for name in board_names()]
    table: list[OperatorKernels] = []
    for kind in (kind for kind in OpKind if kind not in VIEW_KINDS):  # which only planning makes
        if of_model is not None and kind not in of_model:
            continue
        kernels: dict[str, str] = {}
        for target in targets:
            names = [k.name for k in target.kernels if k.op == kind]
            if kind == OpKind.DEQUANTIZE:
                note = "network output only"
            elif kind in ALIAS_KINDS:
                note = "no code"
            else:
                note = ", ".join(names)
            kernels[target.board.name] = note
        count = None if of_model is None else of_model[kind]
        table.append({"operator": str(kind), "count": count, "kernels": kernels})
    listed: list[TfliteOperator] = []
    if request.model is None:
        listed = [{"operator": row.name, "refused": row.refused} for row in support.table()]
    return {"boards": [t.board.name for t in targets], "operators": table, "tflite": listed}


def boards(_request: r.Boards, _session: Session) -> BoardsAnswer:
    """The known boards and their memories."""
    from buildtool.target.registry import board_names, load_board

    listed: list[BoardEntry] = []
    for name in board_names():
        board = load_board(name)
        listed.append(
            {
                "name": board.name,
                "title": board.title,
                "core": board.core.name,
                "family": board.family,
                "toolchains": list(board.toolchains),
                "emulator": board.emulator.machine or board.emulator.kind if board.emulator else None,
                "arena_memory_bytes": board.memory(board.arena).size,
                "weights_memory_bytes": board.memory(board.weights).size,
                "memories": [
                    {"name": m.name, "kind": str(m.kind), "base": m.base, "size": m.size}
                    for m in board.memories
                ],
            }
        )
    return {"boards": listed}


def target(request: r.TargetCheck, session: Session) -> CheckAnswer:
    """The kernels of a target plugin against the reference."""
    from buildtool.api.checking import check as checking

    return checking.check(request, session)


def zoo(request: r.Zoo, _session: Session) -> ZooAnswer | ZooFile:
    """The networks that buildtool can build by name; with `model`, that one's file."""
    from buildtool import zoo as networks
    from buildtool.plan.models import spec_name

    if request.model:
        return {"files": {f"{spec_name(request.model)}.tflite": networks.build(request.model)}}
    return {
        "networks": [{"name": n, "description": networks.describe(n)} for n in networks.names()],
    }


def plan(request: r.Plan, session: Session) -> PlanAnswer:
    """How a model will run on a board; refuses a plan that does not fit."""
    from buildtool.api.answers.estimate import facts
    from buildtool.api.answers.memories import memories_of, wait_cycles
    from buildtool.api.answers.planreport import beside, described
    from buildtool.emit.image import image_layout
    from buildtool.firmware.needs import refuse_unless_fits
    from buildtool.firmware.planned import planned_or_given
    from buildtool.plan.choose.cost_units import estimated_ms
    from buildtool.plan.codec import to_bytes
    from buildtool.plan.locked import Locked, operators, to_text

    made = planned_or_given(request.model, request.target, request.options, request.lock, session)
    kernels = made.target.named(made.plan.kernels)
    image_bytes = image_layout(made.graph, kernels).size
    refuse_unless_fits(made, image_bytes)
    details = described(made)
    return {
        **details,
        "model": made.model.name,
        "board": made.target.board.name,
        "flash_bytes": image_bytes,
        "estimated_ms": estimated_ms(details["cost"], made.target),
        "cost_by_ratio": sorted(made.target.by_ratio.intersection(made.plan.kernels)),
        "memories": memories_of(made),
        "wait_cycles": wait_cycles(made),
        "search_factor": made.search_factor,
        "placing_ended": made.placing_ended,
        "order_status": made.order_status,
        "beside": beside(made, request.compare),
        "plan": to_bytes(made.plan),
        "locked": to_text(Locked(made.plan, made.target.board.name, operators(made.graph))),
        **facts(made),
    }


def trace(request: r.Trace, session: Session) -> TraceAnswer:
    """A plan over time, as a file that trace viewers open; also of a plan that does not fit."""
    from buildtool.api.answers.traces import traced
    from buildtool.firmware.planned import planned_or_given

    return traced(planned_or_given(request.model, request.target, request.options, request.lock, session))


def front(request: r.Front, session: Session) -> FrontAnswer:
    """All plans of a model for a board that no other beats in memory and work."""
    from buildtool.api.answers.fronts import front_of

    return front_of(request, session)


def report(request: r.Report, session: Session) -> ReportAnswer:
    """A plan with all that a page about it draws; made where it does not fit as well."""
    from buildtool.api.answers.reporting import report_of

    return report_of(request, session)


def analyze(request: r.Analyze, session: Session) -> AnalysisAnswer:
    """Whether a model fits each board, what binds and by how much."""
    from buildtool.api.answers.analysis import analysis

    return analysis(request, session)


def analyze_network(request: r.AnalyzeNetwork, _session: Session) -> NetworkAnswer:
    """What the memory of an ONNX or Darknet file would be."""
    from buildtool.api.answers.networks import network_analysis

    return network_analysis(request.model, request.options)


def emit(request: r.Emit, session: Session) -> EmitAnswer:
    """The sources of a network for a board, and what else has to be compiled with them."""
    from buildtool.emit.sources import kernel_sources
    from buildtool.firmware.depends import Origins
    from buildtool.firmware.emitted import emitted
    from buildtool.firmware.firmware import arena_map
    from buildtool.firmware.needs import notes, refuse_unless_fits
    from buildtool.firmware.planned import planned_or_given
    from buildtool.plan.codec import to_bytes
    from buildtool.target.library import include_folder, kernel_includes

    made = planned_or_given(request.model, request.target, request.options, request.lock, session)
    name = request.name or made.model.name
    sources = emitted(made, name)
    refuse_unless_fits(made, len(sources.image.data))
    return {
        "net": sources.net,
        "files": {
            **sources.files,
            **arena_map(sources.net, name, made.plan, made.graph, session),
            f"{sources.net}.plan": to_bytes(made.plan),
        },
        "c_files": list(sources.c_files),
        "kernel_sources": [str(path) for path in kernel_sources(made.plan, made.target)],
        "include": str(include_folder()),
        "kernel_includes": [str(path) for path in kernel_includes(made.target)],
        "depends": [*_given(request), *map(str, Origins.of(request.target, made.target).files())],
        "notes": notes(made),
    }


def _given(request: r.Planning) -> list[str]:
    """The paths of the files that a request names."""
    named = (request.model, request.lock.file if request.lock else None)
    return [file.path for file in named if isinstance(file, File) and file.data is None]


def describe(request: r.Describe, session: Session) -> DescribeAnswer:
    """What a build system has to know to build for a board, and with `model` that network."""
    from buildtool.api.describe import answer as described

    return described(request, session)


def build(request: r.Build, session: Session) -> BuildAnswer:
    """The test firmware of a network: sources, image, files for flash, size report."""
    from buildtool.api.answers.estimate import facts
    from buildtool.firmware.emitted import emitted
    from buildtool.firmware.firmware import (
        arena_map,
        build_firmware,
        compiled_by_maker,
        for_other_tools,
        map_of,
    )
    from buildtool.firmware.flashing.files import check
    from buildtool.firmware.flashing.files import files as flashed
    from buildtool.firmware.linkmap import portable
    from buildtool.firmware.needs import refuse_unless_fits
    from buildtool.firmware.parts import parts
    from buildtool.firmware.planned import planned_or_given
    from buildtool.firmware.run.levels import built, named
    from buildtool.firmware.sizes import size_report
    from buildtool.firmware.stack.report import refuse_unless_enough, stack_report
    from buildtool.firmware.tools import toolchain
    from buildtool.plan.codec import to_bytes
    from buildtool.target.registry import plugin

    made = planned_or_given(request.model, request.target, request.options, request.lock, session)
    name = request.name or made.model.name
    sources = emitted(made, name)
    refuse_unless_fits(made, len(sources.image.data))
    board = made.target.board
    family = plugin(board)
    signing = _signing(request.flashing)
    check(board, request.flashing.formats, signed=signing is not None)
    with scratch() as folder:
        tools = toolchain(made.choice, made.target)
        tell = session.tell
        firmware = build_firmware(sources, made.plan, made.target, family, tools, Path(folder), tell=tell)
        elf, table = firmware.elf.read_bytes(), portable(map_of(firmware.elf).read_bytes())
    report, stacks = size_report(elf, board), stack_report(elf, board, [sources.net])
    if not made.choice.debug:  # a debug build only says it: it may be looked at for that
        refuse_unless_enough(elf, board, sources.net)
    files = {
        **sources.files,
        **arena_map(sources.net, name, made.plan, made.graph, session),
        f"{sources.net}.plan": to_bytes(made.plan),
        f"{sources.net}.elf": elf,
        f"{sources.net}.map": table,
        **flashed(elf, board, sources.net, request.flashing.formats, signing),
        **for_other_tools(family, sources, made.plan, made.target),
    }
    own = compiled_by_maker(family, sources.net, files, tell)
    return {
        "net": sources.net,
        "board": board.name,
        **named(built(board, own)),
        "compiler": own.compiler if own else firmware.compiler,
        "arena_bytes": made.plan.arena_bytes,
        "state_bytes": made.plan.state_bytes,
        "sizes": report,
        "parts": parts(elf, board, [sources.net], table.decode("utf-8", "replace")).parts,
        "stacks": stacks,
        "files": {**files, **(own.files if own else {})},
        **facts(made),
    }


def _signing(flashing: r.Flashing) -> Signing | None:
    """What firmware is signed with; UsageError for a key that cannot be read."""
    from buildtool.firmware.flashing.signing import Signing

    if flashing.sign is None:
        return None
    return Signing(flashing.sign.read("the key", _MOST_KEY_BYTES), flashing.version)


def bundle(request: r.Bundle, session: Session) -> BundleAnswer:
    """The sources of a network with all that has to be compiled with them."""
    from buildtool.api.bundling import answer as bundled

    return bundled(request, session)


def sizes(request: r.Sizes, _session: Session) -> SizesAnswer:
    """What a linked image takes of each of the board's memories, and its files for flash."""
    from buildtool.firmware.flashing.files import check
    from buildtool.firmware.flashing.files import files as flashed
    from buildtool.firmware.linkmap import map_text
    from buildtool.firmware.parts import parts
    from buildtool.firmware.run.identity import MOST_IMAGE_BYTES, networks
    from buildtool.firmware.run.levels import built, named
    from buildtool.firmware.sizes import size_report
    from buildtool.firmware.stack.report import stack_report
    from buildtool.target.choice import load_board

    board = load_board(request.board)
    signing = _signing(request.flashing)
    check(board, request.flashing.formats, signed=signing is not None)
    elf, table = request.elf.read("the image", MOST_IMAGE_BYTES), map_text(request.elf, request.map)
    try:
        nets = [found.net for found in networks(elf)]
        found = parts(elf, board, nets, table)
        return {
            "board": board.name,
            **named(built(board, None)),
            "sizes": size_report(elf, board),
            "parts": found.parts,
            "files_from": found.files_from,
            "stacks": stack_report(elf, board, nets),
            "files": flashed(elf, board, request.elf.stem, request.flashing.formats, signing),
            "note": board.note,
        }
    except BuildtoolError as error:
        raise error.at(path=request.elf.path) from None


def validate(request: r.Validate, session: Session) -> ValidationAnswer | DatasetAnswer:
    """Runs a network and compares it with the reference."""
    if request.data is not None:
        from buildtool.firmware.run.dataset import dataset_validation

        return dataset_validation(request, request.data, session)
    from buildtool.firmware.run.validation import validation

    return validation(request, session)


def profile(request: r.Profile, session: Session) -> ProfileAnswer:
    """Counts the instructions of every operator."""
    from buildtool.firmware.run.profiling import profiling

    return profiling(request, session)


def debug(request: r.Debug, session: Session) -> DebugAnswer:
    """What it takes to run a network's test firmware under a debugger."""
    from buildtool.firmware.run.debugging import debugging

    return debugging(request, session)


def flash(request: r.Flash, session: Session) -> FlashAnswer:
    """Test firmware for a board's flash, and how it comes there."""
    from buildtool.firmware.run.flashed import flashed

    return flashed(request, session)


def tflm(request: r.Tflm, session: Session) -> TflmAnswer:
    """The model's file with arena offsets for TensorFlow Lite Micro in its metadata."""
    from buildtool.plan.models import load_model, tflite_file
    from buildtool.plan.others.tflm import planned_file

    model = load_model(request.model, session)
    data, allocation = planned_file(tflite_file(model), path=model.path, session=session)
    return {
        "model": model.name,
        "arena_bytes": allocation.height,
        "arena_bound_bytes": allocation.bound,
        "placed_tensors": allocation.tensors,
        "tensors": len(allocation.offsets),
        "files": {f"{model.name}.tflite": data},
    }


def arena(request: r.Arena, session: Session) -> ArenaAnswer:
    """Solves an arena problem from a file."""
    from buildtool.api.answers import arena as problems

    return problems.arena(request.file, request.capacity, request.budget, session)


_HANDLERS: dict[type, Callable[[Any, Session], Mapping[str, Any]]] = {
    r.Ops: ops,
    r.Boards: boards,
    r.TargetCheck: target,
    r.Zoo: zoo,
    r.Plan: plan,
    r.Trace: trace,
    r.Front: front,
    r.Report: report,
    r.Analyze: analyze,
    r.AnalyzeNetwork: analyze_network,
    r.Emit: emit,
    r.Describe: describe,
    r.Build: build,
    r.Bundle: bundle,
    r.Sizes: sizes,
    r.Validate: validate,
    r.Profile: profile,
    r.Debug: debug,
    r.Flash: flash,
    r.Arena: arena,
    r.Tflm: tflm,
}
