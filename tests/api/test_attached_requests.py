"""Requests about attached boards: how their firmware is compiled, and options that have no effect."""

from pathlib import Path

import pytest

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.errors import TargetError, UsageError
from buildtool.target.registry import load_board

RUN = {"kind": "validate", "model": "ds_cnn", "board": "cortex-m4"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"flashed": True}, "--flashed: it has no effect in an emulator"),
        ({"tool": "pyocd"}, "--tool: it has no effect in an emulator"),
        ({"wire": "serial:/dev/ttyACM0"}, "an emulator has its own UART"),
        ({"wire": "rtt"}, "no emulator has RTT"),
        ({"wire": "usb"}, "'usb' is not one of serial, rtt, semihosting"),
        ({"wire": "semihosting:x", "on": "board"}, "has no port"),
        ({"on": "desk"}, "'desk' is not one of emulator, board"),
        ({"on": "board", "flashed": True, "tensors": True}, "needs another firmware image"),
    ],
)
def test_what_has_no_effect_is_refused(more, words):
    with pytest.raises(UsageError) as caught:
        parse({**RUN, **more})
    assert words in f"--{caught.value.option}: {caught.value.text}"


def test_a_description_for_an_attached_board_has_the_firmware_that_answers_over_the_boards_wire():
    request = {"kind": "describe", "board": "nucleo-f767zi", "model": "ds_cnn"}
    plain, attached = handle(request), handle({**request, "on": "board"})

    def harness(answer):
        (group,) = (group for group in answer["groups"] if group["name"] == "harness")
        return [Path(source["file"]["path"]).name for source in group["sources"]]

    assert harness(plain) == ["harness.c", "harness_io.c"]
    assert {"board.c", "frames.c", "stm32_usart_v2.c", "cycles.c"} <= set(harness(attached))
    assert "NN_CYCLES" in attached["tools"]["defines"] and "NN_CYCLES" not in plain["tools"]["defines"]
    assert {"-DWIRE_BASE=1073760256u", "-DNN_WIRE"} <= set(attached["tools"]["cflags"])
    assert "rtt.c" in harness(handle({**request, "wire": "rtt"}))
    with pytest.raises(UsageError, match="cannot answer over a link"):
        handle({"kind": "describe", "board": "host", "on": "board"})
    with pytest.raises(UsageError, match="names no serial port"):
        handle({"kind": "describe", "board": "rpi-pico2", "wire": "serial"})


def test_a_board_may_bring_its_own_driver_and_clock(tmp_path):
    file, keys = (
        tmp_path / "mine.toml",
        'base = 0x40004800\nclock_hz = 8000000\nbaud = 9600\nsettings = ["A=1"]',
    )
    file.write_text(f'extends = "nucleo-f412zg"\n[uart]\ndriver = "mine.c"\n{keys}\n')
    asked = {"kind": "describe", "board": str(file), "wire": "serial"}
    with pytest.raises(TargetError, match=r"uart.driver: there is no '.*mine.c'"):
        handle(asked)
    (tmp_path / "mine.c").touch()
    flags = handle(asked)["tools"]["cflags"]
    assert {"-DWIRE_BAUD=9600u", "-DA=1", "-DCHIP_START", "-DCHIP_CLOCK_HZ=100000000u"} <= set(flags)
    for wrong, words in (
        ("[uart]\nbaud = 0", "uart.baud"),
        ('[uart]\nbase = "4G"', "uart.base"),
        ("[uart]\nspeed = 1", "unknown key 'uart.speed'"),
        ("[chip]\nstart = 3", "chip.start"),
        ('[probe]\njlink = ["x"]', "unknown key 'probe.jlink'"),
    ):
        file.write_text(f'extends = "nucleo-f412zg"\n{wrong}\n')
        with pytest.raises(TargetError, match=words):
            load_board(str(file))
