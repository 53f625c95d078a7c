"""One split from beginning to end: the base, the search by the planner's prices, and what comes of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.base import outfiles
from buildtool.base.errors import BuildtoolError, PlanError
from buildtool.base.identity import code_digest
from buildtool.schema import SCHEMA
from buildtool.split import backend, convert, keeping, networks, outputs, tables, training
from buildtool.split.blocks import find_blocks
from buildtool.split.counts import counts_of
from buildtool.split.data import Data, check, load
from buildtool.split.found import Candidate, Found, front
from buildtool.split.pricing import Price, Pricer
from buildtool.split.records import Records, key_of
from buildtool.split.search import CHECKPOINT, search
from buildtool.split.structure import build
from buildtool.split.types import Block, Choice, First
from buildtool.split.wanted import KERAS, ORIGINAL, Wanted

if TYPE_CHECKING:
    import keras

Progress = Callable[[str], None]
RECORDS, TFLITE, PLAN, JSON, TEXT, MARKDOWN = (
    "records.json",
    "split.tflite",
    "split.plan",
    "split.json",
    "tables.txt",
    "tables.md",
)


@dataclass(frozen=True)
class Outcome:
    """What came of a split: the values of `split.json`, the tables, and whether all goals are met."""

    answer: Mapping[str, Any]
    tables: tuple[tables.Table, ...]
    is_met: bool


def run(wanted: Wanted, progress: Progress) -> Outcome:
    """Searches, and writes everything into `wanted.out`. The same call goes on where an earlier one ended.

    Raises UsageError for data and networks that do not go together, PlanError where no structure can meet the
    goals, ToolError where Keras or TensorFlow is not installed.
    """
    with convert.silenced():
        backend.prepare()
    records = Records(wanted.out / RECORDS)
    records.writable()
    size = (wanted.size, wanted.size, 3) if wanted.is_named else None
    progress("reading the data set")
    model = None if wanted.is_named else keeping.load(Path(wanted.network))
    if model is not None:
        size = tuple(model.input_shape[1:])
    data = load(wanted.data, seed=wanted.settings.seed, size=size, cache=wanted.out)
    untrained = model or networks.by_name(
        wanted.network, wanted.width, wanted.size, len(data.classes), wanted.settings.seed
    )
    check(data, untrained.input_shape, untrained.output_shape, str(wanted.data))
    blocks = find_blocks(untrained)
    pricer = _pricer(untrained, blocks, wanted, records)
    _refuse_hopeless(pricer, blocks, wanted, progress)
    base = model or _trained(untrained, data, wanted, records, progress)
    pricer.model = base
    found = {
        first: _searched(base, blocks, data, wanted, pricer, records, progress, first)
        for first in wanted.firsts
    }
    first = min(found, key=lambda one: _rank(found[one], pricer))
    return _written(base, blocks, data, wanted, pricer, found, first, progress)


# ---- before the search -----------------------------------------------------------------------------


def _pricer(model: keras.Model, blocks: tuple[Block, ...], wanted: Wanted, records: Records) -> Pricer:
    """A pricer whose prices are kept in the records, by all that they depend on."""
    about = {
        "what": "price",
        "network": hashlib.sha256(model.to_json().encode()).hexdigest(),
        "board": _board_digest(wanted.board),
        "code": code_digest(),
    }

    def known(key: str) -> Mapping[str, Any] | None:
        return records.get(key_of({**about, "choice": key}))

    def keep(key: str, data: Mapping[str, Any]) -> None:
        records.put(key_of({**about, "choice": key}), {**data, "what": "price", "choice": key})

    return Pricer(model, blocks, wanted.board, wanted.goals, known=known, keep=keep)


def _board_digest(board: str) -> str:
    """A known board's name, or the digest of a file and of those that it extends."""
    from buildtool.target.registry import board_chain

    if not board.endswith(".toml"):
        return board
    try:
        return hashlib.sha256(b"\0".join(path.read_bytes() for path in board_chain(board))).hexdigest()
    except OSError:
        return board  # the planner says what is wrong with it


def _refuse_hopeless(pricer: Pricer, blocks: tuple[Block, ...], wanted: Wanted, progress: Progress) -> None:
    """PlanError where no structure that is looked at meets the goals: before hours of training."""
    progress("planning the candidates")
    pricer.price(Choice.whole(len(blocks), wanted.firsts[0]))  # errors of board and network are said first
    whys = []
    for choice in _likely(pricer, blocks, wanted):
        verdict = pricer.admits(choice)
        if verdict.ok:
            return
        whys.append(f"{choice.key()}: {verdict.why}")
    text = f"no structure of {len(whys)} meets the goals on {wanted.board}; {whys[-1]}"
    raise PlanError(text, hint="larger limits, larger factors, or a narrower network")


