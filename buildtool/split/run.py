"""Runs one split: the original network, the search, its tables, and the plan of the int8 network."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from buildtool.api import handle_cached, open_session
from buildtool.base import outfiles
from buildtool.base.digests import sha256
from buildtool.base.errors import BuildtoolError, PlanError
from buildtool.base.locks import scratch
from buildtool.client.files import Located
from buildtool.fronts.texts.split import Table, text
from buildtool.fronts.texts.table import Cell
from buildtool.plan.choose.choose import choose_plan
from buildtool.schema import SCHEMA
from buildtool.schema.splits import SplitAccuracy, SplitFirmware, SplitPlan
from buildtool.split import backend, training
from buildtool.split.branches import find_blocks, split_steps
from buildtool.split.data import Data, Labelled, check, load
from buildtool.split.graphs import steps_of
from buildtool.split.networks import by_name
from buildtool.split.pricing import Price, Pricer, code_bytes, prepare_for
from buildtool.split.records import Records, key_of
from buildtool.split.search import CHECKPOINT, Candidate, SearchResult, Work, front, search
from buildtool.split.settings import KERAS, ORIGINAL, Goals, Settings, SplitSettings
from buildtool.split.types import Choice, Counts, counts_in

if TYPE_CHECKING:
    import keras

RECORDS, TFLITE, PLAN = "records.json", "split.tflite", "split.plan"
JSON, TEXT, MARKDOWN = "split.json", "tables.txt", "tables.md"
CALIBRATION = 200  # training images whose activations give the scales
ON_BOARD = 16  # test images that go through the board's own firmware in its emulator


def run(wanted: SplitSettings, progress: Callable[[str], None]) -> tuple[dict[str, Any], str, int]:
    """Searches for a split, and writes all results into `wanted.out`.

    Returns the answer, its text and the exit status. The status is 1 if a goal is missed, or if the firmware
    is not exact. The same call resumes where an earlier one ended. Raises UsageError for data that does not
    fit the network, PlanError if no structure can meet the goals, ToolError if Keras or TensorFlow is not
    installed.
    """
    with backend.silence():
        backend.prepare()
    records = Records(wanted.out / RECORDS)
    records.prepare()
    progress("reading the data set")
    model = None if wanted.is_named else backend.load(Path(wanted.network))
    size = (wanted.size, wanted.size, 3) if model is None else tuple(model.input_shape[1:])
    seed = wanted.settings.seed
    data = load(wanted.data, seed=seed, size=size, cache=wanted.out)
    base = model or by_name(wanted.network, wanted.width, wanted.size, len(data.classes), seed)
    check(data, base.input_shape, base.output_shape, str(wanted.data))
    blocks = find_blocks(base)
    prices = Pricer(base, blocks, wanted.board, wanted.goals, records)
    work = Work(wanted, base, blocks, data, prices, records, progress)
    _refuse_hopeless(work)
    if wanted.is_named:
        work = replace(work, base=_train_original(work))
    searches = [search(work, first) for first in wanted.firsts]
    return _write_results(work, searches, min(searches, key=lambda one: rank(one, prices)))


def rank(result: SearchResult, prices: Pricer) -> tuple[bool, int, float]:
    """Returns a sort key: no missed goals first, then small weight images, then high accuracy."""
    return bool(result.misses), prices.price(result.chosen.choice).flash, -result.chosen.accuracy


# ---- before the search -----------------------------------------------------------------------------


def _refuse_hopeless(work: Work) -> None:
    """Raises PlanError if none of the likely structures meets the goals. It runs before hours of training."""
    work.progress("planning the candidates")
    # Errors of the board and the network are raised first.
    work.prices.price(Choice.whole(len(work.blocks), work.wanted.firsts[0]))
    whys = []
    for choice in _propose_choices(work):
        why = work.prices.missed(choice)
        if not why:
            return
        whys.append(f"{choice.key()}: {why}")
    message = f"no structure of {len(whys)} meets the goals on {work.wanted.board}; {whys[-1]}"
    raise PlanError(message, hint="give larger limits, larger factors, or a narrower network")


def _propose_choices(work: Work) -> Iterator[Choice]:
    """Yields choices that are likely to meet the goals, for each possible `first` (see `Choice`).

    They are: no split, each factor for all blocks, and then for one block after the other the factor with
    which the network needs the least RAM.
    """
    for first in work.wanted.firsts:
        best = whole = Choice.whole(len(work.blocks), first)
        yield whole
        for factor in work.wanted.factors:
            yield replace(whole, factors=tuple(factor if one.allows(factor) else 1 for one in work.blocks))
        for block in work.blocks:
            choices = [best.with_factor(block.index, factor) for factor in (1, *work.allowed(block))]
            best = min(choices, key=lambda one: work.prices.price(one).least.bytes)
            yield best


def _train_original(work: Work) -> keras.Model:
    """Trains the named network on the data, or loads it from the output folder if it was trained before."""
    settings, records = work.wanted.settings, work.records
    path, checkpoint = work.wanted.out / ORIGINAL, records.networks / f"original{CHECKPOINT}"
    parts = {"base": backend.digest(work.base), "data": work.data.digest(), "settings": settings.data()}
    key = key_of({**parts, "backend": backend.prepare().backend.backend()})
    record = records.get(key)
    if record is None or not path.is_file() or record.get("file") != sha256(str(path)):
        trained = training.train(
            work.base, work.data, settings, checkpoint, lambda line: work.progress(f"original: {line}")
        )
        backend.save(work.base, path)
        seconds = round(trained.seconds, 1)
        figures = {"accuracy": trained.accuracy, "seconds": seconds, "epochs": trained.epochs}
        records.put(key, {**parts, **figures, "what": "original", "file": sha256(str(path))})
    checkpoint.unlink(missing_ok=True)
    return backend.load(path)


# ---- results ---------------------------------------------------------------------------------------


def _write_results(
    work: Work, searches: Sequence[SearchResult], result: SearchResult
) -> tuple[dict[str, Any], str, int]:
    """Writes the network of `result`, its plan and the tables of all searches; see `run`."""
    wanted, out = work.wanted, work.wanted.out
    shown_tables = tables(work, searches, result)
    files = {KERAS: result.chosen.network.read_bytes()}
    outfiles.write_changed(files, out)
    work.progress("converting to int8")
    files[TFLITE] = int8_file(result.chosen.network, work.data, wanted.settings)
    outfiles.write_changed(files, out)
    work.progress("planning the split network")
    plan, misses = _plan(out / TFLITE, wanted, result)
    if plan is None:
        (out / PLAN).unlink(missing_ok=True)
    else:
        files[PLAN] = plan["locked"]
        outfiles.write_changed(files, out)
    work.progress("test images through the int8 network and its firmware")
    accuracy, firmware = _measure(work, result, out / PLAN if plan is not None else None)
    answer = {
        **_describe(work, result),
        "misses": misses,
        "accuracy": accuracy,
        "firmware": firmware,
        "plan": {name: plan[name] for name in SplitPlan.__annotations__} if plan else None,
        "tables": [one.data() for one in shown_tables],
    }
    files |= {
        JSON: (json.dumps(answer, indent=1, sort_keys=True) + "\n").encode(),
        TEXT: ("\n\n".join(one.text() for one in shown_tables) + "\n").encode(),
        MARKDOWN: "\n".join(one.markdown() for one in shown_tables).encode(),
    }
    outfiles.write_changed(files, out)
    answer["files"] = sorted({*files, *([ORIGINAL] if wanted.is_named else [])})
    is_exact = (firmware["equal"], firmware["board_equal"]) == (firmware["images"], firmware["board_images"])
    return answer, text(answer, shown_tables, wanted.board, out), 0 if is_exact and not misses else 1


def _describe(work: Work, result: SearchResult) -> dict[str, Any]:
    """Describes what was split and how, as plain values."""
    choice, wanted = result.chosen.choice, work.wanted
    return {
        "schema": SCHEMA,
        "network": Path(wanted.network).name,
        "board": Path(wanted.board).name,
        "structure": choice.key(),
        "factors": list(choice.factors),
        "average_factor": choice.average,
        "drop": result.drop,
        "prices": {key: price.data() for key, price in sorted(work.prices.prices.items())},
        "settings": wanted.settings.data(),
    }


def int8_file(network: Path, data: Data, settings: Settings) -> bytes:
    """Converts a .keras file to .tflite, calibrated on training images. Equal inputs give equal bytes."""
    order = np.random.default_rng((settings.seed, 3)).permutation(len(data.train_x))[:CALIBRATION]
    images = training.inputs(data.train_x[np.sort(order)], settings.pixels())
    return backend.int8_model(backend.load(network), images)


def _plan(tflite: Path, wanted: SplitSettings, result: SearchResult) -> tuple[dict[str, Any] | None, str]:
    """Returns the answer to a request of kind `plan` with the goals as limits, and a text.

    The answer is None if there is no plan. Otherwise it also has `code_bytes` (see pricing.py). The text says
    which goal is missed, or is empty.
    """
    goals = {"ram": wanted.goals.ram, "max_flash": wanted.goals.flash, "max_ms": wanted.goals.max_ms}
    options = {name: value for name, value in goals.items() if value is not None}
    request = {"kind": "plan", "model": str(tflite), "board": wanted.board, "options": options}
    try:
        answer = _ask(request)
    except PlanError as error:
        return None, result.misses or error.text
    target, prepared = prepare_for(request, open_session())
    code = code_bytes(*choose_plan(prepared), target, open_session())
    flash, limit = answer["flash_bytes"] + (code or 0), wanted.goals.flash
    misses = result.misses
    if not misses and limit is not None and flash > limit:
        misses = f"flash: the weight image with code takes {flash:,} bytes, there are {limit:,}"
    return {**answer, "code_bytes": code}, misses


def _measure(work: Work, result: SearchResult, plan: Path | None) -> tuple[SplitAccuracy, SplitFirmware]:
    """Measures the accuracy of the chosen network as Keras model, int8 model and firmware.

    It also counts for how many images the firmware's outputs are exact. A few images run in the board's
    emulator, through firmware that is built from the written plan, if there is one.
    """
    settings, tflite, network = work.wanted.settings, work.wanted.out / TFLITE, result.chosen.network
    images = _test_images(work.data, settings, work.wanted.images)
    float_accuracy = training.accuracy(backend.load(network), *images, settings)
    on_host = _validate(tflite, "host", images, settings)
    on_board, why = {"inputs": 0, "inputs_equal": 0}, ""
    try:
        board_images = _test_images(work.data, settings, ON_BOARD)
        on_board = _validate(tflite, work.wanted.board, board_images, settings, plan)["firmware"]
    except BuildtoolError as error:
        why = error.text
    labels = images[1]
    return {
        "held_out": result.chosen.accuracy,
        "test": result.chosen.test,
        "original_test": result.original.test,
        "images": len(labels),
        "float": float_accuracy,
        "int8": on_host["accuracy"]["reference"]["top1"],
        "firmware": on_host["accuracy"]["firmware"]["top1"],
        "reference": on_host["reference"]["text"],
        "guessing": float(np.bincount(labels).max()) / len(labels),
    }, {
        "images": len(labels),
        "equal": on_host["firmware"]["inputs_equal"],
        "board_images": on_board["inputs"],
        "board_equal": on_board["inputs_equal"],
        "board_not_run": why,
    }


def _test_images(data: Data, settings: Settings, limit: int) -> Labelled:
    """Returns at most `limit` test images and their classes, chosen at random with the seed."""
    if limit >= len(data.test_x):
        return data.test_x, data.test_y
    order = np.sort(np.random.default_rng((settings.seed, 4)).permutation(len(data.test_x))[:limit])
    return data.test_x[order], data.test_y[order]


def _validate(
    tflite: Path, board: str, images: Labelled, settings: Settings, plan: Path | None = None
) -> dict[str, Any]:
    """Returns the answer to a request of kind `validate` in which the firmware runs on all images."""
    x, y = images
    with scratch() as folder:
        data = Path(folder) / "images.npz"
        np.savez(data, x=x, labels=y)
        request = {"kind": "validate", "model": str(tflite), "board": board, "data": str(data)}
        by_plan = None if plan is None else str(plan)
        return _ask({**request, "normalise": settings.normalise, "through_firmware": len(x), "plan": by_plan})


def _ask(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers a request in this process."""
    located = Located(request)
    try:
        return handle_cached(located.request, open_session())
    except BuildtoolError as error:
        raise located.restore_path(error) from None


