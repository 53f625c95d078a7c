"""The project for XMOS's XTC tools: its commands run stubs of the tools, its program uses stub headers.

A file that is not a program for the chip is never accepted.
"""

import json
import random
import re
import shutil
import struct
import subprocess
from itertools import pairwise

import numpy as np
import pytest
from buildtool_plugins.tools.find import find_clang
from buildtool_plugins.xcore.xtc import LINES, Entry, compile_project, pack
from loaded import own_board
from needs import needs_tool
from xtcstub import HEADERS, environment, recorded, replayed, stub_tools

from buildtool.api import handle
from buildtool.base.errors import ToolError, UsageError
from buildtool.base.session import Session
from buildtool.firmware.firmware import write_files
from buildtool.graph.reference import execute
from buildtool.plan.models import load_model, read_graph

NET = "ds_cnn"
REQUEST = {"kind": "build", "model": NET, "board": "xcore", "options": {"strategy": "layerwise"}}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A build without XTC, written to a folder."""
    folder = tmp_path_factory.mktemp("xcore") / "out put"  # paths may have spaces
    answer = handle(REQUEST)
    write_files(answer["files"], folder)
    return answer, folder


def run_captured(command, environment, **more):
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, **more)


@pytest.fixture(scope="module")
def calls(built, tmp_path_factory):
    """The calls of XTC's tools (stubs) by the project's build."""
    stubs = stub_tools(tmp_path_factory.mktemp("stub") / "bin")
    for line in (["cmake", "-G", "Unix Makefiles", "-B", "build"], ["xmake", "-C", "build"]):
        process = run_captured(line, environment(stubs), cwd=built[1] / f"{NET}_xtc")
        assert process.returncode == 0, process.stdout + process.stderr
    return recorded(stubs)


@pytest.mark.slow
def test_without_xtc_everything_up_to_the_compiler_is_made_and_the_level_says_so(built):
    answer, folder = built
    assert (answer["level"], answer["level_text"]) == ("simulator", "simulator, ours")
    assert not list(folder.rglob("*.xe"))
    described = json.loads((folder / f"{NET}_arena.json").read_text())
    assert described["loads"] and described["buffers"]
    container = (folder / f"{NET}_xmos_flash.bin").read_bytes()
    assert len(container) == 36 + 16 + 4 + len((folder / f"{NET}_weights.bin").read_bytes())
    names = {path.name for path in (folder / f"{NET}_xtc").iterdir()}
    assert names == {"CMakeLists.txt", "xs3.cmake", "config.xscope", "main.c"}
    assert "NOT TRIED" in (folder / f"{NET}_xtc/main.c").read_text()
    assert "@" not in (folder / f"{NET}_xtc/CMakeLists.txt").read_text()


def test_the_image_lies_in_the_chips_memories(built):
    """As its map says, too: the weights in flash, the arena and the code of each object in the tile's RAM."""
    answer, folder = built
    rows = {row["memory"]: row for row in answer["sizes"]}
    assert rows.keys() >= {"ram", "flash"} and "process" not in rows
    ram = {section["name"] for section in rows["ram"]["sections"]}
    assert {".text", ".cp.rodata", ".dp.bss.large"} <= ram
    assert rows["flash"]["used"] == len(answer["files"][f"{NET}_weights.bin"])
    asked = {"kind": "sizes", "board": "xcore", "elf": str(folder / f"{NET}.elf")}
    answer = handle(asked)
    assert answer["level"] == "simulator" and answer["files_from"] == "map"
    parts = [part for part in answer["parts"] if part["memory"] == "ram"]
    assert sum(part["bytes"] for part in parts) == rows["ram"]["used"]
    assert any(part["file"].endswith("nn_vpu_pixels.o") for part in parts)


