"""The RISC-V family's plugin: clang, bare-metal start-up, QEMU."""

from __future__ import annotations

from pathlib import Path

from buildtool.errors import ToolError, did_you_mean
from buildtool.target.plugin import Harness
from buildtool.target.types import Board, RunRequest, RunResult, Toolchain
from buildtool_plugins import baremetal, harness

ROOT = Path(__file__).resolve().parent
TOOLCHAINS = ("clang",)

CLANG_TARGET = "--target=riscv32-unknown-elf"
CFLAGS = (
    # No C library, whatever is installed: baremetal/include/ has what freestanding code may use.
    *(CLANG_TARGET, "-nostdlibinc", "-std=gnu99", "-O3"),
    "-ffp-contract=off",  # fused multiply-adds would round otherwise than the reference
    *("-ffunction-sections", "-fdata-sections", "-fno-common"),
    "-msmall-data-limit=0",  # no sections of their own for small globals: nothing sets gp
    *("-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
)
LDFLAGS = (
    "-nostdlib",
    "-static",
    "-Wl,--gc-sections",
    "-Wl,-z,max-page-size=16",  # segments lie as close in the file, and at load, as the script puts them
    "-Wl,-z,noexecstack",
    "-Wl,--build-id=none",
)
# A page that physical memory protection forbids. Memories smaller than this limit can spare none;
# there the stack lies at the memory's low end, and what is below does not answer.
GUARD_BYTES, GUARD_LIMIT = 4096, 1 << 20


def guard_bytes(board: Board) -> int:
    """Bytes below the stack that nothing may touch."""
    return GUARD_BYTES if board.memory(board.data).size >= GUARD_LIMIT else 0


class RiscvPlugin:
    """See buildtool.target.plugin.TargetPlugin."""

    name = "riscv"

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of the boards it knows."""
        return tuple(sorted((ROOT / "boards").glob("*.toml")))

    def toolchain(self, board: Board, name: str, work: Path) -> Toolchain:
        """The compiler `name` ("" for the board's default), with a linker script written to `work`."""
        from buildtool_plugins.baremetal.linker import linker_script
        from buildtool_plugins.tools.find import find_ar, find_clang, find_lld

        known = [t for t in board.toolchains or TOOLCHAINS if t in TOOLCHAINS]
        chosen = name or next(iter(known), TOOLCHAINS[0])
        if chosen not in known:
            hint = did_you_mean(chosen, known)
            raise ToolError(f"board '{board.name}' has no toolchain '{chosen}'", hint=hint)
        compiler = find_clang()
        script = work / f"{board.name}.ld"
        script.write_text(linker_script(board, guard_bytes=guard_bytes(board)), encoding="utf-8")
        return Toolchain(
            name=chosen,
            identity=compiler.identity,
            cc=compiler.path,
            cflags=(
                *CFLAGS,
                "-isystem",
                str(baremetal.ROOT / "include"),
                *board.core.cflags,
                *(f"-D{define}" for define in board.core.defines),
            ),
            ldflags=(
                *board.core.cflags,
                *LDFLAGS,
                f"-Wl,-T,{script}",
                CLANG_TARGET,
                f"--ld-path={find_lld(compiler)}",
            ),
            ar=find_ar(compiler, "riscv64-unknown-elf-"),
            objects=(
                str(ROOT / "startup.c"),
                str(ROOT / "semihosting_call.S"),
                str(ROOT / "integers.c"),
                str(ROOT / "floats.c"),
                str(baremetal.ROOT / "memory.c"),
                str(baremetal.ROOT / "semihosting.c"),
            ),
            includes=(str(baremetal.ROOT),),
        )

    def harness(self, board: Board) -> Harness:
        """The test firmware's sources; files and text go through semihosting."""
        return Harness(
            sources=(harness.ROOT / "harness.c", baremetal.ROOT / "harness_io.c"),
            includes=(harness.ROOT, baremetal.ROOT),
        )

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the image in QEMU; raises ToolError if it is missing or if the firmware fails."""
        from buildtool_plugins.qemu.runner import run

        return run(board, image, request)


plugin = RiscvPlugin()
