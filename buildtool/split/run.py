"""One split from beginning to end: the base, the search by the planner's prices, and what comes of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from buildtool.api import answered, kept_session
from buildtool.base import outfiles
from buildtool.base.digests import sha256
from buildtool.base.errors import BuildtoolError, PlanError
from buildtool.base.locks import scratch
from buildtool.client.files import Located
from buildtool.fronts.texts.split import text
from buildtool.plan.choose.choose import chosen
from buildtool.schema import SCHEMA
from buildtool.schema.splits import SplitAccuracy, SplitFirmware, SplitPlan
from buildtool.split import backend, convert, training
from buildtool.split.blocks import find_blocks
from buildtool.split.data import Data, Labelled, check, load
from buildtool.split.networks import by_name
from buildtool.split.pricing import Pricer, code_bytes, prepared_for
from buildtool.split.records import Records, key_of
from buildtool.split.search import CHECKPOINT, Found, Work, search
from buildtool.split.tables import tables
from buildtool.split.types import Choice
from buildtool.split.wanted import KERAS, ORIGINAL, Settings, Wanted

if TYPE_CHECKING:
    import keras

Said = tuple[dict[str, Any], str, int]  # the answer, its text, the exit status
RECORDS, TFLITE, PLAN = "records.json", "split.tflite", "split.plan"
JSON, TEXT, MARKDOWN = "split.json", "tables.txt", "tables.md"
CALIBRATION = 200  # training images whose activations give the scales
ON_BOARD = 16  # test images that go through the board's own firmware in its emulator
HOST = "host"  # the board that is this machine


def run(wanted: Wanted, progress: Callable[[str], None]) -> Said:
    """Searches, and writes everything into `wanted.out`. The same call goes on where an earlier one ended.

    The exit status is 1 where a goal is missed, or the firmware is not exact. Raises UsageError for data and
    networks that do not go together, PlanError where no structure can meet the goals, ToolError where Keras
    or TensorFlow is not installed.
    """
    with convert.silenced():
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
        work = replace(work, base=_trained(work))
    searches = [search(work, first) for first in wanted.firsts]
    return _written(work, searches, min(searches, key=lambda one: rank(one, prices)))


def rank(found: Found, prices: Pricer) -> tuple[bool, int, float]:
    """Of searches the one that meets the goals, then the smaller network, then the more accurate one."""
    return bool(found.misses), prices.price(found.chosen.choice).flash, -found.chosen.accuracy


# ---- before the search -----------------------------------------------------------------------------


def _refuse_hopeless(work: Work) -> None:
    """PlanError where no structure that is looked at meets the goals: before hours of training."""
    work.progress("planning the candidates")
    # Errors of board and network are said first.
    work.prices.price(Choice.whole(len(work.blocks), work.wanted.firsts[0]))
    whys = []
    for choice in _likely(work):
        why = work.prices.missed(choice)
        if not why:
            return
        whys.append(f"{choice.key()}: {why}")
    text = f"no structure of {len(whys)} meets the goals on {work.wanted.board}; {whys[-1]}"
    raise PlanError(text, hint="larger limits, larger factors, or a narrower network")


def _likely(work: Work) -> Iterator[Choice]:
    """The whole network, one factor for all blocks, then factors chosen block by block for the least RAM."""
    for first in work.wanted.firsts:
        best = whole = Choice.whole(len(work.blocks), first)
        yield whole
        for factor in work.wanted.factors:
            yield replace(whole, factors=tuple(factor if one.allows(factor) else 1 for one in work.blocks))
        for block in work.blocks:
            tried = [best.with_factor(block.index, factor) for factor in (1, *work.allowed(block))]
            best = min(tried, key=lambda one: work.prices.price(one).least.bytes)
            yield best


def _trained(work: Work) -> keras.Model:
    """The named network trained on the data; taken from the output folder where it was trained before."""
    settings, records = work.wanted.settings, work.records
    path, checkpoint = work.wanted.out / ORIGINAL, records.networks / f"original{CHECKPOINT}"
    parts = {"base": backend.digest(work.base), "data": work.data.digest(), "settings": settings.data()}
    key = key_of({**parts, "backend": backend.prepare().backend.backend()})
    record = records.get(key)
    if record is None or not path.is_file() or record.get("file") != sha256(str(path)):
        found = training.train(
            work.base, work.data, settings, checkpoint, lambda said: work.progress(f"original: {said}")
        )
        backend.save(work.base, path)
        kept = {"accuracy": found.accuracy, "seconds": round(found.seconds, 1), "epochs": found.epochs}
        records.put(key, {**parts, **kept, "what": "original", "file": sha256(str(path))})
    checkpoint.unlink(missing_ok=True)
    return backend.load(path)


# ---- what comes of it ------------------------------------------------------------------------------


def _written(work: Work, searches: Sequence[Found], found: Found) -> Said:
    """Writes the network of `found`, its plan and the tables of all searches; their figures."""
    wanted, out = work.wanted, work.wanted.out
    made = tables(work, searches, found)
    files = {KERAS: found.chosen.network.read_bytes()}
    outfiles.write_changed(files, out)
    work.progress("converting to int8")
    files[TFLITE] = int8_file(found.chosen.network, work.data, wanted.settings)
    outfiles.write_changed(files, out)
    work.progress("planning the split network")
    planned, misses = _planned(out / TFLITE, wanted, found)
    if planned is None:
        (out / PLAN).unlink(missing_ok=True)
    else:
        files[PLAN] = planned["locked"]
        outfiles.write_changed(files, out)
    work.progress("test images through the int8 network and its firmware")
    accuracy, firmware = _measured(work, found, out / PLAN if planned is not None else None)
    choice = found.chosen.choice
    answer = {
        "schema": SCHEMA,
        "network": Path(wanted.network).name,
        "board": Path(wanted.board).name,
        "structure": choice.key(),
        "factors": list(choice.factors),
        "average_factor": choice.average,
        "drop": found.drop,
        "misses": misses,
        "accuracy": accuracy,
        "firmware": firmware,
        "plan": {name: planned[name] for name in SplitPlan.__annotations__} if planned else None,
        "prices": {key: price.data() for key, price in sorted(work.prices.prices.items())},
        "settings": wanted.settings.data(),
        "tables": [one.data() for one in made],
    }
    files |= {
        JSON: (json.dumps(answer, indent=1, sort_keys=True) + "\n").encode(),
        TEXT: ("\n\n".join(one.text() for one in made) + "\n").encode(),
        MARKDOWN: "\n".join(one.markdown() for one in made).encode(),
    }
    outfiles.write_changed(files, out)
    answer["files"] = sorted({*files, *([ORIGINAL] if wanted.is_named else [])})
    is_exact = (firmware["equal"], firmware["board_equal"]) == (firmware["images"], firmware["board_images"])
    return answer, text(answer, made, wanted.board, out), 0 if is_exact and not misses else 1


def int8_file(network: Path, data: Data, settings: Settings) -> bytes:
    """The .tflite file of a .keras file, calibrated on training images: equal inputs give equal bytes."""
    order = np.random.default_rng((settings.seed, 3)).permutation(len(data.train_x))[:CALIBRATION]
    images = training.inputs(data.train_x[np.sort(order)], settings.pixels())
    return convert.int8_model(backend.load(network), images)


def _planned(tflite: Path, wanted: Wanted, found: Found) -> tuple[dict[str, Any] | None, str]:
    """The answer to `plan` within the goals, and why the network misses them ("": it does not).

    Beside it `code_bytes`: of flash, at most, by what is recorded (None: nothing is).
    """
    goals = {"ram": wanted.goals.ram, "max_flash": wanted.goals.flash, "max_ms": wanted.goals.max_ms}
    options = {name: value for name, value in goals.items() if value is not None}
    request = {"kind": "plan", "model": str(tflite), "board": wanted.board, "options": options}
    try:
        answer = _asked(request)
    except PlanError as error:
        return None, found.misses or error.text
    target, prepared = prepared_for(request, kept_session())
    code = code_bytes(*chosen(prepared), target, kept_session())
    image, most = answer["flash_bytes"] + (code or 0), wanted.goals.flash
    misses = found.misses
    if not misses and most is not None and image > most:
        misses = f"flash: the weight image with code takes {image:,} bytes, there are {most:,}"
    return {**answer, "code_bytes": code}, misses


def _measured(work: Work, found: Found, plan: Path | None) -> tuple[SplitAccuracy, SplitFirmware]:
    """The accuracy of the chosen network in all its forms, and how many outputs of its firmware are equal.

    A few images go through the firmware for the board, in its emulator, by the plan that is written.
    """
    settings, tflite, network = work.wanted.settings, work.wanted.out / TFLITE, found.chosen.network
    x, y = _tested(work.data, settings, work.wanted.images)
    floats = training.accuracy(backend.load(network), x, y, settings)
    here = _validated(tflite, HOST, x, y, settings)
    there, why = {"inputs": 0, "inputs_equal": 0}, ""
    try:
        few = _tested(work.data, settings, ON_BOARD)
        there = _validated(tflite, work.wanted.board, *few, settings, plan)["firmware"]
    except BuildtoolError as error:
        why = error.text
    return {
        "held_out": found.chosen.accuracy,
        "test": found.chosen.test,
        "original_test": found.original.test,
        "images": len(x),
        "float": floats,
        "int8": here["accuracy"]["reference"]["top1"],
        "firmware": here["accuracy"]["firmware"]["top1"],
        "reference": here["reference"]["text"],
        "guessing": float(np.bincount(y).max()) / len(y),
    }, {
        "images": len(x),
        "equal": here["firmware"]["inputs_equal"],
        "board_images": there["inputs"],
        "board_equal": there["inputs_equal"],
        "board_not_run": why,
    }


def _tested(data: Data, settings: Settings, images: int) -> Labelled:
    """At most so many test images, chosen at random by the seed, and their classes."""
    if images >= len(data.test_x):
        return data.test_x, data.test_y
    order = np.sort(np.random.default_rng((settings.seed, 4)).permutation(len(data.test_x))[:images])
    return data.test_x[order], data.test_y[order]


def _validated(
    tflite: Path,
    board: str,
    x: npt.NDArray[np.uint8],
    y: npt.NDArray[np.int64],
    settings: Settings,
    plan: Path | None = None,
) -> dict[str, Any]:
    """The answer to `validate` on images and their classes, all of which go through the firmware."""
    stream = io.BytesIO()
    np.savez(stream, x=x, labels=y)
    with scratch() as folder:
        path = Path(folder) / "images.npz"
        path.write_bytes(stream.getvalue())
        return _asked(
            {
                "kind": "validate",
                "model": str(tflite),
                "board": board,
                "data": str(path),
                "normalise": settings.normalise,
                "through_firmware": len(x),
                "plan": str(plan) if plan is not None else None,
            }
        )


def _asked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The service's answer to a request, in this process."""
    located = Located(request)
    try:
        return answered(located.request, kept_session())
    except BuildtoolError as error:
        raise located.restored(error) from None
