"""The stack that machine code needs, from single instructions and from kernels, compared with runs."""

import re
import subprocess

import pytest
from loaded import own_board
from needs import needs_tool

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.client import place
from buildtool.emit.sources import emit
from buildtool.firmware.counting import link_anyway
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.planned import plan_model
from buildtool.firmware.run.execute import build_temporarily, execute
from buildtool.firmware.sizes import open_elf
from buildtool.firmware.stack import riscv, thumb, xtensa
from buildtool.firmware.stack.body import Code
from buildtool.firmware.stack.need import Stacks
from buildtool.fronts.texts import builds as report
from buildtool.options.values import PlanOptions
from buildtool.target.kernels import all_kernel_sources, kernel_includes
from buildtool.target.registry import load_target, toolchain

RUN = [
    *(
        ("ds_cnn", board)
        for board in ("cortex-m0plus", "cortex-m4", "cortex-m55", "hifive1", "qemu-virt-rv64", "esp8266")
    ),
    ("resnet8", "qemu-virt-rv32v"),
]
# Instructions as disassemblers print them, their halves in the order of memory (Xtensa: bytes), and bytes of
# stack (None: not known).
THUMB = {
    "push {r4, r5, r6, r7, lr}": ([0xB5F0], 20),
    "push.w {r4-r11, lr}": ([0xE92D, 0x4FF0], 36),
    "str.w r11, [sp, #-4]!": ([0xF84D, 0xBD04], 4),
    "sub sp, #8": ([0xB082], 8),
    "sub.w sp, sp, #1024": ([0xF5AD, 0x6D80], 1024),
    "subw sp, sp, #1020": ([0xF2AD, 0x3DFC], 1020),
    "vpush {d8, d9}": ([0xED2D, 0x8B04], 16),
    "movw r12, #4660; sub.w sp, sp, r12": ([0xF241, 0x2C34, 0xEBAD, 0x0D0C], 4660),
    "add sp, #8; pop {r7, pc}": ([0xB002, 0xBD80], 0),
    "ldr r7, =-1024; add sp, r7": ([0x4F00, 0x44BD, 0xFC00, 0xFFFF], 1024),
    "sub.w sp, sp, r12": ([0xEBAD, 0x0D0C], None),
}
RISCV = {
    "addi sp, sp, -16": ([0x1141], 16),
    "addi sp, sp, -64": ([0x7139], 64),
    "addi sp, sp, -2032 (32 bits)": ([0x0113, 0x8101], 2032),
    "lui a0, 1; sub sp, sp, a0": ([0x6505, 0x0133, 0x40A1], 4096),
    "csrr a0, vlenb; slli a0, a0, 1; sub sp, sp, a0": ([0x2573, 0xC220, 0x0506, 0x0133, 0x40A1], 32),
    "addi sp, sp, 16; ret": ([0x0141, 0x8082], 0),
    "sub sp, sp, a0": ([0x0133, 0x40A1], None),
}
RISCV64 = {
    "lui a0, 1; addiw a0, a0, -16; sub sp, sp, a0": ([0x6505, 0x051B, 0xFF05, 0x0133, 0x40A1], 4080),
    "lui a0, 1; c.addiw a0, 1; sub sp, sp, a0": ([0x6505, 0x2505, 0x0133, 0x40A1], 4097),
}
XTENSA = {
    "addi sp, sp, -16": ("12c1f0", 16),
    "addi sp, sp, -16; addi sp, sp, 16; ret.n": ("12c1f0 12c110 0df0", 16),
    "addmi sp, sp, -512": ("12d1fe", 512),
    "movi a9, 160; sub sp, sp, a9; add.n sp, sp, a9": ("92a0a0 9011c0 9a11", 160),
    "movi.n a9, -32; add.n sp, sp, a9": ("6c09 9a11", 32),
    "l32r a9, 0xffc; sub sp, sp, a9": ("91ffff 9011c0", 4660),
    "mov.n a15, sp; mov.n sp, a15": ("fd01 1d0f", 0),
    "moveqz a1, a1, a2 (a marker)": ("201183", 0),
    "ssai 31 (bit 4 of the amount is in the place of a1)": ("104f40", 0),
    "j over what fills up; ret.n": ("c60000 12a000 00 0df0", 0),
    "sub sp, sp, a9": ("9011c0", None),
    "mov.n sp, a9": ("1d09", None),
    "movi a1, 0": ("12a000", None),
    "l32i.n a1, a2, 0": ("1802", None),
    "entry a1, 32": ("364100", None),
}


def _code(halves):
    return Code(0x1000, b"".join(half.to_bytes(2, "little") for half in halves))


def _xtensa(text):
    return xtensa.read_body(Code(0x1000, bytes.fromhex(text)), {0xFFC: 4660}.get)


@pytest.mark.parametrize(
    ("body", "size"),
    [
        *((thumb.read_body(_code(halves)), size) for halves, size in THUMB.values()),
        *((riscv.read_body(_code(halves), vector_bytes=16), size) for halves, size in RISCV.values()),
        *((riscv.read_body(_code(halves), 0, is_64=True), size) for halves, size in RISCV64.values()),
        *((_xtensa(code), size) for code, size in XTENSA.values()),
    ],
    ids=[*THUMB, *RISCV, *RISCV64, *XTENSA],
)
def test_an_instruction_takes_what_it_does(body, size):
    assert not body.is_indirect
    assert body.unknown == (size is None)
    assert body.unknown or body.frame == size


