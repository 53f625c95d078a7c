import re
from dataclasses import replace
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import OLDEST_CLANG, find_clang, find_gcc
from paths import ROOT, script

from buildtool.api.checking.cases import network
from buildtool.base.errors import TargetError, ToolError
from buildtool.base.objects import reads
from buildtool.emit import blocks, packing
from buildtool.fronts.cli import main as cli
from buildtool.graph.types import OpKind
from buildtool.target.catalogue import select
from buildtool.target.registry import ask_plugin, load_board, load_target, plugin
from buildtool.target.types import RunRequest, RunResult


@pytest.fixture
def bare_machine(tmp_path, monkeypatch):
    """A PATH without programs."""
    for name in ("BUILDTOOL_CLANG", "BUILDTOOL_GCC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(folder, name, says):
    return script(folder / name, f"echo '{says}'")


def test_another_compiler_behind_an_unchanged_script_is_asked_what_it_is(bare_machine):
    """Also in a long-running process such as the daemon."""
    included = bare_machine / "behind"
    script(bare_machine / "clang-30", f". {included}")
    for version in ("22.1.8", "21.1.1"):
        included.write_text(f"echo clang version {version}\n")
        assert find_clang().identity == f"clang {version}"


def tools(board, name):
    target_board = load_board(board)
    return plugin(target_board).toolchain(target_board, name)


def emulated(board, _name):
    target_board = load_board(board)
    plugin(target_board).run(target_board, Path("x.elf"), RunRequest({}, ()))


@pytest.mark.parametrize(
    ("ask", "board", "tool", "message", "hint"),
    [
        (tools, "cortex-m4", "clang", "found", "apt-get install clang-22 lld-22"),
        (tools, "cortex-m4", "", "found", "apt-get install clang-22 lld-22"),
        (tools, "cortex-m55", "gcc", "found", "apt-get install gcc-arm-none-eabi"),
        (tools, "host", "", "found", "apt-get install"),
        (tools, "cortex-m4", "clangg", "no toolchain 'clangg'", "did you mean 'clang'?"),
        (tools, "host", "clangg", "no toolchain 'clangg'", "did you mean 'clang'?"),
        (emulated, "cortex-m4", "", "qemu-system-arm was not found", "apt-get install qemu-system-arm"),
    ],
)
def test_what_is_missing_is_named_with_what_helps(bare_machine, ask, board, tool, message, hint):
    with pytest.raises(ToolError, match=message) as caught:
        ask(board, tool)
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["", "clang"])
def test_the_board_s_other_compiler_is_named_where_it_is_installed(bare_machine, name):
    program(bare_machine, "arm-none-eabi-gcc", "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205")
    program(bare_machine, "arm-none-eabi-ar", "")
    with pytest.raises(ToolError, match="clang 16 or newer was not found") as caught:
        tools("cortex-m4", name)
    assert caught.value.hints[0].settings == (("toolchain", "gcc"),)
    assert "arm-none-eabi-gcc 12.2.1 is installed" in caught.value.hint
    assert tools("cortex-m4", "gcc").identity == "arm-none-eabi-gcc 12.2.1"  # what the hint asks for
    with pytest.raises(ToolError) as caught:
        tools("hifive1", "")  # its family has no other one
    assert "toolchain" not in caught.value.hint


def test_the_newest_clang_is_taken_and_a_linker_that_belongs_to_it(bare_machine):
    program(bare_machine, "clang", "clang version 14.0.6")
    with pytest.raises(ToolError, match="clang 16 or newer"):
        find_clang()
    program(bare_machine, "clang-18", "clang version 18.1.8")
    program(bare_machine, "clang-19", "Debian clang version 19.1.7 (3)")
    assert find_clang().identity == "clang 19.1.7"  # without a path
    with pytest.raises(ToolError, match=r"ld\.lld-19") as caught:
        tools("cortex-m4", "clang")
    assert caught.value.hint == "apt-get install lld-19"


def test_gcc_s_version_is_not_the_packager_s(bare_machine):
    program(bare_machine, "arm-none-eabi-gcc", "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205")
    assert find_gcc("arm-none-eabi-gcc", "").identity == "arm-none-eabi-gcc 12.2.1"


