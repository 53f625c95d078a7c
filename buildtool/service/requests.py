"""The requests: one function each, from plain values to plain values."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buildtool.errors import ToolError, UsageError
from buildtool.service.pipeline.options import PlanOptions, plan_options

SCHEMA = 1
Request = Mapping[str, Any]
Answer = dict[str, Any]


def _text(request: Request, key: str, default: str | None = None) -> str:
    value = request.get(key, default)
    if not isinstance(value, str):
        raise UsageError(f"the request has no '{key}'")
    return value


def _number(request: Request, key: str, default: int, least: int = 0, most: int = 1 << 31) -> int:
    value = request.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(f"'{key}' must be a whole number from {least} to {most}, not {value!r}")
    return value


def _flag(request: Request, key: str) -> bool:
    value = request.get(key, False)
    if not isinstance(value, bool):
        raise UsageError(f"'{key}' must be true or false")
    return value


def _options(request: Request) -> PlanOptions:
    return plan_options(request.get("options") or {})


def ops(_request: Request) -> Answer:
    """Which operators run, and by which kernel, on the cores of every known board."""
    from buildtool.graph.types import ALIAS_KINDS, OpKind
    from buildtool.target.registry import board_names, load_target

    targets = [load_target(name) for name in board_names()]
    table = []
    for kind in OpKind:
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
        table.append({"operator": str(kind), "kernels": kernels})
    return {"schema": SCHEMA, "boards": [t.board.name for t in targets], "operators": table}


def boards(_request: Request) -> Answer:
    """The known boards and their memories."""
    from buildtool.target.registry import board_names, load_board

    listed = []
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
    return {"schema": SCHEMA, "boards": listed}


def zoo(request: Request) -> Answer:
    """The networks that buildtool can build by name; with `model`, that one's file."""
    from buildtool import zoo as networks
    from buildtool.service.pipeline.models import spec_name

    spec = _text(request, "model", "")
    if spec:
        return {"schema": SCHEMA, "files": {f"{spec_name(spec)}.tflite": networks.build(spec)}}
    return {
        "schema": SCHEMA,
        "networks": [{"name": n, "description": networks.describe(n)} for n in networks.names()],
    }


def plan(request: Request) -> Answer:
    """How a model will run on a board; refuses a plan that does not fit."""
    from buildtool.emit.image import weight_image
    from buildtool.emit.sources import plan_kernels
    from buildtool.plan.codec import to_bytes
    from buildtool.plan.summary.view import to_json
    from buildtool.service.answers.estimate import facts
    from buildtool.service.answers.planreport import beside, described
    from buildtool.service.pipeline.pipeline import planned, refuse_unless_fits

    options, compare = _options(request), _flag(request, "compare")
    made = planned(_text(request, "model"), _text(request, "board"), options)
    kernels = plan_kernels(made.plan, made.target)
    image = weight_image(made.graph, kernels)
    refuse_unless_fits(made, len(image.data))
    answer = described(made, kernels, to_json(made.plan, made.graph))
    answer.update(
        schema=SCHEMA,
        model=made.model.name,
        board=made.target.board.name,
        flash_bytes=len(image.data),
        beside=beside(made, options, compare),
        plan=to_bytes(made.plan),
        **facts(made.plan, made.graph, made.target),
    )
    return answer


def front(request: Request) -> Answer:
    """All plans of a model for a board that no other beats in memory and work."""
    from buildtool.service.answers.fronts import front_of

    peers = _flag(request, "peers")
    found = front_of(_text(request, "model"), _text(request, "board"), _options(request), peers)
    return {"schema": SCHEMA, **found}


def analyze(request: Request) -> Answer:
    """Whether a model fits each board, what binds and by how much; what ONNX and Darknet files need."""
    from buildtool.service.answers.analysis import analysis
    from buildtool.service.answers.networks import (
        is_network,
        network_analysis,
        network_options,
        refuse_for_boards,
    )

    names = request.get("boards") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError("'boards' must be a list of names")
    spec, options = _text(request, "model"), request.get("options") or {}
    if is_network(spec) and not (names and spec.lower().endswith(".onnx")):
        if names:
            raise UsageError("no board runs Darknet files", path=spec, hint="leave --board out")
        return {"schema": SCHEMA, **network_analysis(spec, network_options(options))}
    refuse_for_boards(options)
    return {"schema": SCHEMA, **analysis(spec, names, plan_options(options))}


def emit(request: Request) -> Answer:
    """The sources of a network for a board, and what else has to be compiled with them."""
    from buildtool.emit.sources import emit as emit_sources
    from buildtool.plan.codec import to_bytes
    from buildtool.service.firmware.firmware import arena_map, kernel_sources
    from buildtool.service.firmware.library import include_folder
    from buildtool.service.pipeline.pipeline import planned, refuse_unless_fits

    made = planned(_text(request, "model"), _text(request, "board"), _options(request))
    sources = emit_sources(made.graph, made.plan, made.target, request.get("name") or made.model.name)
    refuse_unless_fits(made, len(sources.image.data))
    return {
        "schema": SCHEMA,
        "net": sources.net,
        "files": {
            **sources.files,
            **arena_map(sources.net, made.plan, made.graph),
            f"{sources.net}.plan": to_bytes(made.plan),
        },
        "c_files": list(sources.c_files),
        "kernel_sources": [str(path) for path in kernel_sources(made.plan, made.target)],
        "include": str(include_folder()),
    }


