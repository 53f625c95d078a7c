"""The options that a request has under `options`: of planning, and of counting without a board."""

from __future__ import annotations

import enum
from typing import Any

from buildtool.base.modes import Counted, Image, InPlace, Objective, Order, Strategy, WeightsIn
from buildtool.options.parsers import MOST_BATCH, chosen, limit, pixels, sides, size, text, whole, work
from buildtool.options.types import Group, Option, Parser

LIMITED = (Strategy.BEST, Strategy.MSF_CNN, Strategy.XCORE_STRIPS)  # strategies that may repeat work


def _planning(name: str, metavar: str, sentence: str, parse: Parser, **more: Any) -> Option:
    return Option(name, metavar, sentence, parse, Group.PLANNING, **more)


def _mode(name: str, sentence: str, modes: type[enum.StrEnum], **more: Any) -> Option:
    return chosen(name, "MODE", sentence, modes, Group.PLANNING, **more)


NESTED_OPTIONS: tuple[Option, ...] = (
    _mode(
        "strategy",
        "Who decides how the network runs: best (the best plan within the limits), layerwise (one operator "
        "after the other), msf-cnn or xcore-strips (as these systems plan).",
        Strategy,
        default="best",
    ),
    _mode(
        "objective",
        "What to minimise: cost (the target's estimate) or ram (bytes of the arena).",
        Objective,
        default="cost",
    ),
    _planning(
        "ram",
        "BYTES",
        "Upper limit for the arena, in bytes: 65536, 64K.",
        size,
        default="the board's memory",
    ),
    _planning(
        "max_f",
        "F",
        "Upper limit for the work, as a multiple of the network's own: 1.1 allows a tenth more.",
        work,
        default="none; 2 for the front and for objective ram",
        strategies=LIMITED,
    ),
    _planning(
        "max_cost",
        "COST",
        "Upper limit for the estimated cost, in the unit of the board's costs (cycles or instructions).",
        limit,
        default="none",
    ),
    _planning(
        "max_ms",
        "MS",
        "Upper limit for the estimated time, in milliseconds: of a cost in cycles, at the board's clock.",
        limit,
        default="none",
    ),
    _planning(
        "max_flash",
        "BYTES",
        "Upper limit for the weight image, in bytes.",
        size,
        default="the board's memory",
    ),
    _mode(
        "in_place",
        "Which operators may write over their dying input: rows (those that work row by row), elementwise "
        "(those that work element by element) or none.",
        InPlace,
        default="rows",
    ),
    _mode(
        "image",
        "What happens to the network's input: overwritable (its memory is used again), resident (it is still "
        "there after the invoke) or stream (it is delivered row by row and is never whole in RAM).",
        Image,
        default="overwritable",
    ),
    _planning(
        "segments",
        "LIST",
        "The segments of xcore-strips: operators of the file and numbers of strips, such as 0-6x20,7-14x10.",
        text,
        default="the best ones that are found",
        strategies=(Strategy.XCORE_STRIPS,),
    ),
    _mode(
        "order",
        "The order of the operators: given (as the file has them), better (another one that a short search "
        "finds, in which less is alive, where that makes the better plan) or best (after a long search).",
        Order,
        default="better; given where a network is only counted",
    ),
    _planning(
        "hand_off",
        "PIXELS",
        "The least number of pixels that go from operator to operator inside a group (more are tried, too), "
        "or row for whole rows only.",
        pixels,
        default="1",
        strategies=(Strategy.BEST,),
    ),
    chosen(
        "weights",
        "MODE",
        "Where the weights are: flash (they are not counted as memory) or load (they are in memory from "
        "their first to their last reader).",
        WeightsIn,
        Group.COUNTING,
        "flash",
    ),
    chosen(
        "operators",
        "MODE",
        "Which operators are counted: separate (all that the file has) or fused (batch normalisation and "
        "activation are part of the operator before them).",
        Counted,
        Group.COUNTING,
        "separate",
    ),
    Option(
        "batch",
        "N",
        "The number of images that are computed at a time.",
        whole(1, MOST_BATCH),
        Group.COUNTING,
        number=True,
        default="the file's; 1 for Darknet",
    ),
    Option(
        "size",
        "HxW",
        "Rows and columns of the image.",
        sides,
        Group.COUNTING,
        default="the file's",
    ),
)
