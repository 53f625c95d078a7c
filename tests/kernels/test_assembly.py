"""Helium's functions in assembly: what debuggers unwind them by, and where branches are protected."""

import re
import subprocess

import kernelcases
import numpy as np
import pytest
from boardcalls import recording
from needs import needs_tool
from placement import run_whole

from buildtool.graph.types import Activation, OpKind
from buildtool.target.kernels import kernels_root

FAMILY = "cortex_m_mve"
CPU = ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard")
PROTECTED = ("-mcpu=cortex-m85", "-mthumb", "-mfloat-abi=hard", "-mbranch-protection=standard")
# Bytes that a register takes on the stack, by its letter.
REGISTER_BYTES = {"d": 8}


def sources():
    return sorted((kernels_root() / FAMILY).glob("*.S"))


def assemble(compiler, flags, source, folder):
    """Assembles a file, and returns the object."""
    target = ("--target=thumbv8.1m.main-none-eabi",) if "clang" in compiler else ()
    path = folder / f"{source.stem}.o"
    include = f"-I{kernels_root() / 'include'}"
    subprocess.run([compiler, *target, *flags, include, "-c", source, "-o", path], check=True)
    return path


def output(tool, *words):
    return subprocess.run([needs_tool(tool), *words], check=True, capture_output=True, text=True).stdout


def functions(path):
    """Returns for each function its instructions, as (address, text)."""
    found = []
    for line in output("arm-none-eabi-objdump", "-d", "--no-show-raw-insn", path).splitlines():
        if re.fullmatch(r"[0-9a-f]+ <(\w+)>:", line):
            found.append([])
        elif match := re.match(r" *([0-9a-f]+):\t(.*)", line):
            found[-1].append((int(match[1], 16), re.sub(r"\s*@.*", "", match[2]).replace("\t", " ")))
    return found


def depth_change(text):
    """Returns by how many bytes the stack pointer moves down, and which registers are pushed."""
    if match := re.match(r"(?:v?push|stmdb sp!,|v?pop|ldmia\.w sp!,) ?\{(.*)\}", text):
        names = [name for part in match[1].split(", ") for name in _spread(part)]
        size = sum(REGISTER_BYTES.get(name[0], 4) for name in names)
        return (-size, []) if re.match(r"v?pop|ldm", text) else (size, names)
    if match := re.fullmatch(r"(sub|add)(?:\.w)? sp,(?: sp,)? #(\d+)", text):
        return (int(match[2]) if match[1] == "sub" else -int(match[2])), []
    if match := re.fullmatch(r"(?:str\.w (\w+), \[sp, #-4\]!|ldr\.w (\w+), \[sp\], #4)", text):
        return (4, [match[1]]) if match[1] else (-4, [])
    assert "sp!" not in text and not re.match(r"\w+(\.w)? sp,", text), text
    return 0, []


def _spread(part):
    first, dash, last = part.partition("-")
    return [f"{first[0]}{n}" for n in range(int(first[1:]), int(last[1:]) + 1)] if dash else [first]


def frames(path):
    """Returns for each function: address -> (bytes to the frame's base, places of saved registers)."""
    tables, columns, initial = [], [], {}
    for line in output("arm-none-eabi-readelf", "-wF", path).splitlines():
        if " CIE " in line:  # the state that functions behind it begin with
            rows = initial = {}
        elif " FDE " in line:
            rows = dict(initial)
            tables.append(rows)
        elif line.startswith("   LOC"):
            columns = line.split()[2:]
        elif match := re.match(r"([0-9a-f]{8}) r13\+(\d+)(.*)", line):
            places = dict(zip(columns, match[3].split(), strict=True))
            saved = {name: int(place[1:]) for name, place in places.items() if place != "u"}
            rows[int(match[1], 16)] = (int(match[2]), saved)
    return tables


def number(name):
    """Returns a register's name as readelf has it."""
    other = {"sl": "r10", "fp": "r11", "lr": "ra"}
    return f"r{256 + int(name[1:])}" if name[0] == "d" else other.get(name, name)


@pytest.mark.parametrize("compiler", ["clang", "arm-none-eabi-gcc"])
def test_debuggers_know_each_frame(compiler, tmp_path):
    """At each instruction the table has the stack's depth and each register's place as pushes leave them."""
    for source in sources():
        path = assemble(needs_tool(compiler), CPU, source, tmp_path)
        code, tables = functions(path), frames(path)
        assert len(code) == len(tables) > 0, source
        for instructions, table in zip(code, tables, strict=True):
            state, states, returned = table[0], [], False
            for address, text in instructions:
                row = table[max(begin for begin in table if begin <= address)]
                state = row if returned and row in states else state
                assert row == state, (source.name, hex(address), text)
                states.append(state)
                state, returned = after(text, *state), "pc}" in text


def after(text, depth, saved):
    """Returns the state of the stack behind an instruction."""
    change, names = depth_change(text)
    depth += change
    if names and (names[-1] == "lr" or names[0][0] == "d"):
        sizes = [REGISTER_BYTES.get(name[0], 4) for name in names]
        saved = saved | {number(name): -depth + sum(sizes[:n]) for n, name in enumerate(names)}
    return depth, {name: at for name, at in saved.items() if at >= -depth}


@pytest.mark.slow
def test_protected_branches_arrive_at_landings(tmp_path):
    """With branch protection each function begins with BTI, and so does each target of a computed jump."""
    for source in sources():
        code = functions(assemble(needs_tool("clang"), PROTECTED, source, tmp_path))
        begins = [texts[0][1] for texts in code]
        assert begins.count("bti") == len(code) - ("nn_mve_dots_rest:" in source.read_text()), source
        assert "bti" not in str(functions(assemble(needs_tool("clang"), CPU, source, tmp_path)))


@pytest.mark.slow
def test_kernels_run_with_protected_branches(tmp_path):
    """The emulator takes BTI for a hint; so this shows that computed jumps find their places."""
    board = tmp_path / "protected.toml"
    board.write_text(f'extends = "cortex-m85"\n[core]\ncflags = {list(PROTECTED)}\n'.replace("'", '"'))
    rng, used = np.random.default_rng(0), set()
    with recording(FAMILY) as recorder:
        for channels in (9, 24, 40, 57, 100, 128, 130, 150):
            for columns in (1, 4):
                sides = kernelcases.Axis(1), kernelcases.Axis(columns)
                case = kernelcases.layer(rng, OpKind.CONV_2D, *sides, channels, 7, Activation.NONE)
                used.add(run_whole(case).tobytes())
        for kernel, columns in ((3, 9), (3, 2), (5, 6), (7, 4)):
            sides = (kernelcases.Axis.same(size, kernel, 1) for size in (5, columns))
            case = kernelcases.layer(rng, OpKind.DEPTHWISE_CONV_2D, *sides, 24, 24, Activation.NONE)
            used.add(run_whole(case).tobytes())
    assert len(used) == 20
    recorder.check("clang", str(board))
