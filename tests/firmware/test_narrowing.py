"""Which weights are stored in four bits, and what happens when they no longer fit."""

import itertools
import json

import numpy as np
import pytest
from flatfiles import FileTensor
from hypothesis import given
from hypothesis import strategies as st
from narrownets import narrow_network, with_narrow_weights
from samplefiles import Sheet

from buildtool.api import handle
from buildtool.base.errors import PlanError
from buildtool.client.planned import emitted_lines
from buildtool.firmware.narrowing import Choice, choose
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.locked import from_text
from buildtool.plan.types import Narrowed
from buildtool.zoo.drawn import NetBuilder

BOARD = "cortex-m4"
FLASH = {"objective": "flash"}


def asked(kind, model, options=None, **others):
    return handle({"kind": kind, "model": model, "board": BOARD, "options": options or {}, **others})


def file(graph, name="net.tflite"):
    return {"name": name, "data": write_model(graph)}


def narrowed(model, options):
    return from_text(asked("plan", model, options)["locked"]).plan.narrowed


def test_weights_are_stored_in_four_bits_only_where_flash_has_to_be_small():
    model = file(narrow_network())
    before, least = asked("plan", model), asked("plan", model, FLASH)
    assert before["four_bits"] is None and least["four_bits"]["operators"] == 6
    assert least["flash_bytes"] == before["flash_bytes"] - (
        least["four_bits"]["total_bytes"] - least["four_bits"]["bytes"]
    )
    assert before["cost"] < least["cost"]
    assert asked("plan", model, {"max_flash": before["flash_bytes"]})["four_bits"] is None


@given(
    pairs=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 30)), max_size=9), excess=st.integers(1, 4000)
)
def test_the_choice_that_saves_enough_has_the_least_cost(pairs, excess):
    choices = [Choice(Narrowed(i, 16, 16), 16 * saved, cost) for i, (saved, cost) in enumerate(pairs)]
    enough = [
        some
        for count in range(len(choices) + 1)
        for some in itertools.combinations(choices, count)
        if sum(one.saved for one in some) >= excess
    ]
    chosen = choose(choices, excess)
    assert [one.narrowed.op for one in chosen] == sorted(one.narrowed.op for one in chosen)
    if enough:
        assert sum(one.saved for one in chosen) >= excess
        assert sum(c.cost for c in chosen) == min(sum(c.cost for c in some) for some in enough)
    else:
        assert chosen == choices


@pytest.mark.slow
def test_a_limit_narrows_as_much_as_it_requires():
    model = file(narrow_network())
    before, least = asked("plan", model), asked("plan", model, FLASH)
    for limit in range(least["flash_bytes"], before["flash_bytes"], 1500):
        answer = asked("plan", model, {"max_flash": limit})
        assert answer["flash_bytes"] <= limit
        assert answer["cost"] <= least["cost"]
    little = asked("plan", model, {"max_flash": before["flash_bytes"] - 1})
    assert little["four_bits"]["operators"] == 1
    limit = least["flash_bytes"] - 1
    with pytest.raises(PlanError, match=f"requires {limit + 1:,} bytes, {limit:,} are allowed") as caught:
        asked("plan", model, {"max_flash": limit})
    assert dict(caught.value.hints[0].settings) == {"max_flash": limit + 1}


def int4_file(seed):
    """A network of one layer, whose filter has four bits in the file."""
    sheet, shape = Sheet(seed), (32, 3, 3, 16)
    x = sheet.add(FileTensor((1, 7, 6, 16), "int8", scale=0.05, zero=3))
    values = sheet.rng.integers(-7, 8, shape).reshape(-1).astype(np.uint8) & 15
    filters = sheet.add(FileTensor(shape, "int4", values[::2] | values[1::2] << 4, [0.02] * 32, [0] * 32, 0))
    options = ("Conv2DOptions", {"Padding": 0, "StrideH": 1, "StrideW": 1})
    y = sheet.apply("CONV_2D", [x, filters, sheet.bias(32)], (1, 7, 6, 32), *options, dtype="int8", scale=0.3)
    return {"name": "four.tflite", "data": sheet.bytes([x], [y])}


