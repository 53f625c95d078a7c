"""The XS3 runner: what it assembles, executes and counts."""

import re
import sys

import numpy as np
import pytest
from needs import needs_tool
from paths import KERNELS, ROOT

sys.path.insert(0, str(ROOT))

from buildtool_plugins import harness, xcore
from buildtool_plugins.xs3.assembler import assemble
from buildtool_plugins.xs3.compiler import compile_c, runtime
from buildtool_plugins.xs3.encoding import NUMBERS, POSITIONS, SOURCE, encode_long, encode_short, instructions
from buildtool_plugins.xs3.linker import RAM, Memory, link
from buildtool_plugins.xs3.machine import Machine, Readings, Stopped, call_text, decode

from benchmarks import xs3_programs
from buildtool.api import handle
from buildtool.base.errors import ToolError
from buildtool.firmware.linkmap import explain_link_failure
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.target.registry import load_board
from buildtool.zoo.drawn import NetBuilder

DUAL = ".text\n.issue_mode dual\n.align 16\n.globl f\nf:\n"


def code(text):
    return bytes(assemble(text).sections[0].data)


def result(text, *arguments, **more):
    return call_text([text], "f", *arguments, **more)


# Words that XMOS's assembler made of these lines (lib_nn's objects in PyPI's xmos-ai-tools).
@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("{ vlmaccr r11[0]; add r11, r11, r6 }", 0xA7FB147E),
        ("std r4, r5, sp[0]", 0xF7ECF910),
        ("ldd r4, r5, sp[0]", 0xEFECF910),
        ("vlashr r10[0], r11", 0x3FECFFBB),
        ("vstrpv r0[0], r5", 0x3FECFF81),
        ("dualentsp 6", 0x7F86F000),
        ("retsp 6", 0x77C6F000),
        ("{ dualentsp 12; nop }", 0x7F8C17FF),
        ("fmacc r6, r11, r6, r7", 0x1FE6FBBB),
        ("fmant r6, r6", 0x1FEEFFDA),
        ("sub r0, r0, r11", 0x17FF1C83),
        ("{ bt r5, f; sub r5, r5, 1 }", 0x75419915),
    ],
)
def test_text_becomes_the_vendors_bytes(line, word):
    text = DUAL.replace("f:\n", "") + f"f: {line}\n"
    image = link([assemble(text)])
    assert int.from_bytes(image.segments[0][1][:4], "little") == word


def test_what_is_encoded_is_decoded():
    """Every instruction with random operands: the assembler's encoding and the machine's decoding agree."""
    rng = np.random.default_rng(0)
    order = re.findall(r"(?m)^XS3_OP\((\w+)", SOURCE.read_text())
    known = [i for group in instructions().values() for i in group]
    assert sorted(i.name for i in known) == sorted(order) and len(order) > 150
    for it in known:
        place, most = NUMBERS.get(it.format, ("", 0))
        for _ in range(40):
            number = int(
                rng.choice(list(POSITIONS)) if it.format.endswith("B") else rng.integers(0, most + 1)
            )
            values = [
                fixed if fixed is not None else number if at == place else int(rng.integers(0, 12))
                for at, fixed in zip(it.places, it.fixed, strict=True)
            ]
            word = encode_short(it, values) if it.is_short else encode_long(it, values)
            found, operands = decode(word, not it.is_short)
            assert found and order[found - 1] == it.name, (it.name, hex(word))
            for at, value in zip(it.places, values, strict=True):
                assert at == "-" or operands["number" if at == place else at] == value, it.name


def test_both_halves_read_before_either_writes():
    swap = DUAL + "{ dualentsp 0; nop }\n{ mov r0, r1; mov r1, r0 }\n{ sub r0, r0, r1; retsp 0 }\n"
    assert result(swap, 3, 10)[0] == 7
    loads = DUAL + "{ dualentsp 0; nop }\n{ add r1, r0, 4; ldw r0, r1[0] }\n{ add r0, r0, r1; retsp 0 }\n"
    # the load takes r1 as it was, the addition r0 as it was
    machine = Machine(link([assemble(loads)]))
    at = machine.place(np.array([1000], np.int32))
    assert machine.call("f", 5, at) == 1009


