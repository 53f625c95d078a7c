"""The request `analyze`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from buildtool import options as table
from buildtool.api.requests.parts import COUNTING, PLANNING, TARGET, Needs, Request, Values
from buildtool.base.errors import UsageError, suggest
from buildtool.base.files import File, Named
from buildtool.base.modes import Requantise
from buildtool.options.values import NetworkOptions, PlanOptions, network_options

NETWORKS = (".onnx", ".cfg")  # what is counted without a board


@dataclass(frozen=True, kw_only=True)
class Analyze(Request):
    """Whether a model fits each board (none: every known one), what binds and what would help."""

    kind: ClassVar = "analyze"
    takes: ClassVar = (*PLANNING, *COUNTING)
    handler: ClassVar = "buildtool.api.answers.analysis:analysis"
    needs: ClassVar = Needs.COMPILERS
    prepared: ClassVar = True
    model: Named
    boards: tuple[Named, ...] = ()
    cmsis_nn: str = ""
    threads: int | None = None
    weights_in: str | None = None
    requantise: Requantise = Requantise.EXACT
    options: PlanOptions
    arena_in: str | None = None

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request: of boards, or of a file that is counted without one."""
        model, boards = values.value("model"), values.value("boards", ())
        name = model.path.lower() if isinstance(model, File) else ""
        if name.endswith(NETWORKS) and not (boards and name.endswith(".onnx")):
            if boards:
                raise UsageError("no board runs Darknet files", path=model.path, hint=suggest(boards=None))
            for named in TARGET:
                if named in values.given:
                    raise table.without_board(named)
            return AnalyzeNetwork(model, network_options(values.options))
        return super().read(values)


@dataclass(frozen=True)
class AnalyzeNetwork(Request):
    """What the memory of an ONNX or Darknet file would be, whatever its element type."""

    kind: ClassVar = "analyze"
    handler: ClassVar = "buildtool.api.answers.networks:network_analysis"
    model: File
    options: NetworkOptions