# ---- tables: the two of the published method, with the board's RAM, flash and time ------------------


ORDER = ("given", "original", "chosen", "second", "naive", "shared")  # of Table 2
_NETWORKS = (
    *("network", "factors", "mean K", "top-1 %", "drop", "convolutions", "fusion", "share", "MACs"),
    *("layerwise", "streamed", "weights", "flash", "ms"),
)
_FRONT = (
    *("structure", "accuracy %", "test %"),
    *("RAM streamed", "F of that RAM", "weights", "flash", "cost", "ms"),
)
_NAMES = {"chosen": "I", "second": "II"}  # the published ones
_NOTES = (
    "given: as it came; original: the same, trained on as long as the others; I: the split that was found",
    "II: one factor smaller; naive: without fusion; shared: the first convolutions whole",
    "share, MACs: of the original's",
    "layerwise, streamed: bytes of the arena, layer by layer and at the least",
    "weights: bytes of the weight image; flash: with code and constants, at most",
)
Row = tuple[str, Candidate, Counts, Price | None]  # a network of Table 2; None: the planner refuses it


def tables(work: Work, searches: Sequence[SearchResult], result: SearchResult) -> tuple[Table, ...]:
    """Returns Table 1 of each search, Table 2 for `result`, and a table of all networks' Pareto front."""
    steps, goals = steps_of(work.base), work.wanted.goals

    def price(choice: Choice) -> Price | None:
        with contextlib.suppress(BuildtoolError):  # the planner refuses it
            return work.prices.price(choice)
        return None

    def row(name: str, one: Candidate) -> Row:
        return name, one, counts_in(split_steps(steps, work.blocks, one.choice)), price(one.choice)

    networks = {"given": result.original, **result.others, "chosen": result.chosen}
    rows = [row(name, networks[name]) for name in ORDER if name in networks]
    refused = {name: why for one in searches for name, why in one.refused.items()}
    front_rows: list[tuple[Cell, ...]] = []
    for one in front([one for each in searches for one in each.front]):
        figures: tuple[Cell, ...] = (None,) * 6
        if needs := price(one.choice):
            plan = needs.best(goals)
            figures = (needs.least.bytes, needs.least.f, needs.flash, _flash(needs, goals))
            figures += (plan.cost, plan.milliseconds)
        front_rows.append((one.choice.key(), 100 * one.accuracy, 100 * one.test, *figures))
    return (
        *(by_block(one, work.wanted.factors) for one in searches),
        side_by_side(rows, result.original, refused, goals),
        Table("Accuracy against RAM, flash and cost", _FRONT, tuple(front_rows)),
    )


