"""Streamed plans in little memory: run in the emulator, every tensor equal, no byte beyond the plan's."""

from __future__ import annotations

import pytest

from buildtool.service import handle

pytestmark = pytest.mark.slow

SMALL = 16 * 1024
GLOBALS = 256  # bytes of the firmware's other data


def validated(model, board, **options):
    answer = handle(
        {
            "kind": "validate",
            "model": model,
            "board": board,
            "tensors": True,
            "reference": "litert",
            "options": {"image": "stream", **options},
        }
    )
    assert answer["exact"], answer["first_difference"]
    assert answer["arena_high_water"] <= answer["arena_bytes"]
    return answer


@pytest.mark.parametrize("board", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("model", ["mbv2_w035_144", "mcunet_vww5"])
def test_a_network_runs_in_16_kilobytes_beside_the_stack(model, board):
    """The first of them with its global pooling inside of a streamed region."""
    options = {"image": "stream", "ram": SMALL - GLOBALS}
    assert validated(model, board, **options)["arena_bytes"] <= SMALL - GLOBALS
    request = {"kind": "build", "model": model, "board": board, "options": options}
    memories = handle(request)["sizes"]
    used = {part["name"]: part["bytes"] for memory in memories for part in memory["sections"]}
    assert used[".nn_arena"] + used.get(".data", 0) + used.get(".bss", 0) <= SMALL


@pytest.mark.parametrize("board", ["host", "cortex-m4"])
def test_a_network_whose_tensors_move_is_exact(board):
    options = {"objective": "ram", "max_f": 1.05}
    plan = handle(
        {
            "kind": "plan",
            "model": "mcunet_320k",
            "board": board,
            "options": {"image": "stream", **options},
        }
    )
    assert plan["moves"]
    answer = validated("mcunet_320k", board, **options)
    assert answer["arena_bytes"] == plan["arena_bytes"] <= 48_000
