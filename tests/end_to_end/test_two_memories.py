"""Arenas in two memories of a board: run in the emulator, every tensor equal, no byte beyond either arena."""

from dataclasses import replace
from pathlib import Path

import pytest
from boardruns import exact
from loaded import own_board

from buildtool.base.errors import ToolError
from buildtool.base.modes import Strategy
from buildtool.emit.sources import emit
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.planned import plan_model
from buildtool.firmware.run.execute import build_temporarily, execute
from buildtool.firmware.sizes import open_elf
from buildtool.options.values import PlanOptions, TargetChoice

pytestmark = pytest.mark.slow

# Neither memory holds all of it. On the first board tensors have to move, on the second rows come in rings.
M7 = """
[memory.sram]
size = 19968
wait_cycles = 0
[memory.psram]
size = 8832
wait_cycles = 4
"""
M55 = """
[memory.dtcm]
size = "21K"
wait_cycles = 0
[memory.sram]
size = "4K"
wait_cycles = 3
"""
CASES = [
    ("mps2-an500", M7, "sram,psram", {"strategy": "layerwise"}),
    ("cortex-m55", M55, "sram,dtcm", {}),
]


@pytest.mark.parametrize(("base", "text", "memories", "options"), CASES, ids=["cortex-m7", "cortex-m55"])
def test_a_network_over_two_memories_is_exact_and_lies_where_its_sections_say(
    tmp_path: Path, base: str, text: str, memories: str, options: dict[str, object]
) -> None:
    run = exact("ds_cnn", own_board(tmp_path, text, base), options, arena_in=memories)
    target = run.made.target.board
    assert run.level == "emulator"
    assert target.holders == tuple(memories.split(","))
    both = [target.memory(name) for name in target.holders]
    sides = {bool(b.offset >= run.plan.second_at) for b in run.plan.buffers}
    assert sides == {False, True}
    assert run.outcome.arena_high_water <= run.plan.arena_bytes
    with build_temporarily(run.made, run.sources) as image:
        elf = open_elf(image.elf.read_bytes())
        for name, memory, size in zip((".nn_arena", ".nn_second_arena"), both, run.plan.arenas, strict=True):
            section = elf.get_section_by_name(name)
            assert section["sh_size"] >= size
            assert memory.base <= section["sh_addr"]
            assert section["sh_addr"] + section["sh_size"] <= memory.base + memory.size


def test_what_is_written_beyond_the_second_arena_is_found_out(tmp_path: Path) -> None:
    """The header says a block less than the plan needs there: the network writes into the guard."""
    choice = TargetChoice(own_board(tmp_path, M7, "mps2-an500"), arena_in="sram,psram")
    made = plan_model("ds_cnn", choice, PlanOptions(strategy=Strategy.LAYERWISE))
    sources = emit(made.graph, made.plan, made.target, made.model.name, made.session)
    size = made.plan.arenas[1]
    said = f"DS_CNN_SECOND_ARENA_BYTES {size}\n".encode()
    header = sources.files["ds_cnn.h"]
    assert said in header
    cut = header.replace(said, f"DS_CNN_SECOND_ARENA_BYTES {size - 32}\n".encode())
    broken = replace(sources, files={**sources.files, "ds_cnn.h": cut})
    with build_temporarily(made, broken) as image, pytest.raises(ToolError, match="outside its second arena"):
        execute(made, image, draw_inputs(made.graph, 1, 20))
