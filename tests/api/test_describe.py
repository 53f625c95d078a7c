"""The description of a build agrees with what is emitted, and needs no model. Each front builds by it."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from buildtool.api import handle
from buildtool.base.errors import ToolError, UsageError
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import board_names, load_target

NET = "ds_cnn"
FOREIGN = ("esp32", "esp32-s3", "esp32-s3-psram")  # built by compilers that no registry has
PLANS = [{}, {"image": "stream", "objective": "ram"}]


@functools.cache
def described(board, model=NET, **more):
    return handle({"kind": "describe", "board": board, "model": model, **more})


def group(answer, name):
    return next(group for group in answer["groups"] if group["name"] == name)


def path(answer, place, emitted):
    """The path of a place on this machine."""
    if place["root"] == "emitted":
        return emitted / place["path"]
    return Path(answer["roots"].get(place["root"], ""), place["path"])


@pytest.mark.parametrize("board", ["cortex-m4", "hifive1", "xcore"])
def test_the_files_are_those_that_are_emitted_whatever_the_plan(board):
    network = described(board)["network"]
    for options in PLANS:
        answer = handle({"kind": "emit", "model": NET, "board": board, "options": options})
        assert sorted(answer["files"]) == sorted(network["emitted"]) and answer["net"] == network["net"]


@pytest.mark.parametrize("board", [name for name in board_names() if name not in FOREIGN])
def test_the_library_is_the_whole_of_the_boards_kernels(board):
    kernels = group(described(board), "kernels")
    files = {path(described(board), source["file"], ROOT) for source in kernels["sources"]}
    assert kernels_root() / "runtime" / "nn_image.c" in files
    for family in (*load_target(board).board.core.families, "reference"):
        assert set((kernels_root() / family).glob("*.c")) <= files
    assert len({source["object"] for source in kernels["sources"]}) == len(files)


def test_no_model_is_read_and_the_network_is_called_as_its_file(tmp_path):
    network = described("host", str(tmp_path / "Wake Word.tflite"))["network"]
    assert network["net"] == "wake_word"
    names = described("host")["network"]["emitted"]
    assert network["emitted"] == [name.replace(NET, "wake_word") for name in names]
    assert described("host", str(tmp_path / "a.onnx"), name="mine")["network"]["net"] == "mine"
    assert described("host", "ds_cnn:seed=3")["network"]["net"] == "ds_cnn_seed3"
    unread = {"path": str(tmp_path / "b.tflite"), "sha256": "0" * 64}
    assert handle({"kind": "describe", "board": "host", "model": unread})["network"]["net"] == "b"


def test_an_application_gets_the_driver_of_the_boards_serial_port():
    port = described("stm32f746g-disco")["serial"]
    assert [Path(source["file"]["path"]).name for source in port["sources"]] == ["stm32_usart_v2.c"]
    assert {f"-DWIRE_BASE={0x40011000}u", "-DWIRE_TX_PIN=9", "-DWIRE_CORE_HZ=216000000u"} < {*port["flags"]}
    assert not {*port["flags"]} & {*described("stm32f746g-disco")["tools"]["cflags"]}
    assert described("host")["serial"] is None


@pytest.mark.parametrize("toolchain", ["clang", "gcc"])
def test_what_a_board_takes_from_its_base_is_in_the_answer_and_the_base_among_the_files(toolchain, tmp_path):
    """RAM and stack are in the linker script, and the core's flags are in the flags of every source."""
    base, mine = tmp_path / "base.toml", tmp_path / "mine.toml"
    mine.write_text('extends = "base.toml"\n')

    def described(text):
        base.write_text(f'extends = "cortex-m4"\n{text}\n')
        answer = handle({"kind": "describe", "board": str(mine), "toolchain": toolchain})
        files = [path(answer, place, tmp_path) for place in answer["depends"]]
        core = "cortex-m4.toml"  # the board's file, and its core's
        assert [file.name for file in files] == ["mine.toml", "base.toml", "cortex-m4.toml", core]
        assert all(file.is_file() for file in files)
        assert answer["script"]["name"] == "mine.ld"
        return answer

    plain = described("")
    for text in ('stack_bytes = "4K"', '[memory.psram]\nsize = "9K"'):
        assert described(text)["script"]["data"] != plain["script"]["data"]
    flags = described('[core]\ncflags = ["-mcpu=cortex-m4", "-mthumb"]')["tools"]["cflags"]
    assert flags != plain["tools"]["cflags"]


def test_mistakes_are_refused():
    for request, error, words in (
        ({"board": "cortex-m5"}, UsageError, "unknown board"),
        ({"board": "host", "model": "ds_cn"}, UsageError, "no zoo network is called"),
        ({"board": "cortex-m4", "toolchain": "clangg"}, ToolError, "has no toolchain"),
        ({"board": "host", "name": "x"}, UsageError, "no effect without a model"),
        ({"board": "host", "model": NET, "image_version": "1.2"}, UsageError, "no effect without 'sign'"),
        ({"board": "host", "modle": NET}, UsageError, "modle"),
        ({"board": "host", "options": {"ram": "8K"}}, UsageError, "ram"),
    ):
        with pytest.raises(error, match=words):
            handle({"kind": "describe", **request})


def test_describing_imports_neither_numpy_nor_the_planner():
    """A build with nothing to do waits for this answer, too."""
    code = f"""
import sys
from buildtool.api import handle
handle({{"kind": "describe", "board": "host", "model": "{NET}"}})
heavy = {{name for name in sys.modules if name in ("numpy", "tflite") or name.startswith("buildtool.plan.")}}
print(*heavy - {{"buildtool.plan.models"}})
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert process.stdout.split() == []