def test_calls_jumps_and_calls_by_address_are_told_apart():
    arm = thumb.read_body(_code([0xF000, 0xF87E, 0xF000, 0xB8FC, 0x47A0, 0x4770]))  # bl, b.w, blx r4, bx lr
    assert (arm.calls, arm.tails, arm.is_indirect) == ({0x1100}, {0x1200}, True)
    far = thumb.read_body(_code([0xF000, 0xF800, 0x4770]))  # bl to the next instruction: a jump of ARMv6-M
    assert (far.calls, far.tails) == (set(), set())
    risc = riscv.read_body(_code([0x00EF, 0x1000, 0xA001 | 0x1 << 2, 0x9702]), 0)  # jal, c.j, c.jalr a4
    assert risc.calls == {0x1100}
    assert risc.is_indirect
    body = _xtensa("c50f00 467e00")  # call0 0x1100; j 0x1200
    assert (body.calls, body.tails, body.is_indirect) == ({0x1100}, {0x1200}, False)
    body = _xtensa("41ffff c00400")  # l32r a4; callx0 a4
    assert (body.taken, body.is_indirect, body.unknown) == ({4660}, True, False)
    assert _xtensa("a00400").is_indirect  # jx a4


@pytest.mark.parametrize(
    ("needed", "words"), [(2048, "at most 2,048"), (2056, "by 8 bytes"), (None, "is not known")]
)
def test_the_size_report_warns_of_a_stack_that_is_too_small(needed, words):
    text = report.sizes_text([], [{"function": "net_invoke", "needed": needed, "reserved": 2048}])
    assert words in text
    assert ("warning" in text) == (needed == 2056)


def _stated(header):
    (size,) = re.findall(r"^#define \w+_STACK_BYTES (\d+)$", header, flags=re.MULTILINE)
    return int(size)


def test_the_header_gives_no_less_than_the_linked_code_takes_and_the_build_says_its_own():
    answer = handle({"kind": "build", "model": "autoencoder", "board": "cortex-m4"})
    (stack,) = answer["stacks"]
    stated = _stated(answer["files"]["autoencoder.h"].decode())
    assert stack["function"] == "autoencoder_invoke"
    assert 0 < stack["needed"] <= stated <= 2 * stack["needed"]
    assert stack["reserved"] == 16 << 10
    elf = {"name": "app.elf", "data": answer["files"]["autoencoder.elf"]}
    assert handle({"kind": "sizes", "board": "cortex-m4", "elf": elf})["stacks"] == [stack]


@pytest.mark.slow
def test_firmware_that_may_take_more_stack_than_there_is_is_neither_built_nor_run(tmp_path):
    board = own_board(tmp_path, "stack_bytes = 256")
    for kind in ("build", "profile"):
        with pytest.raises(PlanError, match=r"bytes of stack .*reserves 256") as refused:
            handle({"kind": kind, "model": "autoencoder", "board": board})
        assert any("stack_bytes" in hint.text for hint in refused.value.hints)


@pytest.mark.slow
def test_weights_that_look_like_addresses_of_functions_call_nothing():
    """Biases are small numbers. So are addresses where the flash begins at 0."""
    answer = handle({"kind": "build", "model": "ds_cnn", "board": "cortex-m4"})
    whole = answer["files"]["ds_cnn.elf"]
    size = len(answer["files"]["ds_cnn_weights.bin"])
    functions = sorted(Stacks(open_elf(whole)).functions.values())
    words = b"".join((address | 1).to_bytes(4, "little") for address in functions)
    image = place(whole, "ds_cnn_weights", (words * (size // len(words) + 1))[:size])
    elf = {"name": "app.elf", "data": image}
    assert handle({"kind": "sizes", "board": "cortex-m4", "elf": elf})["stacks"] == answer["stacks"]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "board"), RUN)
def test_what_ran_stays_within_the_stack_that_was_counted(model, board):
    """The painted stack is that of the harness's `invoke` or `init` and their calls."""
    if board == "esp8266":
        needs_tool("xtensa-lx106-elf-gcc")
    request = parse({"kind": "build", "model": model, "board": board})
    planned = plan_model(request.model, request.target, request.options, Session())
    sources = emit(planned.graph, planned.plan, planned.target, planned.model.name, planned.session)
    with build_temporarily(planned, sources) as image:
        painted = execute(planned, image, list(draw_inputs(planned.graph, 1, 1))).stack_high_water
        stacks = Stacks(open_elf(image.elf.read_bytes()), planned.target.board.core.vector_bits // 8)
    need, own = stacks.need("invoke"), stacks.need(f"{sources.net}_invoke")
    assert painted is not None and need is not None and own is not None
    assert painted <= need <= 2 * painted
    assert own <= _stated(sources.files[f"{sources.net}.h"].decode())


@pytest.mark.slow
def test_frames_are_those_that_the_compiler_states(tmp_path):
    """With -fstack-usage the compiler itself writes each function's own frame."""
    target = load_target("qemu-virt-rv32")
    tools, planned = toolchain(target, ""), plan_model("resnet8", "qemu-virt-rv32", PlanOptions())
    sources = emit(planned.graph, planned.plan, planned.target, "resnet8", planned.session)
    stacks = Stacks(open_elf(link_anyway(sources, planned.plan, target, tools, tmp_path).elf))
    includes = [f"-I{folder}" for folder in kernel_includes(target)]
    compared = 0
    linked = [source for source in all_kernel_sources(target) if source.stem in stacks.functions]
    command = [tools.cc, *tools.cflags, *includes, "-fstack-usage", "-c", *map(str, linked)]
    subprocess.run(command, cwd=tmp_path, check=True)
    for source in linked:
        for line in (tmp_path / f"{source.stem}.su").read_text().splitlines():
            place, size, kind = line.split("\t")
            name = place.rsplit(":", 1)[-1]
            if name.startswith("nn_") and name in stacks.functions:
                assert kind == "static"
                assert stacks.frame(name) == int(size), name
                compared += 1
    assert compared >= 6
