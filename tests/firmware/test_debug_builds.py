"""Builds for a debugger are as exact as others, and their symbols name no path of this machine."""

import io
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from loaded import own_board
from needs import skip_without_tool
from paths import ROOT

from buildtool.api import handle
from buildtool.base.errors import ToolError
from buildtool.plan.codec import from_bytes

NET = "ds_cnn"
STREAMED = {"image": "stream", "objective": "ram"}
# Both compilers, and both forms of emitted code.
BOARDS = [("cortex-m4", "gcc", {}), ("hifive1", "clang", STREAMED)]


def build(board, toolchain="", **more):
    request = {"kind": "build", "model": NET, "board": board, **more}
    try:
        return handle(request | ({"toolchain": toolchain} if toolchain else {}))
    except ToolError as error:
        skip_without_tool(error)
        raise


def names(elf, prefix):
    """The names of functions and variables in debug information that begin with a prefix."""
    every = set()
    for unit in elf.get_dwarf_info().iter_CUs():
        for entry in unit.iter_DIEs():
            if entry.tag in ("DW_TAG_subprogram", "DW_TAG_variable") and "DW_AT_name" in entry.attributes:
                every.add(entry.attributes["DW_AT_name"].value.decode())
    return {name for name in every if name.startswith(prefix)}


@pytest.mark.slow
@pytest.mark.parametrize(("board", "toolchain"), [("cortex-m4", "gcc"), ("hifive1", "clang")])
def test_a_debug_build_has_symbols_and_no_path_of_this_machine(board, toolchain, tmp_path, monkeypatch):
    answer = build(board, toolchain, debug=True)
    data = answer["files"][f"{NET}.elf"]
    elf = ELFFile(io.BytesIO(data))
    assert elf.has_dwarf_info()
    assert {f"{NET}_arena"} <= names(elf, NET)
    regions = from_bytes(answer["files"][f"{NET}.plan"]).regions
    assert len(regions) > 5
    assert {f"region_{n}" for n in range(len(regions))} <= names(elf, "region_")
    table = answer["files"][f"{NET}.map"]
    for path in (str(ROOT), "/tmp", str(Path.home())):
        assert path.encode() not in data
        assert path.encode() not in table
    assert b"/buildtool/kernels/" in data
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # compiled anew, in another folder
    again = build(board, toolchain, debug=True)["files"]
    assert (again[f"{NET}.elf"], again[f"{NET}.map"]) == (data, table)


@pytest.mark.slow
@pytest.mark.parametrize(("board", "toolchain", "options"), BOARDS)
def test_a_debug_build_is_exact_and_its_stack_is_told(board, toolchain, options):
    firmware = build(board, toolchain, debug=True, options=options)
    request = {"kind": "validate", "model": NET, "board": board, "debug": True, "options": options}
    answer = handle(request | ({"toolchain": toolchain} if toolchain else {}))
    assert answer["exact"]
    for stack in firmware["stacks"]:
        assert answer["stack_high_water"] <= stack["needed"] + 256 <= stack["reserved"]
    assert len(firmware["stacks"]) == 1


@pytest.mark.slow
def test_a_stack_that_debug_code_overruns_is_told(tmp_path):
    answer = build(own_board(tmp_path, "stack_bytes = 256"), "clang", debug=True)
    (stack,) = answer["stacks"]
    assert stack["needed"] > stack["reserved"] == 256
