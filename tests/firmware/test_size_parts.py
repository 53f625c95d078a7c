"""The parts of firmware images: of real compilers and linkers, and of odd or damaged files."""

import functools
import io
import json
import random
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from needs import needs_tool

from buildtool.base.errors import ToolError
from buildtool.firmware.firmware import link, map_of
from buildtool.firmware.objects import Compiler, Unit, compile_all, run
from buildtool.firmware.parts import origin, parts
from buildtool.firmware.sizes import size_report
from buildtool.fronts.cli import main as cli
from buildtool.target.registry import load_board, load_target, plugin

SOURCES = {
    "net": """
extern int nn_work(int), part_sum(int);
const char net_table[300] = {1, 2, 3};
int net_state[50];
int __attribute__((noinline)) net_invoke(void) {
    net_state[2] += nn_work(net_table[net_state[1] & 255]);
    return part_sum(net_state[3]);
}
int main(void) { return net_invoke(); }
""",
    "nn_work": """
static int __attribute__((noinline)) turn(volatile int *at) { return *at * 3 + at[1]; }
int nn_work(int x) { volatile int both[2] = {x, x + 1}; return turn(both); }
""",
    "part": """
volatile int part_data[700] = {1, 2, 3};
extern volatile int part_again[700] __attribute__((alias("part_data")));
volatile char part_zero[1111];
int part_sum(int x) { return part_data[x] + part_again[x + 1] + part_zero[x]; }
""",
}
BUILDS = [("host", "gcc"), ("host", "clang"), ("cortex-m4", "gcc"), ("cortex-m4", "clang")]
BUILDS += [("hifive1", "clang"), ("esp8266", "gcc")]
PROGRAMS = {("cortex-m4", "gcc"): "arm-none-eabi-gcc", ("esp8266", "gcc"): "xtensa-lx106-elf-gcc"}


@functools.cache
def linked(board_name, tool):
    """A firmware image of SOURCES, with `part` from a library, and the linker's map."""
    needs_tool(PROGRAMS.get((board_name, tool), tool))
    target = load_target(board_name)
    tools = plugin(target.board).toolchain(target.board, tool)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stem, text in SOURCES.items():
            (folder / f"{stem}.c").write_text(text)
        compiler = Compiler(tools.cc, tools.identity, tools.cflags)
        units = [Unit(folder / f"{stem}.c") for stem in SOURCES]
        (folder / "obj").mkdir()
        *objects, last = compile_all(compiler, units, folder / "obj")
        run([tools.ar, "rcs", "libpart.a", str(last.relative_to(folder))], "archiving", folder)
        elf = folder / "app.elf"
        entry = () if board_name == "host" else ("-Xlinker", "-e", "-Xlinker", "net_invoke")
        link(tools, [*objects, folder / "libpart.a"], elf, target, entry)
        return elf.read_bytes(), map_of(elf).read_text()


def added(rows, key="memory"):
    total = Counter()
    for part in rows:
        total[part[key]] += part["bytes"]
    return total


def by_symbol(rows, kinds=("code", "constants", "variables", "initial values")):
    return added([part for part in rows if part["kind"] in kinds], "symbol")


@pytest.mark.parametrize(("board_name", "tool"), BUILDS)
def test_every_byte_is_counted_once_and_has_an_owner(board_name, tool):
    elf, table = linked(board_name, tool)
    board = load_board(board_name)
    report = {memory["memory"]: memory["used"] for memory in size_report(elf, board) if memory["used"]}
    table_of_symbols = ELFFile(io.BytesIO(elf)).get_section_by_name(
        ".symtab"
    )  # as pyelftools reads each symbol
    for map_used in (table, ""):
        split = parts(elf, board, ["net"], map_used)
        assert added(split.parts) == report
        sizes = by_symbol(split.parts)
        copies = by_symbol(split.parts, ["initial values"])
        assert (sizes["net_table"], sizes["net_state"], sizes["part_zero"]) == (300, 200, 1111)
        data, copy = (total["part_data"] + total["part_again"] for total in (sizes, copies))
        assert data == (2800 if board_name == "host" else 5600) and data - copy == 2800
        for name in ("net_invoke", "nn_work", "turn", "part_sum"):
            assert sizes[name] == table_of_symbols.get_symbol_by_name(name)[0]["st_size"] > 0
        owners = {part["symbol"]: part["owner"] for part in split.parts}
        assert owners["net_invoke"] == owners["net_table"] == "network"
        assert owners["nn_work"] == owners["turn"] == "kernels"
        assert owners["part_sum"] == "application"
        files = {part["symbol"]: (part["library"], part["file"]) for part in split.parts}
        assert split.files_from == ("map" if map_used else "symbols")
        assert files["turn"] == ("", "nn_work.o" if map_used else "nn_work.c")
        if map_used:
            assert files["part_sum"] == ("libpart.a", "002_part.o")


