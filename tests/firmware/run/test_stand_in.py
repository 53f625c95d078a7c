"""Boards without an emulator of their chip: runs use a machine with the same core."""

import pytest
from buildtool_plugins.baremetal.probe import debug_server
from needs import needs_shared
from paths import script
from probe import load_board

from buildtool.api import handle
from buildtool.api.requests.parts import AttachedRun
from buildtool.base.errors import ToolError, UsageError
from buildtool.base.session import Session
from buildtool.firmware.firmware import Firmware
from buildtool.firmware.planned import plan_or_read
from buildtool.firmware.run.execute import execute, refuse_stand_in
from buildtool.options.values import PlanOptions, TargetChoice


def test_a_debugger_gets_the_probe_and_not_the_stand_in(monkeypatch, tmp_path):
    openocd = script(tmp_path / "openocd", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debug_server(load_board("nucleo-f412zg"), 3333, ("gdb",)).command[0] == str(openocd)


def test_neither_the_boards_image_nor_its_ports_are_taken_for_the_stand_ins(tmp_path):
    model = str(needs_shared("models/mlperf_kws.tflite"))
    session = Session()
    planned = plan_or_read(model, TargetChoice("nucleo-f412zg"), PlanOptions(), None, session)
    with pytest.raises(ToolError, match="has other addresses"):
        refuse_stand_in(planned, "net.elf")
    with pytest.raises(UsageError, match="without the board's ports"):
        execute(planned, Firmware(tmp_path / "net.elf", "clang"), [], attached=AttachedRun(is_emulated=True))


@pytest.mark.slow
@pytest.mark.parametrize("board", ["stm32h747i-disco", "nucleo-f412zg"])
def test_what_runs_in_a_stand_in_equals_the_reference(board):
    model = str(needs_shared("models/mlperf_kws.tflite"))
    answer = handle({"kind": "validate", "model": model, "board": board, "tensors": True, "inputs": 2})
    assert answer["exact"]
    assert answer["level"] == "emulator"
