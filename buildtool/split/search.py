"""Searches for a split: block by block, factor by factor, as long as the accuracy allows it.

Method: arXiv 2002.03302. At each block, the network so far is trained further as it is (the step's baseline),
and with the block split by 2, 4, .... The search keeps the largest factor whose accuracy is within the
threshold of that baseline. Held-out training images decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.base.errors import UnsupportedError, UsageError
from buildtool.base.plain import duration
from buildtool.split import backend, structure, training
from buildtool.split.data import Data
from buildtool.split.records import Records, key_of
from buildtool.split.settings import SplitSettings
from buildtool.split.types import Block, Choice, First, Fusion

if TYPE_CHECKING:
    import keras

    from buildtool.split.pricing import Pricer

Progress = Callable[[str], None]
_COMPARED = 4  # networks that the chosen one is compared with, at most
CHECKPOINT = ".checkpoint.npz"  # the ending of checkpoints' names
SHARED = 3  # whole convolutions of the shared baseline, as in the paper


@dataclass(frozen=True)
class Work:
    """The inputs of a search: the Keras network `base` and its blocks, the data, prices and records."""

    wanted: SplitSettings
    base: keras.Model
    blocks: tuple[Block, ...]
    data: Data
    prices: Pricer
    records: Records
    progress: Progress

    def allowed(self, block: Block) -> list[int]:
        """Returns the factors to try at a block."""
        return [factor for factor in self.wanted.factors if block.allows(factor)]


@dataclass(frozen=True)
class Candidate:
    """A trained network.

    `accuracy`: the share of held-out training images with the right class, by which the search decides.
    `test`: the share of test images with the right class, which is only shown.
    `network`: its file. `key`: the key of its record.
    `figures`: its `ram`, `flash` and `cost` on the board.
    """

    choice: Choice
    accuracy: float
    test: float
    network: Path
    key: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Attempt:
    """A splitting factor that was tried at a block.

    `candidate`: the trained network, None if it was not trained; `why` says why.
    `drop`: percentage points of accuracy that it loses against the baseline.
    `is_kept`: whether the accuracy allows this factor.
    """

    factor: int
    candidate: Candidate | None = None
    drop: float = 0.0
    is_kept: bool = False
    why: str = ""


@dataclass(frozen=True)
class Step:
    """The search at one block.

    `baseline`: the network trained without splitting the block; None if the block allows no factor, and `why`
    says why. `tried`: the factors. `kept`: the chosen factor.
    """

    block: Block
    baseline: Candidate | None
    tried: tuple[Attempt, ...]
    kept: int
    why: str = ""


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    `others`: the networks for comparison, by name. They are trained as long in total as the chosen network.
    "original" is not split. "second" has a smaller factor in the block that lost the most accuracy. In
    "naive" and "shared", all blocks have the same factor, and branches are joined once (see `Fusion`).
    `refused`: for networks for comparison that cannot be built, by name, the reason.
    `front`: the networks on the Pareto front (see `front` below).
    `misses`: why the chosen network does not meet the goals; "" if it does.
    """

    original: Candidate
    steps: tuple[Step, ...]
    chosen: Candidate
    others: Mapping[str, Candidate]
    refused: Mapping[str, str]
    front: tuple[Candidate, ...]
    misses: str

    @property
    def drop(self) -> float:
        """Percentage points of test accuracy that the chosen network loses against the original."""
        return 100 * (self.original.test - self.chosen.test)


