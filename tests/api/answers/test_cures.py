"""`analyze` opens with the answer: what binds, and cures that hold when they are planned; what is left."""

from typing import Any

import pytest

from buildtool.api import handle
from buildtool.fronts.texts.analysis import text
from buildtool.options import spell

NET = "ds_cnn"
# Neither memory holds the arena of a plan layer by layer; both of them together do, or the rows of an image.
SMALL = """
extends = "mps2-an500"
[memory.sram]
size = {sram}
[memory.psram]
size = {psram}
wait_cycles = 4
"""


def board_file(folder, content):
    path = folder / "small.toml"
    path.write_text(content)
    return str(path)


def analysed(board, **more):
    """The verdict about a board, and the lines of the answer as the command line writes it."""
    answer = handle({"kind": "analyze", "model": NET, "boards": [board], **more})
    (verdict,) = answer["boards"]
    return dict(verdict), text(answer, spell).splitlines()


def planned(board, settings, options):
    """The plan with a cure's settings over what was asked for."""
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
    found, lines = analysed(board, options=options)
    assert not found["fits"]
    assert found["binds"] == "RAM (psram)"
    (need,) = (need for need in found["needs"] if need["excess"])
    assert lines[0] == f"{NET} does not fit small: {need['excess']:,} bytes too many for RAM (psram)"
    cures = found["cures"]
    assert {"arena_in": "sram,psram"} in [cure["settings"] for cure in cures]
    assert 0 < len(cures) <= 3
    same = [cure for cure in cures if "board" not in cure["settings"]]
    assert [cure["cost"] for cure in same] == sorted(cure["cost"] for cure in same)
    for cure in cures:
        made = planned(cure["settings"].get("board", board), cure["settings"], options)
        assert (made["arena_bytes"], made["f"]) == (cure["arena_bytes"], cure["f"])
        assert made["cost"] <= cure["cost"]
        if made["memories"]:
            assert made["cost"] + made["memories"]["wait_cycles"] == pytest.approx(cure["cost"])
        assert all(left["bytes"] >= 0 for left in cure["left"])
        words = " ".join(spell(option, value) for option, value in cure["settings"].items())
        assert any(line.strip().startswith(words) for line in lines)


@pytest.mark.slow
def test_a_limit_that_was_asked_for_is_lifted_where_that_helps():
    found, _ = analysed("cortex-m4", options={"ram": 5000, "max_f": 1.0})
    assert not found["fits"]
    assert found["binds"] == "arena limit"
    cures = {tuple(cure["settings"].items()): cure for cure in found["cures"]}
    assert {name for first, *_ in cures for name in first[:1]} <= {"image", "ram", "max_f", "order"}
    raised = next(cure for (first, *_), cure in cures.items() if first[0] == "ram")
    assert raised["settings"]["ram"] == raised["arena_bytes"] == found["arena_bytes"]


@pytest.mark.slow
def test_where_flash_is_too_small_other_boards_are_planned(tmp_path):
    board = board_file(tmp_path, 'extends = "hifive1"\n[memory.flash]\nsize = "36K"\n')
    found, lines = analysed(board)
    assert "flash (flash)" in lines[0]
    assert found["binds"] == "flash (flash)"
    assert all(list(cure["settings"]) == ["board"] for cure in found["cures"])
    assert found["cures"][0]["board"] == "hifive1"  # of the same family, with the least RAM
    assert found["cures"][0]["cost_ratio"] is None


def test_what_fits_opens_with_what_is_left_and_what_the_next_smaller_plan_costs():
    found, lines = analysed("cortex-m4")
    assert found["fits"] and found["cures"] == []
    left = [need["available"] - need["required"] for need in found["needs"]]
    assert lines[0].startswith(f"{NET} fits cortex-m4: {left[0]:,} bytes of RAM")
    smaller = found["smaller"]
    assert smaller["arena_bytes"] < found["arena_bytes"]
    assert smaller["cost_ratio"] >= 1
    made = planned("cortex-m4", smaller["settings"], {})
    assert (made["arena_bytes"], made["cost"]) == (smaller["arena_bytes"], smaller["cost"])
    assert 0 < found["stack"]["required"] <= found["stack"]["available"]


@pytest.mark.slow
def test_a_stack_that_is_too_small_binds(tmp_path):
    board = board_file(tmp_path, 'extends = "cortex-m4"\nstack_bytes = 256\n')
    found, lines = analysed(board)
    assert not found["fits"]
    assert found["binds"] == "stack"
    short = found["stack"]["required"] - 256
    assert lines[0] == f"{NET} does not fit small: {short:,} bytes too many for the stack"
    wanted = f"stack_bytes = {found['stack']['required']} or more in the board's file"
    assert wanted in [hint["text"] for hint in found["advice"]]
