"""Checks the kernels of a target family against the reference, each on random operators that it can run.

All boards of the family that can be run here are checked, with every kernel of the families that the plugin
offers (or the board names). Networks are drawn until the board's catalogue picks the kernel. Each network is
planned, emitted, compiled and run, and every tensor is compared. Half of the networks run layer by layer. In
the others the kernel runs among other operators with little memory: it gets rings of rows and windows of
columns, and its output may overlap its input as far as its contract allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from buildtool.api.checking.cases import ADDING, WIDE, network, numbers
from buildtool.api.checking.floatcases import REAL, in_floats
from buildtool.api.requests.kinds import Validate
from buildtool.api.requests.parts import Inputs
from buildtool.base.errors import BuildtoolError, TargetError, UsageError, did_you_mean
from buildtool.base.files import File, Named
from buildtool.base.modes import Image, Objective, Strategy
from buildtool.firmware.run.validation import validation
from buildtool.graph.ops import ALIAS_KINDS, DEFS
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType, OpKind
from buildtool.options.values import PlanOptions, TargetChoice
from buildtool.target import registry
from buildtool.target.catalogue import select_all
from buildtool.target.choice import load_board
from buildtool.target.types import BYTES

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Target as Asked
    from buildtool.base.session import Session
    from buildtool.schema.boards import CheckAnswer, CheckedKernel, FailedCase
    from buildtool.target.types import KernelVariant, Target

TRIES = 400  # the largest number of networks that are drawn for a kernel
INPUTS = 2  # sets of random values for each network
_WHOLE = "--strategy layerwise"
_LITTLE = "--objective ram --max-f 3"
_STREAMED = f"{_LITTLE} --image stream"
_WAYS = {
    _WHOLE: PlanOptions(strategy=Strategy.LAYERWISE),
    _LITTLE: PlanOptions(objective=Objective.RAM, max_f=3.0),
    _STREAMED: PlanOptions(objective=Objective.RAM, max_f=3.0, image=Image.STREAM),
}


class Case(NamedTuple):
    """A network for a kernel, as a file. `way` says how it is planned: a key of _WAYS."""

    file: File
    way: str


def check(request: Asked, session: Session) -> CheckAnswer:
    """Returns the answer to a `target` request."""
    plugin = registry.plugin_named(request.plugin)
    kernels: list[CheckedKernel] = []
    boards = _choose_boards(request)
    for board in boards:
        target = registry.make_target(load_board(board))
        offers = getattr(plugin, "kernel_families", None)
        offered = {folder.path.name for folder in offers()} if offers else set()
        families = (offered & {family.name for family in target.families}) or set(target.board.core.families)
        registry.toolchain(target, request.toolchain)  # fails early where there is no compiler
        for kernel in target.kernels:
            if kernel.sources[0].partition("/")[0] in families:
                kernels.append(_check_kernel(kernel, target, board, request, session))
    if not kernels:
        text = f"the boards of the plugin '{request.plugin}' have no kernels from its own families"
        raise UsageError(text, hint="a board's file names kernel families in core.families")
    return {
        "plugin": request.plugin,
        "interface": plugin.interface,
        "boards": [load_board(board).name for board in boards],
        "kernels": kernels,
        "exact": all(row["failed"] is None for row in kernels),
    }


def _choose_boards(request: Asked) -> list[Named]:
    """Returns the boards to check: those of the request, or all boards of the plugin that can run here."""
    boards = {name: registry.load_board(name) for name in registry.board_names()}
    own = [name for name, board in boards.items() if board.family == request.plugin]
    for named in request.boards:
        board = load_board(named)
        if board.family != request.plugin:
            text = f"board '{board.name}' belongs to the family '{board.family}', not to '{request.plugin}'"
            raise UsageError(text, option="boards", hint=did_you_mean(board.name, own))
    if request.boards:
        return list(request.boards)
    able: list[Named] = [name for name in own if boards[name].own_emulator is not None]
    if not able:
        text = f"no board of the plugin '{request.plugin}' can be run here"
        raise UsageError(text, hint="[emulator] in a board's file names the program that runs its firmware")
    return able


def _check_kernel(
    kernel: KernelVariant, target: Target, board: Named, request: Asked, session: Session
) -> CheckedKernel:
    """Returns the result of a kernel on `request.cases` networks. It stops at the first network that
    fails.
    """
    count, values, among = 0, 0, 0
    failed: FailedCase | None = None
    for case in _draw_cases(kernel, target, request):
        number = f"network {count + 1} of {request.cases}"
        session.tell(f"{target.board.name}: {kernel.name} for {kernel.op}, {number}")
        failed, compared = _run_case(case, board, request, session)
        count, values, among = count + 1, values + compared, among + (case.way != _WHOLE)
        if failed is not None:
            break
    return {
        "board": target.board.name,
        "kernel": kernel.name,
        "operator": kernel.op,
        "symbol": kernel.symbol,
        "cases": count,
        "in_networks": among,
        "values": values,
        "reached": count > 0,
        "failed": failed,
    }


def _draw_cases(kernel: KernelVariant, target: Target, request: Asked) -> Iterator[Case]:
    """Yields networks for which the board picks the kernel; every second one has several operators."""
    kind = OpKind(kernel.op)
    real = DType.FLOAT32 in kernel.types and bool(DEFS[kind].floats) and kind not in CUSTOM
    wide = kernel.types != BYTES and kind in WIDE and not real
    plain = kernel.types == (DType.INT32, DType.INT32) and bool(DEFS[kind].unscaled)
    alone = plain or kind in CUSTOM
    if not (kind in REAL if real else kind in ADDING or wide):
        return
    seeds = np.random.default_rng([request.seed, *kernel.name.encode()]).integers(1 << 31, size=TRIES)
    count = 0
    for seed in map(int, seeds):
        among = count % 2 == 1 and not alone
        drawn = numbers(kind, seed) if plain else network(kind, seed, among, wide)
        graph = in_floats(drawn) if real else drawn
        if graph is None:
            continue
        try:
            planned = rewrite(graph)
            picked = select_all(target, planned)
        except TargetError:  # for example, a formula that cannot be computed
            raise
        except BuildtoolError:  # no kernel can run this network
            continue
        pairs = zip(planned.ops, picked, strict=True)
        if any(op.kind not in ALIAS_KINDS and variant == kernel for op, variant in pairs):
            way = (_STREAMED if len(graph.inputs) == 1 else _LITTLE) if among else _WHOLE
            yield Case(File(f"{graph.name}.tflite", data=write_model(graph)), way)
            count += 1
            if count == request.cases:
                return


def _run_case(case: Case, board: Named, request: Asked, session: Session) -> tuple[FailedCase | None, int]:
    """Runs a network on the board and compares every tensor with the reference.

    Returns the failure (None: all values are equal), and the number of different output values that were
    compared.
    """
    choice, inputs = TargetChoice(board, request.toolchain), Inputs(None, INPUTS, request.seed)
    validate = Validate(model=case.file, target=choice, options=_WAYS[case.way], inputs=inputs, tensors=True)
    values = 0
    try:
        answer = validation(validate, session)
        values, first = answer["output_values"], answer["first_difference"]
        if answer["exact"] or answer["within_bounds"]:
            return None, values
        assert first is not None
        where = f"first at {first['operator']}, tensor '{first['tensor']}', element {first['first_element']}"
        text = f"different by up to {answer['max_abs_diff']}, {where}"
    except BuildtoolError as error:
        text = f"{error.path}: {error.text}" if error.path else error.text
    assert case.file.data is not None
    return {"name": case.file.path, "text": text, "options": case.way, "model": case.file.data}, values
