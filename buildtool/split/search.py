"""The search for a split: block by block, factor by factor, as far as the accuracy lasts.

Method: arXiv 2002.03302. Of each block in turn, the network so far is trained on as it is (the step's
baseline), and with the block split by 2, 4, ...; the largest factor is kept whose accuracy is within the
threshold of that baseline. Accuracies that decide are those of held-out training images.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from buildtool.base.durations import duration
from buildtool.base.errors import UnsupportedError, UsageError
from buildtool.split import backend, keeping, structure, training
from buildtool.split.batches import held_out
from buildtool.split.data import Data
from buildtool.split.found import Candidate, Figures, Found, Step, Tried, front
from buildtool.split.records import Records, key_of
from buildtool.split.settings import Settings
from buildtool.split.types import Choice, First, Fusion

if TYPE_CHECKING:
    from buildtool.split.types import Block

__all__ = ["Candidate", "Found", "Step", "Tried", "front", "search"]

Progress = Callable[[str], None]
_COMPARED = 4  # networks that the chosen one is compared with, at most
CHECKPOINT = ".checkpoint.npz"  # ends the names of what a training goes on from
SHARED = 3  # convolutions that the shared baseline has whole, as the paper's
FACTORS = (2, 4, 6, 8)
MAX_DROP = 0.5  # points
NOT_TRAINED = "not trained yet"


class Verdict(Protocol):
    """Whether a choice meets the goals on the board, and why not."""

    @property
    def ok(self) -> bool:
        """Whether it meets them."""

    @property
    def why(self) -> str:
        """The goal that it misses, in words."""


def search(
    base: Any,
    blocks: Sequence[Block],
    data: Data,
    settings: Settings,
    factors: Sequence[int],
    max_drop: float,
    admits: Callable[[Choice], Verdict],
    records: Records,
    progress: Progress,
    *,
    figures: Callable[[Choice], Figures] = lambda choice: {},
    first: First = "slice",
    with_others: bool = True,
    only_recorded: bool = False,
) -> Found:
    """Searches the split of a trained Keras network; see the top of this file.

    `max_drop` in points. `admits`: whether a choice meets the goals; it is asked before anything is trained.
    A candidate is trained where it meets them, or would with the largest factors in all later blocks.
    Networks lie beside the records, in `networks`. What is recorded is not trained again. `only_recorded`:
    nothing is trained, and a block's search ends at what is not recorded.
    """
    if not factors or min(factors) < 2 or list(factors) != sorted(set(factors)):
        text = f"the factors {', '.join(map(str, factors))} are not rising numbers above 1"
        raise UsageError(text, option="factors", hint="for example 2,4,6,8")
    if not 0 <= max_drop <= 100:
        raise UsageError(f"{max_drop} is not a number of points from 0 to 100", option="max_drop")
    run = _Run(
        base,
        blocks,
        data,
        settings,
        tuple(factors),
        admits,
        records,
        progress,
        figures,
        with_others,
        only_recorded,
    )
    current = original = run.original(Choice.whole(len(blocks), first))
    steps = []
    for block in blocks:
        step, current = run.step(block, current, max_drop)
        steps.append(step)
    others, refused = run.others(original, current, steps) if with_others else ({}, {})
    chosen, misses = _meeting(current, run.trained, admits)
    return Found(original, tuple(steps), chosen, others, refused, front(run.trained), misses)


def _meeting(
    last: Candidate, trained: Sequence[Candidate], admits: Callable[[Choice], Verdict]
) -> tuple[Candidate, str]:
    """The search's last network if it meets the goals, else the most accurate that does; why none does."""
    verdict = admits(last.choice)
    if verdict.ok:
        return last, ""
    meeting = [one for one in trained if admits(one.choice).ok]
    if not meeting:
        return last, verdict.why
    return max(meeting, key=lambda one: (one.accuracy, one.choice.key())), ""