def test_the_map_of_another_image_is_not_used():
    elf, table = linked("cortex-m4", "gcc")
    other = table.replace("net_table", "net_other")
    board = load_board("cortex-m4")
    size = re.search(r"^\.text +0x[0-9a-f]+ +(0x[0-9a-f]+)", table, re.MULTILINE)[1]
    assert parts(elf, board, ["net"], other).files_from == "map"
    assert parts(elf, board, ["net"], table.replace(size, "0x10")).files_from == "symbols"
    assert parts(elf, board, ["net"], "no map at all\n" * 10).files_from == "symbols"


def test_the_command_shows_a_tree_and_what_changed(tmp_path, capsys):
    """Its figures are those of the answers. It returns 1 where a limit is exceeded."""
    answers = {}
    for tool in ("clang", "gcc"):
        elf, table = linked("cortex-m4", tool)
        (tmp_path / f"{tool}.elf").write_bytes(elf)
        (tmp_path / f"{tool}.map").write_text(table)
        assert cli.run(["sizes", str(tmp_path / f"{tool}.elf"), "--board", "cortex-m4", "--json"]) == 0
        answers[tool] = json.loads(capsys.readouterr().out)
        assert answers[tool]["files_from"] == "map"  # the one in the image's folder
    line = ["sizes", str(tmp_path / "gcc.elf"), "--board", "cortex-m4"]
    assert cli.run([*line, "--depth", "5"]) == 0
    rows = [" ".join(row.split()) for row in capsys.readouterr().out.splitlines()]
    for level, name in (("library", "libpart.a"), ("symbol", "part_zero"), ("owner", "kernels")):
        size = sum(p["bytes"] for p in answers["gcc"]["parts"] if (p["memory"], p[level]) == ("sram", name))
        assert not size or f"{name} {size:,}" in rows
    assert "part_zero 1,111" in rows
    since = [*line, "--diff", str(tmp_path / "clang.elf")]
    code = {tool: sum(p["bytes"] for p in a["parts"] if p["kind"] == "code") for tool, a in answers.items()}
    grown = code["gcc"] - code["clang"]
    assert grown
    assert cli.run([*since, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (total,) = (row for row in answer["totals"] if row["name"] == "code")
    assert (total["before"], total["after"]) == (code["clang"], code["gcc"])
    limit = f"code+{max(0, grown - 1)}" if grown > 0 else "memory.sram+0"
    assert cli.run([*since, "--fail-if", limit]) == (1 if grown > 0 else 0)
    assert cli.run([*since, "--markdown", "--depth", "2"]) == 0
    assert "| memory, and what is in it | before | after | change |" in capsys.readouterr().out
    for wrong in (["--markdown"], ["--fail-if", "code+0"], ["--depth", "0"], ["--map", str(tmp_path)]):
        assert cli.run([*line, *wrong]) == 2
    assert cli.run([*since, "--fail-if", "cycles+0"]) == 2


def tool_made(tmp_path, *command):
    subprocess.run([*command], cwd=tmp_path, check=True, capture_output=True)


def test_images_without_symbols_sections_or_both_are_added_up(tmp_path):
    elf, _ = linked("host", "gcc")
    board = load_board("host")
    whole = size_report(elf, board)[0]["used"]
    (tmp_path / "stripped").write_bytes(elf)
    tool_made(tmp_path, needs_tool("strip"), "stripped")
    rows = parts((tmp_path / "stripped").read_bytes(), board, []).parts
    assert added(rows) == {"process": whole}
    assert {part["symbol"] for part in rows} <= {"(unnamed)", "(padding)"}
    bare = bytearray(elf)
    bare[0x28:0x30], bare[0x3C:0x40] = bytes(8), bytes(4)  # e_shoff; e_shnum, e_shstrndx
    rows = parts(bytes(bare), board, ["net"]).parts
    assert added(rows)["process"] == size_report(bytes(bare), board)[0]["used"] > 0
    assert all(part["section"].startswith("(segment ") for part in rows)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["gcc", "clang"])
def test_an_image_optimised_when_linked_names_no_file_that_is_not_there(tmp_path, tool):
    program = needs_tool(tool)
    for stem, text in SOURCES.items():
        (tmp_path / f"{stem}.c").write_text(text)
    names = [f"{stem}.c" for stem in SOURCES]
    linker = ["-fuse-ld=lld"] if tool == "clang" else []
    flags = ["-O2", "-flto", "-Wl,-Map=app.map", "-o", "app.elf", *linker]
    tool_made(tmp_path, program, *flags, *names)
    elf, table = (tmp_path / "app.elf").read_bytes(), (tmp_path / "app.map").read_text()
    board = load_board("host")
    split = parts(elf, board, ["net"], table)
    assert split.files_from == "map"
    assert added(split.parts) == {"process": size_report(elf, board)[0]["used"]}
    assert by_symbol(split.parts)["part_zero"] == 1111
    assert not any(re.search(r"ltrans|lto\.|cc\w{6}", part["file"]) for part in split.parts)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["gcc", "-gdwarf-4"], ["gcc", "-gdwarf-5"], ["clang", "-g"]], ids=" ".join)
