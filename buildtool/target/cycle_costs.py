"""Costs in cycles: formulas of a family's kernels for one model of a core's pipeline.

A family's catalogue has its costs in one unit for all cores that run its code. Cores whose pipeline LLVM has
a model of take other times for the same code, so the family's folder has a file for each model that its
kernels were counted with, costs/MODEL.toml:

    cycles_per_instruction = 1.31      # what has no formula here: its formula in instructions, times this
    taken_branch_cycles = 2            # as [pipeline] of the boards whose cycles were fitted
    words_per_cycle = 1

    [costs]
    call = "15"                        # as the catalogue's table

    [kernels]
    add_fast = "150 + 20 * outputs"    # by the kernel's name

A target's costs are all in cycles, or none are: where the board's file names a model and one of the core's
families has a file for it that was fitted with the board's own figures, whatever has no formula in cycles is
converted by that family's ratio, or, of a family without a file, by that of the first one that has one.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path, PurePath
from typing import Annotated

from buildtool.base.errors import did_you_mean
from buildtool.base.plain import Key, Mismatch, from_table
from buildtool.base.toml import read_toml
from buildtool.target.family import Catalogue, costs_of, formula_of, mistake_with_place
from buildtool.target.readers import Count, Formulas, Stated
from buildtool.target.speeds import Pipeline, streamed_cycles_per_byte
from buildtool.target.types import COST, Board, Costs, KernelVariant

FOLDER = "costs"  # of a family
RATIO = "cycles_per_instruction"
FIGURES = ("taken_branch_cycles", "words_per_cycle")  # of Pipeline, which the formulas contain
BY_RATIO = "the catalogue's, times the ratio"


@dataclass(frozen=True)
class CycleCosts:
    """What a file says: formulas of kernels and of what is beside them, and the ratio for the rest."""

    ratio: Annotated[
        float, Key("What has no formula here: its formula in instructions, times this.", name=RATIO)
    ]
    taken_branch_cycles: Annotated[
        Count,
        Key(
            "That of the boards whose cycles were fitted ([pipeline]); boards that say another are not "
            "served."
        ),
    ] = 0
    words_per_cycle: Annotated[Count, Key("Likewise.")] = 0
    costs: Annotated[Stated, Key("As the catalogue's table, in cycles.", BY_RATIO)] = field(
        default_factory=dict
    )
    kernels: Annotated[
        Formulas,
        Key(
            "What calls of the family's kernels cost, in cycles. They see the names of the kernel's `let`.",
            BY_RATIO,
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class Converter:
    """Costs of a target in cycles; `files`: of the families that have one, best first."""

    files: Mapping[str, CycleCosts]

    def ratio(self, family: str) -> float:
        """Cycles an instruction, for what a family has no formula for."""
        return self.files.get(family, next(iter(self.files.values()))).ratio

    def kernels(self, family: str, variants: Iterable[KernelVariant]) -> tuple[KernelVariant, ...]:
        """A family's kernels with their costs in cycles."""
        known, ratio = self._formulas(family), self.ratio(family)
        return tuple(replace(v, cost=known.get(v.name) or f"{ratio:.4g} * ({v.cost})") for v in variants)

    def by_ratio(self, family: str, variants: Iterable[KernelVariant]) -> frozenset[str]:
        """The names of a family's kernels without a formula."""
        return frozenset(v.name for v in variants).difference(self._formulas(family))

    def _formulas(self, family: str) -> Mapping[str, str]:
        return self.files[family].kernels if family in self.files else {}

    def costs(self, instructions: Costs) -> Costs:
        """What is beside kernels; `instructions`: the same as the catalogues have it."""
        files = list(self.files.values())
        converted = {name: f"{files[0].ratio:.4g} * ({cost})" for name, cost in vars(instructions).items()}
        return Costs(**ChainMap(*(dict(file.costs) for file in files), converted))


def converter(pipeline: Pipeline | None, catalogues: Iterable[Catalogue]) -> Converter | None:
    """The converter of costs; None where no family has a file for the pipeline. TargetError as `load`.

    A file that was fitted with other figures than the board's does not count, because `profile` and plans
    would disagree. `catalogues`: of the families, the preferred first.
    """
    if pipeline is None or PurePath(model := pipeline.model).name != model:  # a path, or nothing
        return None
    files, figures = {}, attrgetter(*FIGURES)
    for catalogue in catalogues:
        family = catalogue.family
        path = family.folder / FOLDER / f"{model}.toml"
        if path.is_file() and figures(file := load(path, catalogue.names)) == figures(pipeline):
            files[family.name] = file
    return Converter(files) if files else None


def load(path: Path, kernels: Mapping[str, Mapping[str, str]]) -> CycleCosts:
    """A file of costs in cycles; TargetError names file, line and key. `kernels`: see `Catalogue.names`."""
    table = read_toml(path, "file of costs")
    with mistake_with_place(path):
        file, formulas = from_table(table, CycleCosts), {}
        for name, formula in file.kernels.items():
            key = f"kernels.{name}"
            if name not in kernels:
                raise Mismatch("the family has no such kernel", key, did_you_mean(name, kernels))
            formulas[name] = formula_of(formula, key, kernels[name], COST.sees)
    return replace(file, kernels=formulas, costs=costs_of(file.costs, path, {}))


def loading(costs: Costs, board: Board) -> Costs:
    """The costs, with the time that the weights' memory takes per byte, in the unit of the kernels' costs.

    Weights in a memory with a bandwidth are loaded into the arena. Costs of a board with a vector unit are
    issues of several cycles each.
    """
    bandwidth = board.memory(board.weights).bandwidth
    if not bandwidth or not board.clock_hz:
        return costs
    unit = board.vector_unit.cycles if board.vector_unit else 1
    return replace(costs, load=f"{costs.load} + {board.clock_hz / bandwidth / unit:.4g} * bytes")


def waiting(kernels: Iterable[KernelVariant], board: Board) -> tuple[KernelVariant, ...]:
    """The kernels, with the cycles that the core waits for constants that are read in place.

    A call fetches its constants once where the cache holds them all, else with every pass over them. The
    cache's content before the call, and waiting for code, do not count.
    """
    memory = board.memory(board.weights)
    cycles = streamed_cycles_per_byte(memory.speed, board.cache_of(memory)) if not memory.bandwidth else 0.0
    if not cycles:
        return tuple(kernels)
    cache = board.cache_of(memory)
    kept = cache.data_bytes if cache else 0

    def with_wait(kernel: KernelVariant) -> KernelVariant:
        if kernel.constants == "0":
            return kernel
        brought = f"({kernel.constants})"
        if kernel.passes != "1":
            brought += f" * (1 if ({kernel.constants}) <= {kept} else {kernel.passes})"
        return replace(kernel, cost=f"{kernel.cost} + {cycles:.4g} * {brought}")

    return tuple(map(with_wait, kernels))
