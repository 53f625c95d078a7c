"""The answer has the waits for the arena's memory besides the cost, for one memory as for two."""

import pytest

from buildtool.api import handle

H747 = "stm32h747i-disco"


def planned(board, **more):
    return dict(handle({"kind": "plan", "model": "ds_cnn", "board": board, **more}))


@pytest.mark.slow
def test_a_memory_costs_alone_what_is_said_of_it_beside_another():
    both = planned(H747, arena_in="dtcm,axi")["memories"]["alone"]
    waits = {one["memory"]: one["wait_cycles"] for one in both}
    assert waits["dtcm"] == 0 < waits["axi"]
    for name, cycles in waits.items():
        assert planned(H747, arena_in=name)["wait_cycles"] == pytest.approx(cycles)