class _Run:
    """One search: trains candidates, or takes them from the records."""

    def __init__(
        self,
        base: Any,
        blocks: Sequence[Block],
        data: Data,
        settings: Settings,
        factors: tuple[int, ...],
        admits: Callable[[Choice], Verdict],
        records: Records,
        progress: Progress,
        figures: Callable[[Choice], Figures],
        with_others: bool,
        only_recorded: bool,
    ) -> None:
        self.trained: list[Candidate] = []
        self._base = base
        self._blocks = blocks
        self._data = data
        self._settings = settings
        self._factors = factors
        self._admits = admits
        self._records = records
        self._progress = progress
        self._figures = figures
        self._only_recorded = only_recorded
        self._folder = records.path.parent / "networks"
        for folder in (records.path.parent, self._folder):
            keeping.sweep(folder)
        self._root = {
            "network": training.digest(base),
            "data": data.digest(),
            "backend": backend.prepare().backend.backend(),
        }
        self._held = held_out(data, settings)
        counts = [len(self._allowed(block)) for block in blocks if self._allowed(block)]
        self._compared = len(counts) * _COMPARED if with_others else 0
        self._most = len(counts) + sum(counts)  # trainings of steps that may be left
        self._times: list[float] = []  # seconds of the trainings of this process, each as of one candidate

    def _allowed(self, block: Block) -> list[int]:
        """The factors that a block can be split by."""
        return [factor for factor in self._factors if block.allows(factor)]

    def original(self, choice: Choice) -> Candidate:
        """The network as it was given."""
        key = key_of({**self._root, "original": True, "pixels": self._settings.normalise, **self._judged()})
        path = self._folder / f"{key[:16]}.keras"
        record = self._records.get(key)
        if record is None or not path.is_file():
            keeping.save(self._base, path)
            record = self._record(choice, self._base, training.Trained(self._accuracy(self._base), 0.0, 0))
            self._records.put(key, record)
        return self._candidate(choice, key, record, path)

    def step(self, block: Block, current: Candidate, max_drop: float) -> tuple[Step, Candidate]:
        """Splits one block as far as the accuracy lasts: what was tried, and the network to go on with."""
        allowed = self._allowed(block)
        if not allowed:
            why = block.reason or f"it allows factors up to {block.largest}"
            return Step(block.index, None, (), 1, why), current
        what = f"block {block.index + 1} of {len(self._blocks)}"
        if not self._may_have(current, current.choice, 1):
            return Step(block.index, None, (), 1, NOT_TRAINED), current
        baseline = kept = self._train(current, current.choice, 1, f"{what}, baseline")
        tried: list[Tried] = []
        for factor in allowed:
            choice = current.choice.with_factor(block.index, factor)
            if why := self._hopeless(choice, block.index):
                tried.append(Tried(choice, factor, None, None, False, why))
                continue
            if not self._may_have(current, choice, 1):
                tried.append(Tried(choice, factor, None, None, False, NOT_TRAINED))
                break
            candidate = self._train(current, choice, 1, f"{what}, K = {factor}")
            drop = round(100 * (baseline.accuracy - candidate.accuracy), 9)  # 0.5 points are 0.5
            is_kept = drop <= max_drop
            tried.append(Tried(choice, factor, candidate, drop, is_kept))
            if not is_kept:
                break
            kept = candidate
        self._most = max(0, self._most - 1 - len(allowed))
        return Step(block.index, baseline, tuple(tried), kept.choice.factors[block.index]), kept

    def _hopeless(self, choice: Choice, index: int) -> str:
        """Why a choice misses the goals, even with later blocks split as far as they go; "": it does not."""
        verdict = self._admits(choice)
        if verdict.ok:
            return ""
        for most in self._factors:  # smaller factors may need less memory than larger ones
            further = choice
            for block in self._blocks[index + 1 :]:
                allowed = [factor for factor in self._allowed(block) if factor <= most]
                further = further.with_factor(block.index, max(allowed, default=1))
            if further != choice and self._admits(further).ok:
                return ""
        return verdict.why

    def others(
        self, original: Candidate, chosen: Candidate, steps: Sequence[Step]
    ) -> tuple[dict[str, Candidate], dict[str, str]]:
        """What the chosen network is compared with, trained as long in all; and why some cannot be had."""
        times = max(1, sum(step.baseline is not None for step in steps))
        found: dict[str, Candidate] = {}
        refused: dict[str, str] = {}
        for name, choice in _other_choices(chosen.choice, steps, self._blocks, self._factors).items():
            if not self._may_have(original, choice, times):
                refused[name] = NOT_TRAINED
                continue
            try:
                found[name] = self._train(original, choice, times, f"for comparison: {name}")
            except (UsageError, UnsupportedError) as error:  # their branches cannot be joined like this
                refused[name] = error.text
            self._compared = max(0, self._compared - times)
        return found, refused

    def _key(self, before: Candidate, choice: Choice, settings: Settings) -> str:
        return key_of({"before": before.key, "choice": choice.key(), "settings": settings.data()})

    def _may_have(self, before: Candidate, choice: Choice, times: int) -> bool:
        """Whether a network may be trained, or is recorded."""
        key = self._key(before, choice, self._settings.fine_tuning(times))
        return not self._only_recorded or self._records.get(key) is not None

    def _train(self, before: Candidate, choice: Choice, times: int, what: str) -> Candidate:
        """The network of a choice, trained on from the one before, or taken from the records."""
        settings = self._settings.fine_tuning(times)
        key = self._key(before, choice, settings)
        path = self._folder / f"{key[:16]}.keras"
        record = self._records.get(key)
        if record is None or not path.is_file():
            record = self._trained_now(before, choice, settings, key, path, what, times)
        path.with_suffix(CHECKPOINT).unlink(missing_ok=True)  # it is not needed again
        candidate = self._candidate(choice, key, record, path)
        self.trained.append(candidate)
        return candidate

    def _trained_now(
        self,
        before: Candidate,
        choice: Choice,
        settings: Settings,
        key: str,
        path: Path,
        what: str,
        times: int,
    ) -> dict[str, Any]:
        """Trains a candidate, and keeps its network, then its record: a kill between them costs nothing."""
        began = time.monotonic()
        backend.prepare().backend.clear_session()  # else every candidate's graph stays in memory
        model = structure.build(self._base, self._blocks, choice, weights=keeping.load(before.network))
        checkpoint = path.with_suffix(CHECKPOINT)

        def told(text: str) -> None:
            each = sum(self._times) / len(self._times) if self._times else 0.0
            most = each * (self._most + self._compared)
            left = f"; at most {duration(most)} for all networks" if most else ""
            self._progress(f"{what}: {text}{left}")

        found = training.train(model, self._data, settings, checkpoint, told)
        keeping.save(model, path)
        record = {**self._record(choice, model, found), "before": before.key, "settings": settings.data()}
        self._records.put(key, record)
        self._times.append((time.monotonic() - began) / times)
        return record

    def _record(self, choice: Choice, model: Any, found: training.Trained) -> dict[str, Any]:
        """What is kept of a candidate."""
        test = training.accuracy(model, self._data.test_x, self._data.test_y, self._settings)
        return {
            **self._root,
            "choice": choice.key(),
            "accuracy": found.accuracy,
            "test": test,
            "seconds": round(found.seconds, 1),
            "epochs": found.epochs,
            "digest": training.digest(model),
        }

    def _candidate(self, choice: Choice, key: str, record: Mapping[str, Any], path: Path) -> Candidate:
        """A candidate by its record."""
        figures = dict(self._figures(choice))
        return Candidate(
            choice,
            float(record["accuracy"]),
            float(record["test"]),
            path,
            key,
            float(record["seconds"]),
            int(record["epochs"]),
            figures,
        )

    def _judged(self) -> dict[str, Any]:
        """What decides which images are held out."""
        return {"seed": self._settings.seed, "validation": self._settings.validation}

    def _accuracy(self, model: Any) -> float:
        """A network's share of held-out images with the right class."""
        return training.accuracy(model, *self._held, self._settings)


def _other_choices(
    chosen: Choice, steps: Sequence[Step], blocks: Sequence[Block], factors: Sequence[int]
) -> dict[str, Choice]:
    """What is trained for comparison, by name; see Found."""
    others = {"original": Choice.whole(len(blocks), chosen.first)}
    if chosen.is_whole:
        return others
    kept = [(one.drop or 0.0, step) for step in steps for one in step.tried if one.factor == step.kept]
    _, step = max(kept, key=lambda pair: (pair[0], -pair[1].block))
    smaller = [one.factor for one in step.tried if one.factor < step.kept and one.is_kept]
    others["second"] = chosen.with_factor(step.block, max(smaller, default=1))
    average = sum(chosen.factors) / len(chosen.factors)
    common = [factor for factor in factors if all(block.allows(factor) for block in blocks)]
    if common:
        factor = min(common, key=lambda one: (abs(one - average), one))
        naive = Choice((factor,) * len(blocks), chosen.first, Fusion.NAIVE)
        others["naive"] = naive
        others["shared"] = replace(naive, fusion=Fusion.SHARED, shared=SHARED)
    return others