@pytest.mark.slow
def test_what_serves_all_weights_of_a_structure_counts_on_files_of_int4_alone():
    every = {**FLASH, "simplify": "structure"}
    assert narrowed(file(narrow_network()), every) == ()
    plan = asked("plan", int4_file(1), every)
    assert plan["four_bits"]["operators"] == 1
    before, after = (asked("emit", int4_file(seed), every)["files"] for seed in (1, 2))
    assert before["four.plan"] == after["four.plan"] and before["four.c"] == after["four.c"]
    assert len(before["four_weights.bin"]) == len(after["four_weights.bin"])
    assert before["four_weights.bin"] != after["four_weights.bin"]
    checked = asked("validate", int4_file(1), every, tensors=True)
    assert checked["exact"]


def test_a_locked_plan_serves_weights_of_four_bits_and_refuses_others(tmp_path):
    model = file(narrow_network(ends=(-7, 7)))
    lock = {"plan": {"name": "net.plan", "data": asked("plan", model, FLASH)["locked"]}}
    other = with_narrow_weights(narrow_network(), np.random.default_rng(5), (-7, 7))
    files = asked("emit", file(other), **lock)["files"]
    assert files["net.c"] == asked("emit", model, FLASH)["files"]["net.c"]
    wide = with_narrow_weights(narrow_network(), np.random.default_rng(5), (-9, 7))
    with pytest.raises(PlanError, match=r"stores these weights in four bits, in [\d,]+ bytes; they need"):
        asked("emit", file(wide), **lock)


@pytest.mark.parametrize(
    "change",
    [
        *({"op": 99}, {"op": -1}, {"op": 5}, {"op": 1}, {"op": 0, "expanded": 0}, {"op": 0, "expanded": 71}),
        *({"op": 0, "stored": -16}, {"op": 0, "stored": 10433}, {"op": 0, "stored": 1 << 40}),
    ],
)
def test_marks_that_a_network_cannot_have_are_refused(change):
    content = json.loads(asked("plan", file(narrow_network()), FLASH)["locked"])
    marks = content["plan"]["narrowed"]
    marks[0] |= change
    with pytest.raises(PlanError, match="which is impossible here"):
        asked("emit", file(narrow_network()), plan={"name": "net.plan", "data": json.dumps(content).encode()})


@pytest.mark.slow
def test_a_convolution_whose_output_is_sliced_needs_no_more_flash_than_it_may():
    """With a byte for each weight, it becomes one convolution for each slice, which needs less RAM."""
    net = NetBuilder(1)
    x = net.input((1, 6, 6, 8))
    ends = [net.conv(x, 32, kernel=(3, 3), same=True, bias=False) for _ in range(2)]
    slices = net.split(net.conv(net.concat(ends), 64, bias=False), 2)
    graph = net.graph([net.conv(part, 8, kernel=(3, 3), bias=False) for part in slices])
    model = file(with_narrow_weights(graph, net.rng, (-7, 7)))
    least = asked("plan", model, FLASH)["flash_bytes"]
    options = {"objective": "ram", "max_flash": least}
    assert asked("plan", model, options)["flash_bytes"] == least
    assert asked("validate", model, options, tensors=True)["exact"]


def test_a_build_says_that_other_weights_fit(tmp_path):
    before = asked("emit", file(narrow_network()), FLASH)
    (tmp_path / "net.plan").write_bytes(before["files"]["net.plan"])
    assert "planned again" not in emitted_lines(before, tmp_path)
    wide = with_narrow_weights(narrow_network(), np.random.default_rng(5), (-9, 7))
    again = emitted_lines(asked("emit", file(wide), FLASH), tmp_path)
    assert again.endswith("net: planned again, as other weights fit into four bits with these weights")
