import subprocess

import pytest
from buildtool_plugins.qemu import counting
from buildtool_plugins.tools.find import find_clang, find_host_compiler
from elftools.elf.elffile import ELFFile
from probe import ARM, RISCV, ROOT, XTENSA, kernels_root, load_board, one_set, plugin, probe, report, run

from buildtool.base import programs
from buildtool.base.errors import ToolError
from buildtool.base.session import Session, working
from buildtool.base.store.cache import Cache
from buildtool.target.types import RunRequest

# Operator 3 of the cores that have it: movs, dls, then 10 times nop and le; four vector instructions.
OWN = {"cortex-m55": 2 + 2 * 10, "qemu-virt-rv32v": 4, "qemu-virt-rv32v256": 4}


@pytest.mark.parametrize(("board", "tool"), [*ARM, *RISCV, ("qemu-virt-rv32v256", "clang"), *XTENSA])
def test_counts_are_those_of_the_hand_written_assembly(board, tool):
    """The numbers are read off tests/targets/probe/probe.c: markers do not count, skipped instructions do."""
    result = run(board, probe(board, tool), one_set("count"), count=True)
    loop = 1 + 2 * 100  # movs, then 100 times subs and bne
    expected = {70: loop + 1, 4095: 4} | ({3: OWN[board]} if board in OWN else {})
    assert result.counts == expected
    assert result.total_instructions == sum(expected.values()) + 2  # nops between two operators
    assert report(result)["guard_ok"] == 1


def test_a_marker_before_an_instruction_that_straddles_two_pages_is_seen():
    elf = probe("cortex-m4", "clang")
    assert run("cortex-m4", elf, one_set("straddle"), count=True).counts == {69: 1}


def test_counts_are_summed_over_the_sets_and_the_same_in_every_run():
    elf = probe("cortex-m4", "clang")
    results = [run("cortex-m4", elf, *[one_set("count")] * 3, count=True) for _ in range(2)]
    assert [r.total_instructions for r in results] == [3 * (202 + 4 + 2)] * 2
    assert [r.counts for r in results] == [{70: 3 * 202, 4095: 3 * 4}] * 2


def test_a_run_without_an_invoke_is_refused_rather_than_counted_as_nothing():
    with pytest.raises(ToolError, match="no invoke was counted") as caught:
        run("cortex-m4", probe("cortex-m4", "clang"), one_set("echo"), count=True)
    assert "holds no network" in caught.value.hint


def test_counting_does_not_change_results():
    elf = probe("cortex-m4", "clang")
    with_counts = run("cortex-m4", elf, one_set("count"), count=True).files
    assert with_counts == run("cortex-m4", elf, one_set("count")).files


def test_the_host_does_not_count():
    board = load_board("host")
    request = RunRequest({"input.bin": b""}, (), count=True)
    with pytest.raises(ToolError, match="cannot be counted on board 'host'"):
        plugin(board).run(board, probe("host", "gcc"), request)


def test_the_counting_plugin_is_compiled_once_and_no_altered_one_is_loaded(tmp_path, monkeypatch):
    """It is a level of the cache, as compiled objects are."""
    commands = []
    run = programs.subprocess.run

    def counted(command, **keywords):
        commands.append(command)
        return run(command, **keywords)

    def made():
        keeper = Cache(tmp_path / "cache", "code")
        with working(Session(keeper=keeper)):
            built = counting.counting_plugin().read_bytes()
        keeper.flush()
        return built

    monkeypatch.setattr(programs.subprocess, "run", counted)
    monkeypatch.setattr(programs, "at_work", programs.at_work.real)
    first = made()
    assert made() == first
    assert sum("-MD" in command for command in commands) == 1
    (entry,) = (tmp_path / "cache" / "programs").glob("*/*")
    entry.write_bytes(entry.read_bytes()[:-9] + b"something")
    assert made() == first
    assert sum("-MD" in command for command in commands) == 2


@pytest.mark.parametrize(
    ("isa", "flags"),
    [("arm", ["--target=arm-none-eabi", "-mcpu=cortex-m4"]), ("riscv", ["--target=riscv32", "-mno-relax"])],
)
def test_markers_are_decoded_on_every_architecture(isa, flags, tmp_path):
    """The plugin compiled for this machine, run over assembled markers without QEMU."""
    clang = find_clang().path
    code, driver = tmp_path / "code.o", tmp_path / "driver"
    markers = [*flags, "-O1", f"-I{kernels_root() / 'include'}", "-c", ROOT / "markers.c"]
    subprocess.run([clang, *markers, "-o", code], check=True)
    with code.open("rb") as file:
        (tmp_path / "code.bin").write_bytes(ELFFile(file).get_section_by_name(".text.markers").data())
    plugin_source = f'-DPLUGIN="{counting.SOURCE}"'
    subprocess.run(
        [find_host_compiler(), plugin_source, "-Wall", "-Werror", ROOT / "drive_count.c", "-o", driver],
        check=True,
    )
    subprocess.run([driver, isa, "code.bin"], check=True, cwd=tmp_path)
    counts, total = counting.parse_counts((tmp_path / "counts.txt").read_bytes())
    assert counts == {0: 1, 63: 2, 64: 3, 4095: 4}
    assert total == 1 + 2 + 3 + 4 + 1


@pytest.mark.parametrize("text", [b"total x\n", b"3\n", b"invokes 1\n-4 5\n"])
def test_a_damaged_list_of_counts_is_an_error(text):
    with pytest.raises(ToolError, match="counting plugin wrote"):
        counting.parse_counts(text)
