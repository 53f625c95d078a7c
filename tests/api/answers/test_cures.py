"""`analyze` says what binds, which cures help, and what is left; cures are correct when planned."""

from functools import partial
from typing import Any

import pytest

from buildtool import api
from buildtool.base.session import Session
from buildtool.fronts.texts.analysis import text
from buildtool.options import spell

handle = partial(api.handle, session=Session())  # makes a network's tables once

NET = "ds_cnn"
# The arena of a plan layer by layer fits neither memory alone, but both together, or with a streamed image.
SMALL = """
extends = "mps2-an500"
[memory.sram]
size = {sram}
[memory.psram]
size = {psram}
wait_cycles = 4
"""


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    """The recorded sizes of kernels count: with a compiler, `test_fitting.py` does the same."""
    monkeypatch.setenv("BUILDTOOL_CLANG", "/nonexistent/clang")


def board_file(folder, content):
    path = folder / "small.toml"
    path.write_text(content)
    return str(path)


def analysed(board, **more):
    """The verdict on a board, and the lines that the command prints."""
    answer = handle({"kind": "analyze", "model": NET, "boards": [board], **more})
    (verdict,) = answer["boards"]
    return dict(verdict), text(answer, spell).splitlines()


def planned(board, settings, options):
    """The plan with a cure's settings in addition to the original options."""
    request: dict[str, Any] = {"kind": "plan", "model": NET, "board": board}
    of_plan = dict(options)
    for name, value in settings.items():
        if name in ("board", "arena_in", "threads", "weights_in"):
            request[name] = value
        elif value is None:
            of_plan.pop(name, None)
        else:
            of_plan[name] = value
    return dict(handle({**request, "options": of_plan}))


@pytest.mark.slow
def test_cures_of_too_little_ram_hold_when_they_are_planned_and_have_their_price(tmp_path):
    board = board_file(tmp_path, SMALL.format(sram=19968, psram=8832))
    options = {"strategy": "layerwise"}
    verdict, lines = analysed(board, options=options)
    assert not verdict["fits"]
    assert verdict["binds"] == "RAM (psram)"
    (need,) = (need for need in verdict["needs"] if need["excess"])
    assert lines[0] == f"{NET} does not fit small: {need['excess']:,} bytes too many for RAM (psram)"
    cures = verdict["cures"]
    assert {"arena_in": "sram,psram"} in [cure["settings"] for cure in cures]
    assert 0 < len(cures) <= 3
    same = [cure for cure in cures if "board" not in cure["settings"]]
    assert [cure["cost"] for cure in same] == sorted(cure["cost"] for cure in same)
    for cure in cures:
        plan = planned(cure["settings"].get("board", board), cure["settings"], options)
        assert (plan["arena_bytes"], plan["f"]) == (cure["arena_bytes"], cure["f"])
        assert plan["cost"] <= cure["cost"]
        if plan["memories"]:
            assert plan["cost"] + plan["memories"]["wait_cycles"] == pytest.approx(cure["cost"])
        assert all(memory["bytes"] >= 0 for memory in cure["left"])
        words = " ".join(spell(option, value) for option, value in cure["settings"].items())
        assert any(line.strip().startswith(words) for line in lines)


@pytest.mark.slow
def test_a_limit_that_was_asked_for_is_lifted_where_that_helps():
    verdict, _ = analysed("cortex-m4", options={"ram": 4700, "max_f": 1.0})
    assert not verdict["fits"]
    assert verdict["binds"] == "arena limit"
    cures = {tuple(cure["settings"].items()): cure for cure in verdict["cures"]}
    assert {name for first, *_ in cures for name in first[:1]} <= {"image", "ram", "max_f", "order"}
    raised = next(cure for (first, *_), cure in cures.items() if first[0] == "ram")
    assert raised["settings"]["ram"] == raised["arena_bytes"] == verdict["arena_bytes"]


@pytest.mark.slow
def test_a_limit_that_a_moving_window_exceeds_is_cured_by_one_that_includes_what_is_kept():
    options = {"hop": 2, "ram": 4_700}
    verdict, _ = analysed("cortex-m4", options=options)
    assert not verdict["fits"] and verdict["cures"]
    for cure in verdict["cures"]:
        plan = planned("cortex-m4", cure["settings"], options)
        assert plan["arena_bytes"] == cure["arena_bytes"]
        assert plan["state_bytes"] == cure["kept_bytes"] > 0


@pytest.mark.slow
def test_where_flash_is_too_small_other_boards_are_planned(tmp_path):
    board = board_file(tmp_path, 'extends = "hifive1"\n[memory.flash]\nsize = "36K"\n')
    verdict, lines = analysed(board)
    assert "too many for flash" in lines[0]
    assert verdict["binds"] == "flash"
    assert all(list(cure["settings"]) == ["board"] for cure in verdict["cures"])
    assert verdict["cures"][0]["board"] == "hifive1"  # of the same family, with the least RAM
    assert verdict["cures"][0]["cost_ratio"] is None


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"hop": 2}], ids=["window", "hops"])
def test_what_fits_opens_with_what_is_left_and_what_the_next_smaller_plan_costs(options):
    verdict, lines = analysed("cortex-m4", options=options)
    assert verdict["fits"] and verdict["cures"] == []
    unused = [need["available"] - need["required"] for need in verdict["needs"]]
    assert lines[0].startswith(f"{NET} fits cortex-m4; bytes that are left: RAM (psram) {unused[0]:,}, ")
    sizes = [verdict["arena_bytes"] + verdict["kept_bytes"]]
    for smaller in (verdict["smaller"], verdict["smallest"]):
        sizes.append(smaller["arena_bytes"] + smaller["kept_bytes"])
        assert smaller["cost_ratio"] >= 1
        assert smaller["settings"] == {"ram": sizes[-1]}
        plan = planned("cortex-m4", smaller["settings"], options)
        assert (plan["arena_bytes"], plan["cost"]) == (smaller["arena_bytes"], smaller["cost"])
    assert sizes == sorted(set(sizes), reverse=True)
    least = planned("cortex-m4", {"objective": "ram"}, options)
    assert least["arena_bytes"] + least["state_bytes"] == sizes[-1]
    assert 0 < verdict["stack"]["required"] <= verdict["stack"]["available"]


@pytest.mark.slow
def test_a_stack_that_is_too_small_binds(tmp_path):
    board = board_file(tmp_path, 'extends = "cortex-m4"\nstack_bytes = 256\n')
    verdict, lines = analysed(board)
    assert not verdict["fits"]
    assert verdict["binds"] == "stack"
    short = verdict["stack"]["required"] - 256
    assert lines[0] == f"{NET} does not fit small: {short:,} bytes too many for the stack"
    advice = f"stack_bytes = {verdict['stack']['required']} or more in the board's file"
    assert advice in [hint["text"] for hint in verdict["advice"]]