def test_the_issue_mode_is_kept_over_calls():
    text = """
        .text
        .globl f
        .align 4
    f:  entsp 2
        bl g
        add r0, r0, 1
        retsp 2
        .issue_mode dual
        .align 4
    g:  dualentsp 2
        { add r0, r0, r0; nop }
        { bl h ; nop }
        { add r0, r0, 3; nop }
        retsp 2
        .issue_mode single
        .align 4
    h:  entsp 2
        shl r0, r0, 1
        retsp 2
    """.replace("h:  entsp 2", "h:  .long 0x7742f000")  # long, so that it is the same in both modes
    value, _, counts = result(text, 5)
    assert value == (5 + 5) * 2 + 3 + 1
    assert counts.issues == 4 + 5 + 3


# Loops of issues that touch data memory (M) or do not (N), as lib_xcore_math's sources remark on them.
@pytest.mark.parametrize(
    ("loop", "offset", "stalls"),
    [
        ("MMMMMMNNMMMN", 0, 1),  # vect_s32_sqrt: "12 instructions + 1 FNOP"
        ("MMN", 0, 0),  # filter_fir_s32, in the first half of a line
        ("MMN", 4, 0),
        ("MMN", 8, 1),
        ("M" * 17 + "N", 0, 4),  # a block of a convolution: 18 issues and 4 stalls
        ("NMNNMMMMMMNNMMMNNMMMMNNMMMNNMMN", 4, 0),  # fft_mono_adjust: none at 1 mod 4
    ],
)
def test_stalls_of_the_fetch_model(loop, offset, stalls):
    body = "\n".join("{ vldc r1[0]; nop }" if kind == "M" else "{ add r2, r2, 0; nop }" for kind in loop[:-1])
    text = (
        DUAL.replace("f:\n", f".skip {12 if offset == 0 else offset - 4}\nf:\n")
        + f"dualentsp 0\n.Ltop:\n{body}\n{{ bt r0, .Ltop; sub r0, r0, 1 }}\nretsp 0\n"
    )
    machine = Machine(link([assemble(text)]))
    top = machine.image.address("f") + 4
    assert top % 16 == offset
    machine.call("f", 99, machine.place(bytes(32)))
    issues, stalled = machine.span(top, top + 4 * len(loop), True)
    assert issues == 100 * len(loop)
    assert 100 * stalls - 2 <= stalled <= 100 * stalls + 2  # the first round enters from elsewhere


def test_operations_without_a_known_encoding_run_from_text():
    """Complex products, and the magnitude that stores leave behind."""
    text = (
        DUAL
        + """
        { dualentsp 0; nop }
        { ldc r11, 0; nop }
        vsetc r11
        vldd r0[0]
        vldc r1[0]
        vclrdr
        vldd r0[0]
        vcmr
        vcmi
        vstr r2[0]
        vgetc r11
        { mov r0, r11; retsp 0 }
    """
    )
    rng = np.random.default_rng(3)
    d, c = (rng.integers(-(2**29), 2**29, 8).astype(np.int32) for _ in range(2))
    control, buffers, counts = result(text, d, c, np.zeros(8, np.int32))
    exact = (d[::2] + 1j * d[1::2]) * (c[::2] + 1j * c[1::2]) / 2**30
    assert (
        np.abs(buffers[2][::2] - exact.real).max() <= 1 and np.abs(buffers[2][1::2] - exact.imag).max() <= 1
    )
    assert control == int(np.abs(buffers[2]).max()).bit_length()
    assert counts.vectors == 9