def test_the_environment_names_a_compiler(bare_machine, monkeypatch):
    program(bare_machine, "clang-19", "clang version 19.1.7")
    chosen = program(bare_machine, "mine", "clang version 17.0.6")
    monkeypatch.setenv("BUILDTOOL_CLANG", str(chosen))
    assert find_clang().path == str(chosen)
    monkeypatch.setenv("BUILDTOOL_CLANG", str(bare_machine / "none"))
    with pytest.raises(ToolError, match="BUILDTOOL_CLANG"):
        find_clang()


@pytest.mark.parametrize("board", ["host", "cortex-m4", "hifive1", "xcore"])
@pytest.mark.parametrize(
    ("says", "error"),
    [
        (None, "BUILDTOOL_CLANG: there is no program "),
        ("Ubuntu clang version 14.0.0", "is clang 14.0.0; clang 16 or newer is needed"),
        ("gcc (GCC) 12.2.0", "is not a clang that runs"),
    ],
    ids=["missing", "old", "another"],
)
def test_a_wrong_choice_of_the_environment_is_not_passed_over(bare_machine, monkeypatch, board, says, error):
    program(bare_machine, "clang-19", "clang version 19.1.7")
    program(bare_machine, "ld.lld-19", "LLD 19.1.7")
    program(bare_machine, "gcc", "gcc (Debian 12.2.0-14) 12.2.0")
    chosen = program(bare_machine, "mine", says) if says else bare_machine / "none"
    monkeypatch.setenv("BUILDTOOL_CLANG", str(chosen))
    with pytest.raises(ToolError) as caught:
        tools(board, "")
    assert error in caught.value.text
    assert "BUILDTOOL_CLANG" in caught.value.hint


def test_the_oldest_clang_is_the_same_everywhere():
    patterns = {"dev": r"clang_oldest=(\d+)", "docs/reference/boards.md": r"newest of clang-(\d+) and later"}
    for name, pattern in patterns.items():
        (version,) = re.findall(pattern, (ROOT / name).read_text())
        assert int(version) == OLDEST_CLANG


@pytest.mark.parametrize(
    ("name", "tool"),
    [(name, tool) for name in ("cortex-m4", "cortex-m55", "host") for tool in load_board(name).toolchains],
)
def test_every_build_forbids_contraction_of_floating_point(name, tool):
    toolchain = tools(name, tool)
    assert "-ffp-contract=off" in toolchain.cflags
    assert re.fullmatch(r"[a-z-]+ \d+\.\d+\.\d+", toolchain.identity)


# ---- mistakes of plugins -----------------------------------------------------------------------------


def failing(*_words):
    raise KeyError("x")


def test_a_method_that_fails_or_gives_something_else_is_named():
    with pytest.raises(TargetError, match=r"plugin 'acme' failed in run: KeyError: 'x' \(.*tools.py, "):
        ask_plugin("acme", "run", failing, RunResult)
    with pytest.raises(TargetError, match="plugin 'acme': run returns None"):
        ask_plugin("acme", "run", lambda: None, RunResult)
    with pytest.raises(KeyError):  # in buildtool's own plugins it is an internal error
        ask_plugin("host", "run", failing, RunResult)


@pytest.mark.parametrize(
    ("build", "says"), [(failing, "failed: KeyError: 'x' "), (lambda *_: "abc", "returned 'str', not bytes")]
)
def test_a_packing_that_fails_or_makes_no_bytes_is_named(tmp_path, monkeypatch, build, says):
    graph = network(OpKind.CONV_2D, 3, among=False)
    kernel = replace(select(load_target("host"), graph, graph.ops[0]), packer=tmp_path / "packing.py")
    monkeypatch.setattr(packing, "packings", lambda _file: {kernel.packing: build})
    with pytest.raises(TargetError, match=says) as raised:
        packing.pack(graph, graph.ops[0], kernel)
    assert "not in the network" in raised.value.hint


def test_a_packing_of_ours_that_fails_is_an_internal_error(monkeypatch, capsys):
    """The message has the operator and the traceback; the exit status is 70, and not 1."""

    def overflows(*_words):
        return blocks.words(1 << 31)

    monkeypatch.setattr(packing, "packings", lambda _file: {"conv_plain": overflows})
    assert cli.run(["emit", "ds_cnn", "--board", "host", "--out", "unused"]) == cli.INTERNAL
    errors = capsys.readouterr().err
    assert "internal error: OverflowError" in errors
    assert "please report it" in errors
    assert "#0 CONV_2D" in errors


def test_a_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TargetError, match="but it does not exist"):
        reads(tmp_path / "a.c", ())