def describe(request: Request) -> Answer:
    """What a build system has to know to build for a board, and with `model` that network."""
    from buildtool.emit.names import identifier
    from buildtool.identity import code_digest
    from buildtool.service.describe import Subject
    from buildtool.service.describe import describe as described
    from buildtool.service.firmware.library import all_kernel_sources, kernel_includes
    from buildtool.service.firmware.sizes import binary_suffixes
    from buildtool.service.pipeline.cmsis_nn import with_adapters, with_library
    from buildtool.service.pipeline.models import net_name
    from buildtool.target.registry import board_chain, load_board, make_target, plugin

    _options(request)
    name = _text(request, "board")
    library = str((request.get("options") or {}).get("cmsis_nn", ""))
    board = load_board(name)
    target = make_target(with_adapters(board, library) if library else board)
    family = plugin(target.board)
    tools = family.toolchain(target.board, _text(request, "toolchain", ""))
    tools = with_library(tools, library) if library else tools
    model = _text(request, "model", "")
    net = str(request.get("name") or (net_name(model) if model else ""))
    subject = Subject(
        board=target.board,
        plugin=family,
        tools=tools,
        kernels=tuple(all_kernel_sources(target)),
        includes=kernel_includes(target),
        boards=board_chain(name),
        library=library,
        binaries=tuple(binary_suffixes(target.board)),
    )
    net = identifier(net) if net else ""
    return {"schema": SCHEMA, **described(subject, net, code_digest()).plain()}


def build(request: Request) -> Answer:
    """The test firmware of a network: sources, image, .bin, size report."""
    from buildtool.emit.sources import emit as emit_sources
    from buildtool.plan.codec import to_bytes
    from buildtool.service.answers.estimate import facts
    from buildtool.service.firmware.firmware import arena_map, build_firmware, for_other_tools
    from buildtool.service.firmware.sizes import binaries, size_report
    from buildtool.service.pipeline.pipeline import planned, refuse_unless_fits
    from buildtool.target.registry import plugin

    made = planned(_text(request, "model"), _text(request, "board"), _options(request))
    sources = emit_sources(made.graph, made.plan, made.target, made.model.name)
    refuse_unless_fits(made, len(sources.image.data))
    board = made.target.board
    family = plugin(board)
    with tempfile.TemporaryDirectory(prefix="buildtool-") as name:
        tools = made.toolchain(_text(request, "toolchain", ""), Path(name))
        firmware = build_firmware(sources, made.plan, made.target, family, tools, Path(name))
        elf = firmware.elf.read_bytes()
    report = size_report(elf, board)
    files = {
        **sources.files,
        **arena_map(sources.net, made.plan, made.graph),
        f"{sources.net}.plan": to_bytes(made.plan),
        f"{sources.net}.elf": elf,
        **binaries(elf, board, sources.net),
        **for_other_tools(family, sources, made.plan, made.target),
    }
    return {
        "schema": SCHEMA,
        "net": sources.net,
        "board": board.name,
        "compiler": firmware.compiler,
        "arena_bytes": made.plan.arena_bytes,
        "sizes": report,
        "files": files,
        **facts(made.plan, made.graph, made.target),
    }


def sizes(request: Request) -> Answer:
    """What a linked image takes of each of the board's memories, and its .bin files."""
    from buildtool.service.firmware.sizes import binaries, size_report
    from buildtool.target.registry import load_board

    board = load_board(_text(request, "board"))
    path = Path(_text(request, "elf"))
    try:
        elf = path.read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read the image: {error.strerror}", path=str(path)) from None
    return {
        "schema": SCHEMA,
        "board": board.name,
        "sizes": size_report(elf, board),
        "files": binaries(elf, board, path.stem),
        "note": board.note,
    }


def validate(request: Request) -> Answer:
    """Runs a network and compares it with the reference."""
    from buildtool.service.emulation.validation import validation

    return {"schema": SCHEMA, **validation(request, _options(request))}


def profile(request: Request) -> Answer:
    """Counts the instructions of every operator."""
    from buildtool.service.emulation.profiling import profiling

    return {"schema": SCHEMA, **profiling(request, _options(request))}


def tflm(request: Request) -> Answer:
    """The model's file with arena offsets for TensorFlow Lite Micro in its metadata."""
    from buildtool.plan.others.tflm import planned_file
    from buildtool.service.pipeline.models import load_model, tflite_file

    if request.get("options"):
        raise UsageError("planning options have no effect on a plan for TFLM", hint="leave them out")
    model = load_model(_text(request, "model"))
    data, allocation = planned_file(tflite_file(model), path=model.path)
    return {
        "schema": SCHEMA,
        "model": model.name,
        "arena_bytes": allocation.height,
        "arena_bound_bytes": allocation.bound,
        "placed_tensors": allocation.tensors,
        "tensors": len(allocation.offsets),
        "files": {f"{model.name}.tflite": data},
    }


def arena(request: Request) -> Answer:
    """Solves an arena problem from a file."""
    from buildtool.service.answers import arena as problems

    capacity = _number(request, "capacity", 0, most=problems.MOST_CAPACITY) if "capacity" in request else None
    budget = _number(request, "budget", 1, 1, problems.MOST_NODES) if "budget" in request else None
    return {"schema": SCHEMA, **problems.arena(_text(request, "file"), capacity, budget)}


HANDLERS = {
    "ops": ops,
    "boards": boards,
    "zoo": zoo,
    "plan": plan,
    "front": front,
    "analyze": analyze,
    "emit": emit,
    "describe": describe,
    "build": build,
    "sizes": sizes,
    "validate": validate,
    "profile": profile,
    "arena": arena,
    "tflm": tflm,
}