def _likely(pricer: Pricer, blocks: tuple[Block, ...], wanted: Wanted) -> Iterator[Choice]:
    """The whole network, one factor for all blocks, then factors chosen block by block for the least RAM."""
    for first in wanted.firsts:
        whole = Choice.whole(len(blocks), first)
        yield whole
        for factor in wanted.factors:
            yield _all_by(whole, blocks, factor)
        best = whole
        for block in blocks:
            tried = [best.with_factor(block.index, f) for f in (1, *wanted.factors) if block.allows(f)]
            best = min(tried, key=lambda one: pricer.price(one).least.bytes)
            yield best


def _all_by(choice: Choice, blocks: tuple[Block, ...], factor: int) -> Choice:
    """A choice with one factor for all blocks that allow it."""
    for block in blocks:
        if block.allows(factor):
            choice = choice.with_factor(block.index, factor)
    return choice


def _trained(
    model: keras.Model, data: Data, wanted: Wanted, records: Records, progress: Progress
) -> keras.Model:
    """The named network trained on the data; taken from the output folder where it was trained before."""
    path = wanted.out / ORIGINAL
    parts = {"base": training.digest(model), "data": data.digest(), "settings": wanted.settings.data()}
    key = key_of({**parts, "backend": backend.prepare().backend.backend()})
    record, checkpoint = records.get(key), wanted.out / "networks" / f"original{CHECKPOINT}"
    if record is not None and path.is_file() and record.get("file") == _digest(path):
        checkpoint.unlink(missing_ok=True)
        return keeping.load(path)
    found = training.train(
        model, data, wanted.settings, checkpoint, lambda text: progress(f"original: {text}")
    )
    keeping.save(model, path)
    kept = {"accuracy": found.accuracy, "seconds": round(found.seconds, 1), "epochs": found.epochs}
    records.put(key, {**parts, **kept, "what": "original", "file": _digest(path)})
    checkpoint.unlink(missing_ok=True)
    return keeping.load(path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- the search ------------------------------------------------------------------------------------


def _searched(
    base: keras.Model,
    blocks: tuple[Block, ...],
    data: Data,
    wanted: Wanted,
    pricer: Pricer,
    records: Records,
    progress: Progress,
    first: First,
) -> Found:
    """The search with one kind of first convolutions."""

    def figures(choice: Choice) -> dict[str, float]:
        try:
            price = pricer.price(choice)
        except BuildtoolError:
            return {}
        best = price.best(wanted.goals)
        return {"ram": float(price.least.bytes), "flash": float(price.image(best)), "cost": best.cost}

    return search(
        base,
        blocks,
        data,
        wanted.settings,
        wanted.factors,
        wanted.max_drop,
        pricer.admits,
        records,
        progress,
        figures=figures,
        first=first,
        with_others=wanted.compares,
    )


def _rank(found: Found, pricer: Pricer) -> tuple[bool, int, float]:
    """Of searches the one that meets the goals, then the smaller network, then the more accurate one."""
    return bool(found.misses), pricer.price(found.chosen.choice).flash, -found.chosen.accuracy


# ---- what comes of it ------------------------------------------------------------------------------


def _written(
    base: keras.Model,
    blocks: tuple[Block, ...],
    data: Data,
    wanted: Wanted,
    pricer: Pricer,
    searches: Mapping[First, Found],
    first: First,
    progress: Progress,
) -> Outcome:
    """Writes networks, plan and tables; their figures."""
    found, out = searches[first], wanted.out
    made = _tables(base, blocks, wanted, pricer, searches, first)
    files = {KERAS: found.chosen.network.read_bytes()}
    outfiles.write_changed(files, out)
    progress("converting to int8")
    files[TFLITE] = outputs.int8_file(found.chosen.network, data, wanted.settings)
    outfiles.write_changed(files, out)
    progress("planning the split network")
    planned, misses = _planned(out / TFLITE, wanted, found)
    if planned is not None:
        files[PLAN] = planned["locked"]
        outfiles.write_changed({PLAN: files[PLAN]}, out)
    else:
        (out / PLAN).unlink(missing_ok=True)
    progress("test images through the int8 network and its firmware")
    measured = outputs.accuracies(found.chosen.network, out / TFLITE, data, wanted.settings, wanted.images)
    lock = out / PLAN if planned is not None else None
    ran = outputs.on_board(out / TFLITE, wanted.board, data, wanted.settings, lock)
    answer = _answer(wanted, pricer, searches, first, made, planned, measured, ran, misses)
    files |= {
        JSON: (json.dumps(answer, indent=1, sort_keys=True) + "\n").encode(),
        TEXT: ("\n\n".join(one.text() for one in made) + "\n").encode(),
        MARKDOWN: "\n".join(one.markdown() for one in made).encode(),
    }
    outfiles.write_changed(files, out)
    names = sorted({*files, *([ORIGINAL] if wanted.is_named else [])})
    exact = measured.equal == measured.images and ran.equal == ran.images
    return Outcome({**answer, "files": names}, made, not misses and exact)


def _planned(tflite: Path, wanted: Wanted, found: Found) -> tuple[dict[str, Any] | None, str]:
    """The plan within the goals, and why the network misses them ("": it does not)."""
    try:
        planned = outputs.plan(tflite, wanted.board, wanted.goals)
    except PlanError as error:
        return None, found.misses or error.text
    image, most = planned["flash_bytes"] + (planned["code_bytes"] or 0), wanted.goals.flash
    if not found.misses and most is not None and image > most:
        return planned, f"flash: the weight image with code takes {image:,} bytes, there are {most:,}"
    return planned, found.misses


def _tables(
    base: keras.Model,
    blocks: tuple[Block, ...],
    wanted: Wanted,
    pricer: Pricer,
    searches: Mapping[First, Found],
    first: First,
) -> tuple[tables.Table, ...]:
    found = searches[first]
    made = [tables.by_block(one, blocks, wanted.factors) for one in searches.values()]
    listed = {"given": found.original, **found.others, "chosen": found.chosen}
    order = [name for name in tables.NAMES if name in listed]
    rows = [_network(name, listed[name], base, blocks, pricer) for name in order]
    refused = {name: why for one in searches.values() for name, why in one.refused.items()}
    made.append(tables.side_by_side(rows, found.original, refused, wanted.goals))
    best = front([one for each in searches.values() for one in each.front])
    prices = {one.choice.key(): pricer.price(one.choice) for one in best if one.figures}
    made.append(tables.of_front(best, prices, wanted.goals))
    return tuple(made)


def _network(
    name: str, candidate: Candidate, base: keras.Model, blocks: tuple[Block, ...], pricer: Pricer
) -> tables.Network:
    choice = candidate.choice
    counts = counts_of(base if choice.is_whole else build(base, blocks, choice, grouped=False))
    price: Price | None = None
    with contextlib.suppress(BuildtoolError):  # the planner refuses it
        price = pricer.price(choice)
    size = tables.Size(counts.convolutions, counts.fusion, counts.macs)
    return tables.Network(name, candidate, size, price)


def _answer(
    wanted: Wanted,
    pricer: Pricer,
    searches: Mapping[First, Found],
    first: First,
    made: tuple[tables.Table, ...],
    planned: Mapping[str, Any] | None,
    measured: outputs.Accuracies,
    ran: outputs.OnBoard,
    misses: str,
) -> dict[str, Any]:
    """All figures as plain values; nothing in it depends on when or how fast it was found."""
    found = searches[first]
    chosen = found.chosen.choice
    plan = ("arena_bytes", "flash_bytes", "code_bytes", "macs", "f", "cost", "cost_unit", "estimated_ms")
    return {
        "schema": SCHEMA,
        "network": Path(wanted.network).name,
        "board": Path(wanted.board).name,
        "structure": chosen.key(),
        "factors": list(chosen.factors),
        "average_factor": sum(chosen.factors) / len(chosen.factors),
        "drop": found.drop,
        "misses": misses,
        "accuracy": {
            "held_out": found.chosen.accuracy,
            "test": found.chosen.test,
            "original_test": found.original.test,
            "images": measured.images,
            "float": measured.floats,
            "int8": measured.int8,
            "firmware": measured.firmware,
            "reference": measured.reference,
            "guessing": measured.guessing,
        },
        "firmware": {
            "images": measured.images,
            "equal": measured.equal,
            "board_images": ran.images,
            "board_equal": ran.equal,
            "board_not_run": ran.why,
        },
        "plan": {name: planned[name] for name in plan} if planned else None,
        "prices": {key: price.data() for key, price in sorted(pricer.prices.items())},
        "settings": wanted.settings.data(),
        "tables": [one.data() for one in made],
    }