@pytest.mark.slow
def test_without_clangs_back_end_the_vector_unit_is_a_model(tmp_path, monkeypatch):
    clang = find_clang().path
    program = tmp_path / "clang"
    program.write_text(f'#!/bin/sh\ncase "$*" in --print-targets) exit 0;; esac\nexec {clang} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("BUILDTOOL_CLANG", str(program))
    answer = handle({**REQUEST, "kind": "validate"})
    assert answer["exact"] and answer["level"] == "model"
    assert re.fullmatch(r"model on the host: clang [\d.]+ has no back end for XCore", answer["level_text"])
    with pytest.raises(ToolError, match="has no back end for XCore") as error:
        handle({**REQUEST, "toolchain": "xs3"})
    assert error.value.hints[-1].settings == (("toolchain", "clang"),)


@pytest.mark.slow
def test_an_arena_beside_the_tiles_ram_is_in_a_model(tmp_path):
    """The runner would place it in the tile's RAM, where a large one does not fit."""
    board = tmp_path / "lpddr.toml"
    board.write_text(
        'extends = "xcore"\nmemory.lpddr = { kind = "ram", base = 0x30000000, size = "32M" }\n'
        '[roles]\narena = "lpddr"\n'
    )
    asked = {**REQUEST, "kind": "validate", "board": str(board)}
    answer = handle(asked)
    assert answer["exact"] and answer["level"] == "model"
    assert "the XS3 runner has an arena in memory 'ram', not in 'lpddr'" in answer["level_text"]
    with pytest.raises(ToolError, match="not in 'lpddr'") as error:
        handle({**asked, "toolchain": "xs3"})
    assert error.value.hints[-1].settings == (("toolchain", "clang"),)


@pytest.mark.slow
def test_debuggers_and_sanitizers_get_programs_of_this_machine():
    for more in ({"kind": "debug"}, {"kind": "validate", "sanitize": True}):
        answer = handle({**REQUEST, **more})
        assert answer["level"] == "model" and answer.get("exact", True)
        with pytest.raises(UsageError, match="'xs3' makes no programs of this machine") as error:
            handle({**REQUEST, **more, "toolchain": "xs3"})
        assert error.value.hints[0].settings == (("toolchain", "clang"),)


@pytest.mark.slow
def test_xtc_gets_every_source_once_with_folders_that_are_there(built, calls):
    folder = built[1]
    compiled = [words for name, _, *words in calls if name == "xcc" and "-c" in words]
    sources = [words[words.index("-c") + 1] for words in compiled]
    kernel_sources = [path for path in (folder / "kernels").rglob("*") if path.suffix in (".c", ".S")]
    expected = {str(folder / f"{NET}_xtc/main.c"), str(folder / f"{NET}.c"), *map(str, kernel_sources)}
    resolved = [str((folder / f"{NET}_xtc" / source).resolve()) for source in sources]
    assert sorted(resolved) == sorted(expected) and len(kernel_sources) >= 4
    for words in compiled:
        assert {"-target=XK-EVK-XU316", "-O3", "-DNN_THREADS=5"} <= set(words)
    (link,) = [words for name, _, *words in calls if name == "xcc" and "-c" not in words]
    assert link[link.index("-o") + 1] == "app.xe"
    assert "-lquadflash" in link and any(word.endswith("config.xscope") for word in link)
    assert sum(word.endswith((".o", ".obj")) for word in link) == len(compiled)


@pytest.mark.slow
def test_the_application_with_the_vendors_functions_played_by_stubs_gives_the_references_output(
    built, calls, tmp_path
):
    folder = built[1]
    program = tmp_path / "app"
    replayed(calls, needs_tool("gcc"), folder / f"{NET}_xtc", program)
    flash = folder / f"{NET}_weights.bin"
    process = run_captured([program], environment() | {"STUB_FLASH": str(flash)})
    assert process.returncode == 0, process.stdout
    expected = zeros_through_the_reference()
    assert f"largest output [{expected.argmax()}] {expected.max()}," in process.stdout
    damaged = tmp_path / "damaged.bin"
    data = bytearray(flash.read_bytes())
    data[100] ^= 1
    damaged.write_bytes(data)
    for name, message in ((damaged, "init gives status 5"), (tmp_path / "none", "the flash does not answer")):
        failed = run_captured([program], environment() | {"STUB_FLASH": str(name)})
        assert failed.returncode == 1 and message in failed.stdout


def zeros_through_the_reference():
    graph, _ = read_graph(load_model(NET), Session())
    zeros = [np.zeros(graph.tensors[t].shape, np.int8) for t in graph.inputs]
    values = execute(graph, zeros)
    return np.asarray(values[graph.outputs[0]]).ravel()


@pytest.mark.slow
def test_what_is_no_program_of_the_chip_never_becomes_a_result(built, tmp_path, monkeypatch):
    """The stub of xcc writes a file that is not an .xe; below it writes none."""
    stubs = stub_tools(tmp_path / "bin", leaves=b"STUB")
    monkeypatch.setenv("PATH", environment(stubs)["PATH"])
    copy = tmp_path / "out"
    shutil.copytree(built[1], copy, ignore=shutil.ignore_patterns("build"))
    progress = []
    with pytest.raises(ToolError, match="that is not a program"):
        compile_project(NET, copy, progress.append)
    assert [line.partition(" ")[0] for line in progress] == ["cmake", "xmake"]
    assert [words for tool, _, *words in recorded(stubs) if tool == "xmake"] == [["-C", "build"]]


def test_half_an_installation_of_xtc_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", environment(stub_tools(tmp_path / "bin", names=("xcc",)))["PATH"])
    (tmp_path / f"{NET}_xtc").mkdir()
    with pytest.raises(ToolError, match="'xmake' is not: nothing is compiled"):
        compile_project(NET, tmp_path, print)


@pytest.mark.slow
def test_weights_that_are_read_in_place_have_no_project_and_a_streamed_image_has_one(tmp_path):
    memory = '[memory.lpddr]\nkind = "ram"\nbase = 0x40000000\nsize = "128M"\n'
    board = own_board(tmp_path, f'{memory}[roles]\nweights = "lpddr"', "xcore")
    names = handle({**REQUEST, "board": board})["files"]
    assert f"{NET}_arena.json" in names and not [name for name in names if "xtc" in name or "xmos" in name]
    streamed = handle({**REQUEST, "options": {"image": "stream"}})["files"]
    main = streamed[f"{NET}_xtc/main.c"].decode()
    assert f"{NET}_set_row_source(deliver_row, NULL);" in main and "_input(" not in main
    write_files(streamed, tmp_path)
    command = [needs_tool("gcc"), "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-std=gnu99"]
    folders = [f"-I{tmp_path}", f"-I{tmp_path}/kernels/include", f"-I{HEADERS}"]
    subprocess.run([*command, *folders, str(tmp_path / f"{NET}_xtc/main.c")], check=True)


@pytest.mark.slow
def test_what_is_asked_of_the_kit_itself_is_answered_with_the_lines_to_run(built):
    for request in ({"kind": "flash"}, {"kind": "validate", "on": "board"}):
        with pytest.raises(ToolError, match="XTC tools make the chip's program") as raised:
            handle({**REQUEST, **request})
        message = str(raised.value)
        assert (
            "xflash --target XK-EVK-XU316 --data ../" in message and "xrun --xscope build/app.xe" in message
        )
    # The project's own comment has the same lines.
    comment = (built[1] / f"{NET}_xtc/CMakeLists.txt").read_text()
    assert all(f"#     {line.format(net=NET)}\n" in comment for line in LINES)


# ---- the flash container -----------------------------------------------------------------------------


def nibbles(data):
    return bytes(int(f"{byte:02x}"[::-1], 16) for byte in data)


def parts_of(data):
    """Returns the parts of every network in a container's file, found by the offsets alone."""
    memory = nibbles(data)
    pattern = b"\xff\0" + b"\x0f" * 6 + b"\xff\0" * 4 + b"\x31\xf7\xce\x08" * 2 + b"\x9c\x63" * 4
    assert memory[:36] == pattern + b"\x01\x02\xfe\xfd"
    if len(memory) == 36:
        return []
    # The number of networks is not written: the first model begins where the offsets end.
    first = struct.unpack_from("<I", memory, 36)[0]
    table = [struct.unpack_from("<4I", memory, at) for at in range(36, first, 16)]
    ends = [*(offsets[0] for offsets in table[1:]), len(memory)]
    parts = []
    for (model, params, operators, xip), end in zip(table, ends, strict=True):
        assert model + 4 <= params <= operators <= xip <= end
        assert struct.unpack_from("<I", memory, model)[0] == params - model - 4
        cuts = (model + 4, params, operators, xip, end)
        parts.append(tuple(memory[begin:stop] for begin, stop in pairwise(cuts)))
    return parts


def as_parts(entry):
    return (entry.model, entry.params, entry.operators, entry.xip)


@pytest.mark.parametrize("seed", range(20))
def test_an_independent_reader_finds_every_part(seed):
    chance = random.Random(seed)

    def some():
        return chance.randbytes(chance.choice((0, 1, 15, 16, 4097)))

    entries = [Entry(some(), some(), some(), some()) for _ in range(chance.randint(0, 5))]
    assert parts_of(pack(entries)) == [as_parts(entry) for entry in entries]
