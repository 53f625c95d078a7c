"""The answers that list operators and their kernels, boards, and networks by name."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Boards, Ops, Zoo
    from buildtool.base.session import Session
    from buildtool.schema import boards as answers
    from buildtool.target.types import Target


def ops(request: Ops, session: Session) -> answers.OpsAnswer:
    """Returns the operators that run on the cores of all known boards, and their kernels."""
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

    def kernels(kind: OpKind, target: Target) -> str:
        names = (kernel.name for kernel in target.kernels if kernel.op == kind)
        return "no code" if kind in ALIAS_KINDS else ", ".join(names)

    table: list[answers.OperatorKernels] = [
        {
            "operator": str(kind),
            "count": None if of_model is None else of_model[kind],
            "kernels": {target.board.name: kernels(kind, target) for target in targets},
        }
        for kind in OpKind
        if kind not in VIEW_KINDS and (of_model is None or kind in of_model)  # only planning makes views
    ]
    tflite: list[answers.TfliteOperator] = []
    if request.model is None:
        tflite = [{"operator": name, "refused": refused} for name, refused in support.table().items()]
    return {"boards": [t.board.name for t in targets], "operators": table, "tflite": tflite}


def boards(_request: Boards, _session: Session) -> answers.BoardsAnswer:
    """Returns the known boards and their memories."""
    from buildtool.target.registry import board_names, load_board

    rows: list[answers.BoardEntry] = [
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
                {"name": m.name, "kind": str(m.kind), "base": m.base, "size": m.size} for m in board.memories
            ],
        }
        for board in map(load_board, board_names())
    ]
    return {"boards": rows}


def zoo(request: Zoo, _session: Session) -> answers.ZooAnswer | answers.ZooFile:
    """Returns the networks that buildtool can make by name; with `model`, the file of that network."""
    from buildtool import zoo as networks
    from buildtool.plan.models import spec_name

    if request.model:
        return {"files": {f"{spec_name(request.model)}.tflite": networks.build(request.model)}}
    return {"networks": [{"name": n, "description": networks.describe(n)} for n in networks.names()]}
