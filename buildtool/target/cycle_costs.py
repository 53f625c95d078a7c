"""Costs in cycles: formulas for a family's kernels on cores with one model of the pipeline.

The costs in a family's catalogue have one unit for all cores that run its code, but cores take different
times for the same code. So the family's folder may have files costs/MODEL.toml, one for each of LLVM's
pipeline models with which its kernels were measured:

    cycles_per_instruction = 1.31      # ratio for costs that have no formula here
    taken_branch_cycles = 2            # as [pipeline] of the boards whose cycles were fitted
    words_per_cycle = 1

    [costs]
    call = "15"                        # as in the catalogue's table

    [kernels]
    add_fast = "150 + 20 * outputs"    # by the kernel's name

Either all of a target's costs are in cycles, or none. They are in cycles if the board's file names a model,
and one of the core's families has a file for this model that was fitted with the board's own figures. A cost
without a formula in cycles is then multiplied by its family's ratio. A family without a file uses the ratio
of the first family that has one.
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

FOLDER = "costs"  # in a family's folder
RATIO = "cycles_per_instruction"
FIGURES = ("taken_branch_cycles", "words_per_cycle")  # fields of Pipeline that the formulas depend on
BY_RATIO = "the catalogue's, times the ratio"


@dataclass(frozen=True)
class CycleCosts:
    """A file of costs in cycles: formulas, and the ratio for costs without a formula."""

    ratio: Annotated[
        float,
        Key("A cost without a formula here is its formula in instructions, times this number.", name=RATIO),
    ]
    taken_branch_cycles: Annotated[
        Count,
        Key(
            "The value in [pipeline] of the boards with which the formulas were fitted. A board with another "
            "value does not use this file."
        ),
    ] = 0
    words_per_cycle: Annotated[Count, Key("As `taken_branch_cycles`.")] = 0
    costs: Annotated[Stated, Key("The same keys as in the catalogue's table, in cycles.", BY_RATIO)] = field(
        default_factory=dict
    )
    kernels: Annotated[
        Formulas,
        Key(
            "The costs of calls of the family's kernels, in cycles. The formulas may use the names of the "
            "kernel's `let`.",
            BY_RATIO,
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class Converter:
    """Converts a target's costs to cycles. `files` maps a family's name to its file of costs, the preferred
    family first.
    """

    files: Mapping[str, CycleCosts]

    def ratio(self, family: str) -> float:
        """Returns the cycles per instruction for those costs of a family that have no formula in cycles."""
        return self.files.get(family, next(iter(self.files.values()))).ratio

    def kernels(self, family: str, variants: Iterable[KernelVariant]) -> tuple[KernelVariant, ...]:
        """Returns a family's kernels with their costs in cycles."""
        formulas, ratio = self._formulas(family), self.ratio(family)
        return tuple(
            replace(
                v,
                cost=formulas.get(v.name) or f"{ratio:.4g} * ({v.cost})",
                slice_cost=f"{ratio:.4g} * ({v.slice_cost})" if v.slice_cost != "0" else "0",
            )
            for v in variants
        )

    def by_ratio(self, family: str, variants: Iterable[KernelVariant]) -> frozenset[str]:
        """Returns the names of a family's kernels that have no formula in cycles."""
        return frozenset(v.name for v in variants).difference(self._formulas(family))

    def _formulas(self, family: str) -> Mapping[str, str]:
        return self.files[family].kernels if family in self.files else {}

    def costs(self, instructions: Costs) -> Costs:
        """Returns the costs outside kernels in cycles; `instructions` are those of the catalogues."""
        files = list(self.files.values())
        converted = {name: f"{files[0].ratio:.4g} * ({cost})" for name, cost in vars(instructions).items()}
        return Costs(**ChainMap(*(dict(file.costs) for file in files), converted))


def converter(pipeline: Pipeline | None, catalogues: Iterable[Catalogue]) -> Converter | None:
    """Returns the converter of costs; None if no family has a file for the pipeline.

    `catalogues` are those of the families, the preferred first. Files that were fitted with other figures
    than the board's are not used, because then `profile` and plans would disagree. Raises TargetError as
    `load` does.
    """
    if pipeline is None or PurePath(model := pipeline.model).name != model:  # a path, or ""
        return None
    files, figures = {}, attrgetter(*FIGURES)
    for catalogue in catalogues:
        family = catalogue.family
        path = family.folder / FOLDER / f"{model}.toml"
        if path.is_file() and figures(file := load(path, catalogue.names)) == figures(pipeline):
            files[family.name] = file
    return Converter(files) if files else None


def load(path: Path, kernels: Mapping[str, Mapping[str, str]]) -> CycleCosts:
    """Returns the content of a file of costs in cycles. `kernels` is `Catalogue.names`: for each of the
    family's kernels, the names that its formulas may use, with their expressions.

    Raises TargetError with the key and its line if the file has a mistake.
    """
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
    """Returns the costs with the time for loading weights added, in the unit of the kernels' costs.

    Only weights in a memory with a bandwidth are loaded. On a board with a vector unit, costs are in issue
    slots, and each slot takes several cycles.
    """
    bandwidth = board.memory(board.weights).bandwidth
    if not bandwidth or not board.clock_hz:
        return costs
    unit = board.vector_unit.cycles if board.vector_unit else 1
    return replace(costs, load=f"{costs.load} + {board.clock_hz / bandwidth / unit:.4g} * bytes")


def waiting(kernels: Iterable[KernelVariant], board: Board) -> tuple[KernelVariant, ...]:
    """Returns the kernels with costs that include waits for the constants that a kernel reads in place.

    A call fetches its constants once if the cache holds them all, otherwise in every pass over them. Two
    things are left out: what the cache contains before the call, and waits for code.
    """
    memory = board.memory(board.weights)
    cycles = streamed_cycles_per_byte(memory.speed, board.cache_of(memory)) if not memory.bandwidth else 0.0
    if not cycles:
        return tuple(kernels)
    cache = board.cache_of(memory)
    cached_bytes = cache.data_bytes if cache else 0

    def with_wait(kernel: KernelVariant) -> KernelVariant:
        if kernel.constants == "0":
            return kernel
        fetched = f"({kernel.constants})"
        if kernel.passes != "1":
            fetched += f" * (1 if ({kernel.constants}) <= {cached_bytes} else {kernel.passes})"
        return replace(kernel, cost=f"{kernel.cost} + {cycles:.4g} * {fetched}")

    return tuple(map(with_wait, kernels))