def test_both_readings_of_vlashr():
    text = (
        DUAL
        + "dualentsp 0\n{ ldc r11, 1; nop }\n{ shl r11, r11, 8; nop }\nvsetc r11\n"
        + "vlashr r0[0], r1\nvstr r0[0]\nretsp 0\n"
    )
    x = np.arange(-8, 8).astype(np.int16)
    assert np.array_equal(result(text, x, 2)[1][0], x >> 2)
    assert np.array_equal(result(text, x, 2, readings=Readings(vlashr_rounds=True))[1][0], (x + 2) >> 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f: vldr r1[0]", "the operands fit no form of 'vldr'"),
        ("f: frob r1", "unknown instruction 'frob'"),
        ("f: add r1, r2", "'add' has no form R,R"),
        ("f: ldc r0, 70000", "the operands fit no form"),
        ("f: { add r0, r0, 1; nop }", "a bundle in single issue"),
        (".issue_mode dual\nf: { vldc r1[0]; vldd r2[0] }", "need the same half"),
        (".issue_mode dual\nf: { mul r1, r2, r3; nop }", "has 32 bits"),
        ("f: .frob", "unknown directive"),
        ("f: nop\nf: nop", "defined twice"),
    ],
)
def test_wrong_text_is_refused_with_its_line(text, expected):
    with pytest.raises(ToolError, match=expected) as error:
        assemble(text, "own.S")
    assert "own.S:" in str(error.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ldw r0, r0[0]\nretsp 0", "no memory at this address, or not aligned .*0x2"),
        ("divs r0, r0, r1\nretsp 0", "division"),
        ("ecallt r0", "ecall"),
        ("kcall 60", "unknown service"),
        (".Lself: bu .Lself", "reached the limit"),
    ],
)
def test_a_program_that_stops_says_where(body, expected):
    machine = Machine(link([assemble(f".globl f\nf: nop\n{body}\n")]))
    with pytest.raises(Stopped, match=expected) as error:
        machine.call("f", 2, 0, limit=1000)
    assert "(f+" in str(error.value)
    with pytest.raises(Stopped, match="0x2: no code at this address"):
        call_text([".globl f\nf: bau r0\n"], "f", 2)


def test_a_program_that_does_not_fit_says_how_many_bytes_are_missing():
    program, ram = assemble(".section .bss\nf: .space 208\n"), Memory(0x80000, 256, "ram")
    link([program], ram=ram, stack=48)
    with pytest.raises(ToolError) as error:
        link([program], ram=ram, stack=56)
    explained = explain_link_failure(error.value.text, load_board("xcore"))
    assert "memory 'ram' (code, data, arena) of board 'xcore' is 8 bytes too small" in explained.text


def test_the_stack_is_measured_within_its_bytes(capfd):
    """The program ends where the stack begins, which is painted and whose overflow is found."""
    text = """
    #include "harness_io.h"
    int last[16];
    static void deep(void) { volatile char a[600]; for (int i = 0; i < 600; i++) a[i] = 1; }
    int main(void) {
        const uint32_t used = io_call_measured(deep);
        for (int i = 0; i < 16; i++) if (last[i] != 0) return 9;
        return used >= 600 && used < 640 ? 7 : 8;
    }
    """
    flags = ["-O2", f"-I{harness.ROOT}", f"-I{KERNELS / 'include'}"]
    objects = [compile_c(text, flags), compile_c(xcore.XcorePlugin.root / "harness_io.c", flags), *runtime()]
    base, end = RAM.base, link(objects, ["_start"]).end
    for stack, status in ((1400, 7), (700, 7), (601, 1)):
        machine = Machine(link(objects, ["_start"], Memory(base, end - base + stack), stack=stack))
        assert machine.run(machine.image.address("_start")) == status
        assert capfd.readouterr().out == ("harness: stack overflow\n" if status == 1 else "")


def test_a_function_that_keeps_no_register_is_reported():
    with pytest.raises(ToolError, match="changed registers"):
        result(".globl f\nf: ldc r7, 1\nretsp 0\n")


