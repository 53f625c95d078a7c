"""Streamed plans in little memory: run in the emulator, every tensor equal, no byte beyond the plan's."""

from __future__ import annotations

import pytest
from boardruns import exact

from buildtool.firmware.run.execute import built
from buildtool.firmware.sizes import size_report

pytestmark = pytest.mark.slow

SMALL = 16 * 1024
GLOBALS = 256  # bytes of the firmware's other data


@pytest.mark.parametrize(("model", "board"), [("mbv2_w035_144", "cortex-m55"), ("mcunet_vww5", "cortex-m4")])
def test_a_network_runs_in_16_kilobytes_beside_the_stack(model, board):
    """The first of them with its global pooling inside of a streamed region."""
    run = exact(model, board, {"image": "stream", "ram": SMALL - GLOBALS})
    assert run.plan.arena_bytes <= SMALL - GLOBALS
    with built(run.made, run.sources) as image:
        memories = size_report(image.elf.read_bytes(), run.made.target.board)
    used = {part["name"]: part["bytes"] for memory in memories for part in memory["sections"]}
    assert used[".nn_arena"] + used.get(".data", 0) + used.get(".bss", 0) <= SMALL


@pytest.mark.parametrize(
    ("model", "board", "options"),
    [
        ("mcunet_320k", "cortex-m4", {"image": "stream", "max_f": 1.05}),
        ("mobilenetv2:size=32,alpha=0.35,classes=10", "host", {"image": "overwritable", "max_f": 1.05}),
    ],
)
def test_a_network_whose_tensors_move_is_exact(model, board, options):
    run = exact(model, board, {"objective": "ram", **options})
    assert run.plan.moves
    assert run.plan.arena_bytes <= 48_000
