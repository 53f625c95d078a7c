"""Costs are in cycles where a family has formulas for the core's pipeline; two units are never mixed."""

import dataclasses
import re

import pytest

from buildtool.base.errors import TargetError, UsageError
from buildtool.base.expression import evaluate
from buildtool.base.modes import CostUnit
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.limits import cost_limit
from buildtool.target.cycle_costs import converter, waiting
from buildtool.target.family import Catalogue
from buildtool.target.registry import board_names, load_board, load_target, make_target
from buildtool.target.speeds import Cache, Pipeline, Speed
from buildtool.target.types import Costs, KernelFamily, KernelVariant

FILE = """\
cycles_per_instruction = 1.5

[costs]
move = "8 + bytes"

[kernels]
add_fast = "7 * outputs"
"""
ADD = KernelVariant("ADD", "add_fast", "nn_add", (), cost="5 * outputs")
MUL = KernelVariant("MUL", "mul_fast", "nn_mul", (), cost="3 + outputs")
M4 = load_board("cortex-m4")
PIPELINE = Pipeline("cortex-m4")


def family(folder, text=FILE, names=("add_fast", "mul_fast")):
    """Returns a catalogue with kernels of these names, and writes a file of costs for PIPELINE."""
    (folder / "costs").mkdir(parents=True)
    (folder / "costs" / "cortex-m4.toml").write_text(text, encoding="utf-8")
    return Catalogue(KernelFamily(folder.name, folder), names={name: {} for name in names})


def test_what_has_no_formula_is_converted(tmp_path):
    costs_converter = converter(PIPELINE, [family(tmp_path / "fast")])
    assert costs_converter is not None
    assert [kernel.cost for kernel in costs_converter.kernels("fast", [ADD, MUL])] == [
        "7 * outputs",
        "1.5 * (3 + outputs)",
    ]
    assert costs_converter.by_ratio("fast", [ADD, MUL]) == {"mul_fast"}
    costs = costs_converter.costs(Costs(call="10", move="bytes"))
    assert (costs.call, costs.move) == ("1.5 * (10)", "8 + bytes")


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        (FILE.replace("= 1.5", "= 0"), "cycles_per_instruction.*above 0", 1),
        (FILE.replace("= 1.5", "= true"), "cycles_per_instruction.*above 0", 1),
        (FILE.replace("= 1.5", '= "1"'), "cycles_per_instruction.*above 0", 1),
        ("words_per_cycle = -1\n" + FILE, "words_per_cycle.*whole number", 1),
        ("taken_branch_cycles = true\n" + FILE, "taken_branch_cycles.*whole number", 1),
        (FILE.replace("cycles_per_instruction = 1.5", ""), "cycles_per_instruction.*missing", 0),
        (FILE.replace("add_fast", "add_fats"), "add_fats.*no such kernel.*add_fast", 7),
        (FILE.replace("7 * outputs", "7 * output"), "add_fast.*outputs", 7),
        (FILE.replace('"7 * outputs"', "7"), "add_fast.*string", 7),
        (FILE.replace("move", "mov"), "mov.*unknown key.*move", 4),
        (FILE.replace("[kernels]", "[kernel]"), "kernel.*unknown key.*kernels", 6),
        (FILE.replace("[kernels]", "[kernels"), "not a TOML file", 6),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path, text, words, line):
    with pytest.raises(TargetError) as caught:
        converter(PIPELINE, [family(tmp_path / "fast", text, ["add_fast"])])
    message = str(caught.value).replace("\n", " ")
    assert re.search(words, message), message
    assert "cortex-m4.toml" in message
    assert caught.value.line == line


@pytest.mark.parametrize("name", board_names())
def test_all_costs_of_a_board_are_in_one_unit(name):
    """Each formula in cycles comes from a file for the core's model, or is the catalogue's, converted."""
    target = load_target(name)
    without = make_target(dataclasses.replace(target.board, pipeline=None))
    assert without.cost_unit is not CostUnit.CYCLES
    assert not without.by_ratio
    if target.cost_unit is not CostUnit.CYCLES:
        assert [kernel.cost for kernel in target.kernels] == [kernel.cost for kernel in without.kernels]
        assert target.costs == without.costs
        assert target.cost_ms is None
        return
    assert target.board.pipeline is not None
    for kernel, plain in zip(target.kernels, without.kernels, strict=True):
        converted = f" * ({plain.cost})" in kernel.cost
        assert converted == (kernel.name in target.by_ratio), kernel.name
    for field in dataclasses.fields(Costs):
        assert getattr(target.costs, field.name) != getattr(without.costs, field.name)
    assert target.cost_ms == 1000 / target.board.clock_hz


def reading(size, speed, cache_bytes):
    """Returns what constants of `size` bytes, read ten times in a call, add to its cost."""
    memories = [dataclasses.replace(m, speed=speed) if m.name == M4.weights else m for m in M4.memories]
    cache = Cache("c", 32, data_bytes=cache_bytes)
    board = dataclasses.replace(M4, memories=tuple(memories), caches=(cache,))
    kernel = dataclasses.replace(ADD, cost="0", constants=str(size), passes="10")
    (slower,) = waiting([kernel], board)
    return float(evaluate(slower.cost, {}))


def test_constants_in_slow_flash_are_waited_for():
    """By the board's data, a line of 32 bytes waits 7 cycles, and 3 more for each of 3 beats."""
    assert reading(1000, None, 0) == 0
    assert reading(1000, Speed(0, bus_bits=128), 0) == 0
    cached = Speed(7, bus_bits=64, beat_cycles=3, cache="c")
    line = 7 + 3 * 3
    assert reading(1024, cached, 4096) == 1024 / 32 * line  # once, because the cache holds them
    assert reading(8192, cached, 4096) == 10 * 8192 / 32 * line  # in every pass
    assert reading(1024, Speed(7), 4096) == 10 * 1024 / 4 * 7  # word by word, without a cache


@pytest.mark.parametrize("figure", ["taken_branch_cycles", "words_per_cycle"])
def test_a_board_with_other_figures_than_the_formulas_is_not_planned_by_them(figure):
    assert M4.pipeline is not None and make_target(M4).cost_unit is CostUnit.CYCLES
    other = dataclasses.replace(M4.pipeline, **{figure: 3})
    target = make_target(dataclasses.replace(M4, pipeline=other))
    assert (target.cost_unit, target.cost_ms, target.by_ratio) == (CostUnit.INSTRUCTIONS, None, frozenset())
    assert target.costs == make_target(dataclasses.replace(M4, pipeline=None)).costs
    with pytest.raises(UsageError, match=f"which are not times.*{figure} = 3"):
        cost_limit(PlanOptions(max_ms=5), target)
