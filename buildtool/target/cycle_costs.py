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

import dataclasses
import math
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from buildtool.base.errors import TargetError, did_you_mean
from buildtool.target import catalogue_keys as keys
from buildtool.target.costs import costs_of
from buildtool.target.expression import check
from buildtool.target.keys import names, needed
from buildtool.target.speeds import Pipeline
from buildtool.target.types import Costs, KernelVariant

FOLDER = "costs"  # of a family
RATIO = "cycles_per_instruction"
FIGURES = ("taken_branch_cycles", "words_per_cycle")  # of Pipeline, which the formulas contain
_SEEN = frozenset(keys.VARIABLES) | {keys.THREADS, keys.VECTOR_BITS}


@dataclass(frozen=True)
class CycleCosts:
    """What a file says: formulas of kernels and of what is beside them, and the ratio for the rest.

    `figures`: those of FIGURES, with which the formulas were fitted.
    """

    ratio: float
    kernels: Mapping[str, str]
    costs: Mapping[str, str]
    figures: tuple[int, ...] = (0, 0)


@dataclass(frozen=True)
class Converter:
    """Costs of a target in cycles; `files`: of its families by name, those that have one, best first."""

    files: Mapping[str, CycleCosts]

    def ratio(self, family: str) -> float:
        """Cycles an instruction, for what a family has no formula for."""
        return self.files.get(family, next(iter(self.files.values()))).ratio

    def kernels(self, family: str, variants: Iterable[KernelVariant]) -> tuple[KernelVariant, ...]:
        """A family's kernels with their costs in cycles."""
        known = self.files[family].kernels if family in self.files else {}
        ratio = self.ratio(family)
        return tuple(
            dataclasses.replace(v, cost=known.get(v.name) or f"{ratio:.4g} * ({v.cost})") for v in variants
        )

    def by_ratio(self, family: str, variants: Iterable[KernelVariant]) -> frozenset[str]:
        """The names of a family's kernels without a formula."""
        known = self.files[family].kernels if family in self.files else {}
        return frozenset(v.name for v in variants if v.name not in known)

    def costs(self, instructions: Costs) -> Costs:
        """What is beside kernels; `instructions`: the same as the catalogues have it."""
        ratio = next(iter(self.files.values())).ratio
        found = {
            field.name: f"{ratio:.4g} * ({getattr(instructions, field.name)})"
            for field in dataclasses.fields(Costs)
        }
        for file in reversed([*self.files.values()]):
            found |= file.costs
        return Costs(**found)


def converter(
    pipeline: Pipeline | None, families: Sequence[tuple[str, Path, Collection[str]]]
) -> Converter | None:
    """What has costs in cycles; None where no family has a file for the pipeline. TargetError as `load`.

    A file that was fitted with other figures than the board's is none for it: what `profile` estimates by the
    one is not what a plan would cost by the other. `families`: name, folder, and names of the kernels, in the
    order in which they are preferred.
    """
    found = {}
    if pipeline is None or PurePath(model := pipeline.model).name != model:  # a path, or nothing
        return None
    figures = tuple(getattr(pipeline, name) for name in FIGURES)
    for name, folder, kernels in families:
        path = folder / FOLDER / f"{model}.toml"
        if path.is_file() and (file := load(path, kernels)).figures == figures:
            found[name] = file
    return Converter(found) if found else None


def load(path: Path, kernels: Collection[str]) -> CycleCosts:
    """A file of costs in cycles; TargetError names file, line and key."""
    text = path.read_text(encoding="utf-8")
    at = ""
    try:
        table = tomllib.loads(text)
        for at in table:
            if at not in names(keys.CYCLES):
                raise TargetError("unknown key", hint=did_you_mean(at, names(keys.CYCLES)))
        for at in needed(keys.CYCLES):
            if at not in table:
                raise TargetError("it is missing")
        at, ratio = RATIO, table[RATIO]
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < math.inf:
            raise TargetError(f"must be a number above 0, not {ratio!r}")
        figures = []
        for at in FIGURES:
            number = table.get(at, 0)
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise TargetError(f"must be a whole number, not {number!r}")
            figures.append(number)
        at, stated, formulas = "kernels", table.get("kernels", {}), {}
        if not isinstance(stated, dict):
            raise TargetError("must be a table: [kernels]")
        for name, formula in stated.items():
            at = f"kernels.{name}"
            if name not in kernels:
                raise TargetError("the family has no such kernel", hint=did_you_mean(name, kernels))
            if not isinstance(formula, str) or not formula:
                raise TargetError(f"must be a string that is not empty, not {formula!r}")
            check(formula, _SEEN)
            formulas[name] = formula
    except tomllib.TOMLDecodeError as error:
        raise TargetError(f"not a TOML file: {error}", path=str(path)) from None
    except TargetError as error:
        from buildtool.target.toml_places import place  # of mistakes alone: it costs start-up time

        line, column = place(text, at)
        raise error.at(path=str(path), line=line, column=column, operator=at) from None
    return CycleCosts(float(ratio), formulas, costs_of(text, table, path), tuple(figures))
