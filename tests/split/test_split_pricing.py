"""What a structure needs on a board: missed goals, tables, and refusals of the command."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from buildtool.fronts.cli import main as cli
from buildtool.options import OPTIONS, Group
from buildtool.split import run as splitting
from buildtool.split.pricing import Point, Price
from buildtool.split.run import rank
from buildtool.split.search import Attempt, Candidate, SearchResult, Step
from buildtool.split.settings import Goals, read_settings
from buildtool.split.types import Block, Choice, Counts

FRONT = (Point(1000, 1.5, 90_000.0, 9.0), Point(2000, 1.0, 60_000.0, 6.0), Point(9000, 1.0, 30_000.0, 3.0))
PRICE = Price("board", FRONT, 3000, 5000, 700, "cycles", 4096, 8192)


def test_a_point_of_the_front_within_every_goal_is_enough():
    assert PRICE.missed_goal(Goals()) == ""
    assert PRICE.missed_goal(Goals(ram=1000, flash=5000, max_ms=9.0)) == ""
    assert PRICE.missed_goal(Goals(ram=2000, max_ms=6.0)) == ""


WITH_CODE = (Point(1000, 1.5, 90_000.0, 9.0, 3000), Point(2000, 1.0, 60_000.0, 6.0, 2000))
CODED = replace(PRICE, ram=WITH_CODE, code_there=4000)
IMAGE = "flash: the weight image with code takes"


@pytest.mark.parametrize(
    ("price", "goals", "why"),
    [
        (CODED, Goals(flash=8000), ""),
        (CODED, Goals(flash=7000), ""),
        (CODED, Goals(flash=6999), f"{IMAGE} 7,000 bytes, there are 6,999"),
        (CODED, Goals(ram=1000, flash=7999), f"{IMAGE} 8,000 bytes, there are 7,999"),
        (PRICE, Goals(ram=999), "RAM: the smallest arena takes 1,000 bytes, there are 999"),
        (PRICE, Goals(flash=4999), "flash: the weight image takes 5,000 bytes, there are 4,999"),
        (PRICE, Goals(ram=1999, max_ms=8.9), "time: 9.0 ms at least, 8.9 are allowed"),
        (PRICE, Goals(max_ms=5.9), "time: 6.0 ms at least, 5.9 are allowed"),  # 3 ms need more RAM
    ],
)
def test_a_verdict_says_what_is_exceeded_and_by_how_much(price, goals, why):
    """The goal for flash counts weights and code of a plan that meets the other goals."""
    assert price.missed_goal(goals) == why


def test_code_has_to_go_beside_the_weights_into_the_boards_flash():
    assert replace(CODED, code_there=2000).missed_goal(Goals()) == ""
    assert "code beside the weight image takes 2,000" in replace(CODED, code_there=1999).missed_goal(Goals())


def test_the_best_plan_keeps_the_goal_for_flash():
    both = (CODED.ram[0]._replace(cost=1.0), CODED.ram[1])
    assert replace(CODED, ram=both).best(Goals()).bytes == 1000
    assert replace(CODED, ram=both).best(Goals(flash=7500)).bytes == 2000


def test_a_goal_in_milliseconds_is_refused_where_costs_are_no_time():
    timeless = Price("board", (Point(1000, 1.0, 5.0, None),), None, 10, 5, "instructions", 4096, 8192)
    assert timeless.missed_goal(Goals()) == ""
    assert "is unknown" in timeless.missed_goal(Goals(max_ms=1e9))


def test_the_cost_is_that_of_the_best_plan_with_room():
    assert PRICE.best(Goals()) == FRONT[1]
    assert PRICE.best(Goals(ram=1500)) == FRONT[0]
    assert PRICE.best(Goals(ram=10)) == FRONT[0]  # nothing fits, so the plan with the least memory


# ---- tables ----------------------------------------------------------------------------------------

BLOCKS = (Block(0, "block1", ("a",), 8, 8), Block(1, "block2", ("b",), 1, 1))


def candidate(factors, accuracy):
    figures = {"ram": 1000.0}
    return Candidate(Choice(factors), accuracy, accuracy - 0.01, Path("x"), str(factors), figures)


def found():
    whole, split = candidate((1, 1), 0.9), candidate((2, 1), 0.897)
    first = Step(BLOCKS[0], whole, (Attempt(2, split, 0.3, True), Attempt(4, why="RAM: too much")), 2)
    second = Step(BLOCKS[1], None, (), 1, "its narrowest layer has 1 channel")
    return SearchResult(
        whole, (first, second), split, {"original": whole}, {"naive": "no"}, (whole, split), ""
    )


def test_table_1_has_accuracies_by_block_and_factor_and_says_what_was_not_trained():
    table = splitting.by_block(found(), (2, 4))
    assert table.rows == (("block1", 8, 90.0, 89.7, "-", 2), ("block2", 1, None, None, None, 1))
    assert table.notes == (
        "block1, K = 4: not trained, RAM: too much",
        "block2: not split, its narrowest layer has 1 channel",
    )
    assert "| block1 | 8 | 90.00 | 89.70 | - | 2 |" in table.markdown()
    assert table.data()["rows"][0]["K = 2"] == 89.7


def test_table_2_counts_against_the_original():
    it = found()
    rows = [
        ("given", it.original, Counts(1000, 0, 4000), PRICE),
        ("chosen", it.chosen, Counts(400, 100, 1000), None),
    ]
    table = splitting.side_by_side(rows, it.original, it.refused, Goals())
    by_title = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["share"] for row in by_title] == [1.0, 0.5]
    assert [row["MACs"] for row in by_title] == [1.0, 0.25]
    assert by_title[0]["streamed"] == 1000
    assert by_title[1]["streamed"] is None
    assert by_title[0]["flash"] is None  # code is not counted
    coded = splitting.side_by_side([(*rows[0][:3], CODED)], it.original, {}, Goals(flash=7500))
    assert dict(zip(coded.columns, coded.rows[0], strict=True))["flash"] == 7000
    assert by_title[1]["drop"] == pytest.approx(0.3)
    assert "naive: no" in table.notes


# ---- the command -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("net.tflite --data d -b cortex-m4", "'net.tflite' is not a network that can be split"),
        ("vgg16 --data d -b cortex-m4 --factors 4,2", "is not a list of rising numbers from 2 to 64"),
        ("net.keras --data d -b cortex-m4 --width 2", "no effect on a network that is given as a file"),
        ("vgg16 -b cortex-m4", "--data"),
        ("vgg16 --data d -b cortex-m4 --max-drop -1", "is not a number of points from 0 to 100"),
        ("vgg16 --data d -b cortex-m4 --width 1e9", "a multiple of the published channels up to 16"),
        ("vgg16 --data d -b cortex-m4 --first none", "is not one of slice, full, both"),
        ("out/split.keras --data d -b cortex-m4 -o out", "a result would overwrite the network's file"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_loaded(words, said, capsys):
    assert cli.run(["split", *words.split()]) == 2
    assert said in capsys.readouterr().err


def test_the_defaults_that_the_table_says_are_those_of_a_training():
    request = {"kind": "split", "network": "vgg16", "train_data": "d", "board": "host"}
    of_split = [one for one in OPTIONS if one.group is Group.SPLIT]
    said = {one.name: one.default for one in of_split if one.default}
    said.pop("flash")  # the board's memory
    numbers = {one.name for one in of_split if one.number}
    given = {name: int(text) if name in numbers else text for name, text in said.items()}
    assert read_settings({**request, **given}) == read_settings(request)


def test_of_two_searches_the_one_that_meets_the_goals_then_the_smaller_then_the_better_is_taken():
    prices = {"2-1,slice": replace(PRICE, flash=900), "2-1,full": replace(PRICE, flash=800)}
    pricer = SimpleNamespace(price=lambda choice: prices[choice.key()])
    by_slice = found()
    whole = replace(by_slice.chosen, choice=Choice((2, 1), "full"))
    by_full = replace(by_slice, chosen=whole)
    assert min((by_slice, by_full), key=lambda one: rank(one, pricer)) is by_full
    missing = replace(by_full, misses="RAM")
    assert min((by_slice, missing), key=lambda one: rank(one, pricer)) is by_slice
    prices["2-1,full"] = prices["2-1,slice"]
    better = replace(by_full, chosen=replace(whole, accuracy=0.95))
    assert min((by_slice, better), key=lambda one: rank(one, pricer)) is better