def front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Returns the candidates on the Pareto front of accuracy, RAM, flash and cost, best accuracy first."""

    def beats(one: Candidate, other: Candidate) -> bool:
        pairs = [(one.figures[name], other.figures[name]) for name in one.figures if name in other.figures]
        pairs.append((-one.accuracy, -other.accuracy))
        return all(mine <= its for mine, its in pairs) and any(mine < its for mine, its in pairs)

    unique = list({one.key: one for one in candidates}.values())
    best = [one for one in unique if not any(beats(other, one) for other in unique)]
    return tuple(sorted(best, key=lambda one: (-one.accuracy, sorted(one.figures.items()), one.choice.key())))


def search(work: Work, first: First) -> SearchResult:
    """Searches for the split of a network. `first`: what branches' first convolutions read (see Choice).

    A candidate is trained only if it meets the goals, or can meet them with larger factors in later blocks.
    A recorded candidate is not trained again.
    """
    run = _Run(work)
    current = original = run.original(Choice.whole(len(work.blocks), first))
    steps = []
    for block in work.blocks:
        step, current = run.step(block, current)
        steps.append(step)
    others, refused = run.others(original, current, steps) if work.wanted.compares else ({}, {})
    misses = work.prices.missed(current.choice)
    eligible = [one for one in run.trained if not work.prices.missed(one.choice)] if misses else []
    if eligible:  # the most accurate network that meets the goals replaces the last one
        current, misses = max(eligible, key=lambda one: (one.accuracy, one.choice.key())), ""
    return SearchResult(original, tuple(steps), current, others, refused, front(run.trained), misses)


class _Run:
    """One search. It trains candidates, or reads them from the records."""

    def __init__(self, work: Work) -> None:
        self.trained: list[Candidate] = []
        self._work = work
        self._settings = work.wanted.settings
        self._root = {
            "network": backend.digest(work.base),
            "data": work.data.digest(),
            "backend": backend.prepare().backend.backend(),
        }
        counts = [len(allowed) for block in work.blocks if (allowed := work.allowed(block))]
        self._compared = len(counts) * _COMPARED if work.wanted.compares else 0
        self._remaining = len(counts) + sum(counts)  # trainings that steps may still need, at most
        self._times: list[float] = []  # seconds per candidate, of the trainings of this process

    def original(self, choice: Choice) -> Candidate:
        """Returns the candidate for the original network, which is not split."""
        held_out = {"seed": self._settings.seed, "validation": self._settings.validation}
        key = key_of({**self._root, "original": True, "pixels": self._settings.normalise, **held_out})
        path, record = self._path(key), self._work.records.get(key)
        if record is None or not path.is_file():
            base = self._work.base
            backend.save(base, path)
            accuracy = training.judge(base, self._work.data, self._settings)
            record = self._record(key, choice, base, training.Trained(accuracy, 0.0, 0))
        return self._read_candidate(choice, key, record)

    def step(self, block: Block, current: Candidate) -> tuple[Step, Candidate]:
        """Splits one block as far as the accuracy allows. Also returns the candidate for the next step."""
        allowed = self._work.allowed(block)
        if not allowed:
            why = block.reason or f"it allows factors up to {block.largest}"
            return Step(block, None, (), 1, why), current
        what = f"block {block.index + 1} of {len(self._work.blocks)}"
        baseline = best = self._train(current, current.choice, 1, f"{what}, baseline")
        attempts: list[Attempt] = []
        for factor in allowed:
            choice = current.choice.with_factor(block.index, factor)
            if why := self._explain_miss(choice, block):
                attempts.append(Attempt(factor, why=why))
                continue
            candidate = self._train(current, choice, 1, f"{what}, K = {factor}")
            drop = round(100 * (baseline.accuracy - candidate.accuracy), 9)  # 0.5 points are exactly 0.5
            is_kept = drop <= self._work.wanted.max_drop
            attempts.append(Attempt(factor, candidate, drop, is_kept))
            if not is_kept:
                break
            best = candidate
        self._remaining = max(0, self._remaining - 1 - len(allowed))
        return Step(block, baseline, tuple(attempts), best.choice.factors[block.index]), best

    def _explain_miss(self, choice: Choice, block: Block) -> str:
        """Returns a text that says why a choice misses the goals even with larger factors in later blocks.

        It is "" if the choice may meet them.
        """
        why = self._work.prices.missed(choice)
        for limit in self._work.wanted.factors if why else ():  # smaller factors may need less memory
            further = choice
            for later in self._work.blocks[block.index + 1 :]:
                allowed = [factor for factor in self._work.allowed(later) if factor <= limit]
                further = further.with_factor(later.index, max(allowed, default=1))
            if further != choice and not self._work.prices.missed(further):
                return ""
        return why

    def others(
        self, original: Candidate, chosen: Candidate, steps: Sequence[Step]
    ) -> tuple[dict[str, Candidate], dict[str, str]]:
        """Trains the networks for comparison as long in total as the chosen one.

        Returns them by name, and the reasons why others cannot be built, by name.
        """
        times = max(1, sum(step.baseline is not None for step in steps))
        networks: dict[str, Candidate] = {}
        refused: dict[str, str] = {}
        for name, choice in other_choices(chosen.choice, steps, self._work).items():
            try:
                networks[name] = self._train(original, choice, times, f"for comparison: {name}")
            except (UsageError, UnsupportedError) as error:  # their branches cannot be joined like this
                refused[name] = error.text
            self._compared = max(0, self._compared - times)
        return networks, refused

    def _train(self, before: Candidate, choice: Choice, times: int, what: str) -> Candidate:
        """Trains a choice's network from the weights of `before`, for `times` the epochs of one candidate.

        A network in the records is not trained again. The network's file is written before its record, so
        that every record has a network. `what` names the network in the progress.
        """
        own = self._settings
        settings = replace(own, epochs=times * own.fine_epochs, rate=own.fine_rate)
        key = key_of({"before": before.key, "choice": choice.key(), "settings": settings.data()})
        path, record = self._path(key), self._work.records.get(key)
        checkpoint = path.with_suffix(CHECKPOINT)
        if record is None or not path.is_file():
            began = time.monotonic()
            backend.prepare().backend.clear_session()  # else every candidate's graph stays in memory
            weights = backend.load(before.network)
            model = structure.build(self._work.base, self._work.blocks, choice, weights=weights)
            each = sum(self._times) / len(self._times) if self._times else 0.0
            limit = each * (self._remaining + self._compared)  # seconds of all trainings to come
            remaining = f"; at most {duration(limit)} for all networks" if limit else ""
            result = training.train(
                model,
                self._work.data,
                settings,
                checkpoint,
                lambda text: self._work.progress(f"{what}: {text}{remaining}"),
            )
            backend.save(model, path)
            more = {"before": before.key, "settings": settings.data()}
            record = self._record(key, choice, model, result, **more)
            self._times.append((time.monotonic() - began) / times)
        checkpoint.unlink(missing_ok=True)  # it is not needed again
        self.trained.append(self._read_candidate(choice, key, record))
        return self.trained[-1]

    def _path(self, key: str) -> Path:
        """Returns the file of the network of the record `key`."""
        return self._work.records.networks / f"{key[:16]}.keras"

    def _record(
        self, key: str, choice: Choice, model: Any, trained: training.Trained, **more: Any
    ) -> dict[str, Any]:
        """Writes the record of a candidate, and returns it."""
        data = self._work.data
        record = {
            **self._root,
            "choice": choice.key(),
            "accuracy": trained.accuracy,
            "test": training.accuracy(model, data.test_x, data.test_y, self._settings),
            "seconds": round(trained.seconds, 1),
            "epochs": trained.epochs,
            "digest": backend.digest(model),
            **more,
        }
        self._work.records.put(key, record)
        return record

    def _read_candidate(self, choice: Choice, key: str, record: Mapping[str, Any]) -> Candidate:
        """Returns the candidate of a record."""
        figures = self._work.prices.figures(choice)
        return Candidate(choice, record["accuracy"], record["test"], self._path(key), key, figures)


def other_choices(chosen: Choice, steps: Sequence[Step], work: Work) -> dict[str, Choice]:
    """Returns the choices to train for comparison, by name (see `SearchResult.others`)."""
    others = {"original": Choice.whole(len(work.blocks), chosen.first)}
    if chosen.is_whole:
        return others
    drops = [(one.drop, step) for step in steps for one in step.tried if one.factor == step.kept]
    _, step = max(drops, key=lambda pair: (pair[0], -pair[1].block.index))
    smaller = [one.factor for one in step.tried if one.factor < step.kept and one.is_kept]
    others["second"] = chosen.with_factor(step.block.index, max(smaller, default=1))
    factors = [factor for factor in work.wanted.factors if all(block.allows(factor) for block in work.blocks)]
    if factors:
        factor = min(factors, key=lambda one: (abs(one - chosen.average), one))
        naive = Choice((factor,) * len(work.blocks), chosen.first, Fusion.NAIVE)
        others["naive"] = naive
        others["shared"] = replace(naive, fusion=Fusion.SHARED, shared=SHARED)
    return others