def test_far_constants_and_jump_tables_and_text_output(capfd):
    """A switch whose table needs detours, weights outside RAM, a zero-filled array, and the services."""
    cases = "".join(f"case {k}: s += far[{k * 7}] * {k + 3}; m[{k}] = s; break;" for k in range(30))
    text = f"""
    #define FAR __attribute__((section(".far.weights")))
    FAR const volatile short far[4000] = {{1, 2, 3, [203] = 77, [7] = -9}};
    static int zeros[1000];
    static void put(int c) {{ register int r0 __asm("r0") = c; __asm volatile("kcall 1" : "+r"(r0)); }}
    int f(int k, int *m) {{
        int s = zeros[k];
        put('h');
        put('i');
        switch (k) {{ {cases} default: s = -1; }}
        return s;
    }}
    """
    machine = Machine(link([compile_c(text), *runtime()], ["f"]))
    at = machine.place(bytes(200))
    assert [machine.call("f", k, at) for k in (0, 1, 29, 30)] == [3, -36 % 2**32, 77 * 32, 2**32 - 1]
    assert machine.image.symbols["far"] >= 0x10000000
    assert capfd.readouterr().out == "hi" * 4


def test_c_calls_a_function_in_dual_issue():
    """A dot product of 32 bytes; clang's code around it is single issue, and keeps its registers."""
    c = """
    #include <stdint.h>
    void dot(const int8_t *a, const int8_t *b, uint32_t *low, uint32_t *high);
    int f(const int8_t *a, const int8_t *b, int n) {
        static uint32_t low[8], high[8];
        int sum = n;
        for (int i = 0; i < n; i++) {
            dot(a + 32 * i, b + 32 * i, low, high);
            sum += (int)((high[0] & 0xffff) << 16 | (low[0] & 0xffff));
        }
        return sum;
    }
    """
    kernel = (
        DUAL.replace("f:", "dot:").replace("globl f", "globl dot")
        + """
        dualentsp 0
        { ldc r11, 32; nop }
        { shl r11, r11, 4; vclrdr }
        vsetc r11
        vldc r0[0]
        vlmaccr r1[0]
        vstr r2[0]
        vstd r3[0]
        retsp 0
    """
    )
    machine = Machine(link([compile_c(c), assemble(kernel, "dot.S"), *runtime()], ["f"]))
    a, b = (np.random.default_rng(k).integers(-128, 128, 160).astype(np.int8) for k in (1, 2))
    got = machine.call("f", machine.place(a), machine.place(b), 5)
    assert np.int32(np.uint32(got)) == a.astype(int) @ b.astype(int) + 5
    assert machine.counts().products == 5


def poolings(folder):
    """Maxima, averages with and without what lies outside, means of one axis and two, a table."""
    net = NetBuilder(5)
    x = net.input((1, 11, 9, 36))
    largest = net.pool(OpKind.MAX_POOL_2D, x, (3, 3), (2, 2), same=True)
    average = net.pool(OpKind.AVERAGE_POOL_2D, net.unary(OpKind.LOGISTIC, largest), (3, 2), (1, 1), same=True)
    padded = net.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    filled = net.pool(OpKind.AVERAGE_POOL_2D, padded, (3, 3), (2, 2))
    path = folder / "poolings.tflite"
    ends = [average, filled, net.mean(x), net.mean(average, axes=(1,))]
    path.write_bytes(write_model(net.graph(ends)))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ds_cnn", poolings])
def test_a_network_runs_as_the_chips_code(model, tmp_path):
    """Its outputs are the reference's, and each operator's vector operations are those of the model."""
    needs_tool("clang")
    model = model if isinstance(model, str) else model(tmp_path)
    asked = {"model": model, "board": "xcore", "options": {}}
    executed, modelled = (
        handle({"kind": "profile", **asked, "toolchain": name}) for name in ("xs3", "clang")
    )
    assert executed["exact"] and (executed["level"], modelled["level"]) == ("simulator", "model")
    assert executed["issues"]["source"] == "counted in a simulator, which executes them"
    for one, other in zip(executed["per_operator"], modelled["per_operator"], strict=True):
        assert one["issues"]["vpu"] == (other["issues"] or {"vpu": 0})["vpu"], one["name"]
        assert one["issues"]["slowest"] <= one["issues"]["vpu"] + one["issues"]["scalar"]
    assert executed["issues"]["vpu"] > 4_000


@pytest.mark.slow
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_compiled_programs_compute_as_on_this_machine(level):
    assert xs3_programs.differences(42, level, count=5, inputs=2) == []