def by_block(result: SearchResult, factors: Sequence[int]) -> Table:
    """Returns Table 1: for each block, the accuracy on held-out images by factor, and the kept factor.

    `factors`: the factors that have a column. Accuracies are in percent.
    """
    columns = ("block", "channels", "K = 1", *(f"K = {factor}" for factor in factors), "kept")
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for step in result.steps:
        block = step.block
        if step.baseline is None:
            notes.append(f"{block.name}: not split, {step.why}")
            rows.append((block.name, block.channels, None, *(None for _ in factors), 1))
            continue
        cells: dict[int, Cell] = {}
        for attempt in step.tried:
            if attempt.candidate is None:
                notes.append(f"{block.name}, K = {attempt.factor}: not trained, {attempt.why}")
            cells[attempt.factor] = 100 * attempt.candidate.accuracy if attempt.candidate else "-"
        accuracies = [cells.get(factor) for factor in factors]
        rows.append((block.name, block.channels, 100 * step.baseline.accuracy, *accuracies, step.kept))
    return Table("Accuracy in % by block and splitting factor K", columns, tuple(rows), tuple(notes))


def side_by_side(
    networks: Sequence[Row], original: Candidate, refused: Mapping[str, str], goals: Goals
) -> Table:
    """Returns Table 2: each network's accuracy on the test images, parameters, work, memory and time.

    Losses of accuracy are relative to `original`.
    """
    whole = next((counts for _, one, counts, _ in networks if one.choice.is_whole), networks[0][2])
    rows: list[tuple[Cell, ...]] = []
    for name, one, counts, price in networks:
        choice, total = one.choice, counts.convolutions + counts.fusion
        factors = choice.text + ("" if choice.is_whole else f" {choice.first}")
        accuracies = (100 * one.test, 100 * (original.test - one.test))
        share = total / whole.convolutions if whole.convolutions else None
        work = (counts.convolutions, counts.fusion, share, counts.macs / whole.macs if whole.macs else None)
        needs: tuple[Cell, ...] = (None,) * 5
        if price is not None:
            needs = (price.layerwise, price.least.bytes, price.flash, _flash(price, goals))
            needs += (price.best(Goals()).milliseconds,)
        rows.append((_NAMES.get(name, name), factors, choice.average, *accuracies, *work, *needs))
    missing = (f"{_NAMES.get(name, name)}: {why}" for name, why in sorted(refused.items()))
    return Table("Networks side by side", _NETWORKS, tuple(rows), (*_NOTES, *missing))


def _flash(price: Price, goals: Goals) -> Cell:
    """Returns the bytes of flash of the best plan within the goals; None if its code's size is unknown."""
    best = price.best(goals)
    return None if best.code is None else price.image(best)
