"""Settings that the refusal of a plan names: each of them leads to a plan that fits the board."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from namednets import wide_branches

from buildtool.api import handle
from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.graph.tflite.writer import write_model

SESSION = Session()


def hints(model: str, board: str, **options: object) -> list[dict[str, object]]:
    """The settings of each hint, after all of them have been followed."""
    asked = {"kind": "plan", "model": model, "board": board}
    with pytest.raises(PlanError) as caught:
        handle({**asked, "options": options}, SESSION)
    found = [dict(hint.settings) for hint in caught.value.hints]
    for settings in filter(None, found):
        changed = {name: value for name, value in {**options, **settings}.items() if value is not None}
        beside = {name: changed.pop(name) for name in ("arena_in",) if name in changed}
        assert (
            0
            < handle({**asked, **beside, "options": changed}, SESSION)["arena_bytes"]
            <= changed.get("ram", math.inf)
        )
    assert found
    return found


LIMITS: list[dict[str, object]] = [
    {"max_f": 1.0, "ram": 4400},
    {"max_cost": 1000},
    {"max_cost": 4e6, "ram": 5000},
    {"max_f": 1, "max_cost": 9},
]


@pytest.mark.parametrize(
    ("board", "objective", "limits"),
    [
        ("cortex-m4", "cost", LIMITS[0]),
        ("cortex-m4", "ram", LIMITS[2]),
        pytest.param("cortex-m4", "cost", LIMITS[3], marks=pytest.mark.slow),
        # on boards that load weights, the planner calls the search in other ways
        pytest.param("xcore", "ram", LIMITS[0], marks=pytest.mark.slow),
    ],
)
def test_every_setting_that_a_refusal_names_does(
    board: str, objective: str, limits: dict[str, object]
) -> None:
    assert any(hints("ds_cnn", board, objective=objective, **limits))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "memories", "helps"),
    [
        ("ds_cnn", 'extends = "cortex-m4"\n[memory.psram]\nsize = 4400\n[roles]\narenas = ["psram"]\n', True),
        # one operator's constants alone need more memory than the chip has
        ("resnet8", 'extends = "xcore"\n[memory.ram]\nsize = 160000\n', False),
    ],
)
def test_where_the_board_is_too_small_no_larger_limit_is_named(
    tmp_path: Path, model: str, memories: str, helps: bool
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(memories)
    settings = hints(model, str(path))
    assert any(settings) or not helps
    assert not any("ram" in one for one in settings)


@pytest.mark.parametrize("strategy", ["layerwise", "msf-cnn", "xcore-strips"])
def test_what_other_strategies_need_is_named_where_the_board_has_it(strategy: str) -> None:
    found = hints("resnet8", "cortex-m4", strategy=strategy, ram=20000)
    assert any("ram" in settings for settings in found)
    assert any(settings.get("strategy") == "best" for settings in found)
    found = hints("resnet8", "hifive1", strategy=strategy, ram=8000)  # 14,592 bytes are there: nothing helps
    assert not any(found)


def test_strategy_best_is_named_where_a_layerwise_plan_does_not_fit(tmp_path: Path) -> None:
    board = tmp_path / "small.toml"
    board.write_text('extends = "cortex-m4"\n[memory.psram]\nsize = "24K"\n')
    assert {"strategy": "best"} in hints("resnet8", str(board), strategy="layerwise")


def test_the_best_order_is_named_where_it_helps(tmp_path: Path) -> None:
    model = tmp_path / "branches.tflite"
    model.write_bytes(write_model(wide_branches()))
    options = {"in_place": "none", "strategy": "layerwise"}
    asked = {"kind": "plan", "model": str(model), "board": "cortex-m4"}
    given, best = (
        handle({**asked, "options": {**options, "order": order}})["arena_bytes"]
        for order in ("given", "best")
    )
    assert best < given
    assert {"order": "best"} in hints(str(model), "cortex-m4", **options, order="given", ram=given - 16)
    assert {"order": "best"} not in hints(str(model), "cortex-m4", **options, order="given", ram=best - 16)


@pytest.mark.slow
def test_an_image_by_rows_is_named_where_constants_are_loaded() -> None:
    """The image alone has 27,648 bytes; its rows, and the constants that are needed at a time, have less."""
    found = hints("mobilenetv1_025_96", "xcore", ram=27000)
    assert any(settings.get("image") == "stream" for settings in found)