def test_debug_information_says_which_file_code_is_of(tmp_path, flags):
    """This includes global functions, for which the symbol table of this machine's compilers has no file."""
    program, *flags = flags
    for stem, text in SOURCES.items():
        (tmp_path / f"{stem}.c").write_text(text)
    names = [str(tmp_path / f"{stem}.c") for stem in SOURCES]
    tool_made(tmp_path, needs_tool(program), "-O2", *flags, "-ffunction-sections", "-o", "app.elf", *names)
    elf = (tmp_path / "app.elf").read_bytes()
    board = load_board("host")
    split = parts(elf, board, ["net"])
    files = {part["symbol"]: part["file"] for part in split.parts}
    assert [files[name] for name in ("net_invoke", "nn_work", "part_sum")] == ["net.c", "nn_work.c", "part.c"]
    assert added(split.parts) == {"process": size_report(elf, board)[0]["used"]}
    # damaged debug information has less, but nothing fails
    at = elf.index(b"\0.debug_info\0")
    parts(elf[:at] + b"\0.debug_xnfo\0" + elf[at + 13 :], board, ["net"])
    section = ELFFile(io.BytesIO(elf)).get_section_by_name(".debug_info")
    begin, end = section["sh_offset"], section["sh_offset"] + section["sh_size"]
    for place in range(begin, end, max(1, (end - begin) // 8)):
        damaged = parts(elf[:place] + b"\xff" + elf[place + 1 :], board, ["net"])
        assert added(damaged.parts) == added(split.parts)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not an ELF image"),
        (b"!<arch>\n" + bytes(60), "a library"),
        (b"\x64\x86" + bytes(60), "a COFF object"),
        (b"MZ" + bytes(60), "a program for Windows"),
        (b"BC\xc0\xde" + bytes(60), "bitcode"),
        (b"UF2\n" + bytes(60), "a file for flash"),
    ],
)
def test_other_files_are_named_for_what_they_are(data, says):
    with pytest.raises(ToolError) as caught:
        parts(data, load_board("host"), [])
    assert says in str(caught.value)


def damaged_images():
    """(image, board, map): cut, with a wrong byte behind the headers, or with four wrong bytes in them."""
    elf, table = linked("cortex-m4", "clang")
    headers = int.from_bytes(elf[0x20:0x24], "little")
    ends = [*range(0, 64, 5), *range(64, len(elf), max(1, len(elf) // 20))]
    images = [elf[:end] for end in ends]
    images += [elf[:at] + b"\xff" + elf[at + 1 :] for at in range(headers, len(elf), 61)]
    yield from ((data, "cortex-m4", table) for data in images)
    program, draw = linked("host", "gcc")[0], random.Random(1)
    for _ in range(60):
        damaged = bytearray(program)
        for _ in range(4):
            damaged[draw.choice([draw.randrange(64), -1 - draw.randrange(2000)])] = draw.randrange(256)
        yield bytes(damaged), "host", ""


def test_cut_and_damaged_images_are_refused_or_added_up():
    counts = Counter()
    for data, name, table in damaged_images():
        board = load_board(name)
        try:
            rows = parts(data, board, ["net"], table).parts
            report = {memory["memory"]: memory["used"] for memory in size_report(data, board)}
        except ToolError:
            counts[name, False] += 1
            continue
        counts[name, True] += 1
        assert added(rows) == {memory: used for memory, used in report.items() if used}
    assert len(counts) == 4  # some of each board are refused, and some not


@pytest.mark.parametrize(
    ("path", "library", "file"),
    [
        ("./obj/000_net.o", "", "net.o"),
        ("build/main.c.obj", "", "build/main.c.obj"),
        ("/usr/lib/libgcc.a(_udivsi3.o)", "libgcc.a", "_udivsi3.o"),
        ("libc.a:memcpy.o", "libc.a", "memcpy.o"),
        ("/tmp/ccAb12Cd.ltrans0.ltrans.o", "", "(link-time optimised)"),
        ("app.elf.lto.o", "", "(link-time optimised)"),
        ("<internal>", "", "(linker)"),
    ],
)
def test_an_object_is_named_without_this_machines_folders(path, library, file):
    assert origin(path) == (library, file)
