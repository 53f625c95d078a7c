"""Compiles C and assembly files to objects, which the cache keeps (buildtool/base/objects.py)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from buildtool.base.compiler import dependencies, environment, passed
from buildtool.base.errors import ToolError
from buildtool.base.objects import CachedObjects, Compiler, Unit
from buildtool.base.session import current_session

_LINES_SHOWN = 20  # of a tool's output
# The first bytes of objects and images: ELF, LLVM's bitcode (-flto), Mach-O.
_MADE = (b"\x7fELF", b"BC\xc0\xde", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")


def compile_all(
    compiler: Compiler, units: Sequence[Unit], folder: Path, tell: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Compiles `units` to objects in `folder`; returns their paths in the order of the units.

    `tell` gets the number of finished files, as text. Raises ToolError with the compiler's output.
    """
    folder = folder.absolute()  # compilers run in the folders of their sources
    targets = [folder / f"{number:03d}_{unit.source.stem}.o" for number, unit in enumerate(units)]
    cached = CachedObjects(current_session(), compiler, environment(), passed())
    jobs = [(cached.of(unit), unit, target) for unit, target in zip(units, targets, strict=True)]
    missing = [job for job in jobs if job[0] is None or cached.put(job[0][0], job[2]) is None]
    count = len(units) - len(missing)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for (key, unit, target), paths in zip(
            missing, pool.map(lambda job: _compile(compiler, *job[1:]), missing), strict=True
        ):
            if key is not None and paths is not None:
                cached.keep(*key, unit, target, paths)
            count += 1
            tell(f"compiled {count} of {len(units)} files")
    return targets


def _compile(compiler: Compiler, unit: Unit, target: Path) -> list[str] | None:
    """Compiles `unit` to the object `target`. Returns the files that the compiler has read; None if it does
    not list them.
    """
    includes = [f"-I{folder.absolute()}" for folder in unit.includes]
    rule = target.with_suffix(".d")
    # The source's path is relative to its own folder, so that the object has no path of this machine.
    command = [
        *(compiler.cc, *compiler.flags, *unit.flags, *compiler.renames, *includes),
        *("-MD", "-MF", str(rule), "-c", unit.source.name, "-o", str(target)),
    ]
    output = run(command, f"compiling {unit.source.name}", cwd=unit.source.parent)
    refuse_unless_made(target, f"compiling {unit.source.name}", "object file", compiler.cc, output)
    try:
        text = rule.read_bytes()
        rule.unlink()
    except OSError:
        return None
    return dependencies(text)


def refuse_unless_made(target: Path, what: str, kind: str, program: str, output: str) -> None:
    """Raises ToolError if a compiler or linker reported success, but `target` is not a file of the expected
    `kind`.

    `output` is what the program printed.
    """
    try:
        with target.open("rb") as file:
            if file.read(4) in _MADE:
                return
    except FileNotFoundError:
        pass
    lines = output.strip().splitlines()[:_LINES_SHOWN]
    text = f"{what} failed: {Path(program).name} reported success, but made no {kind}"
    raise ToolError(
        "\n".join([f"{text}; it printed:" if lines else text, *lines]),
        hint="check the compiler, and core.cflags of the board's file: no flag may make it print or stop",
    )


Explain = Callable[[str], ToolError | None]


def run(command: Sequence[str], what: str, cwd: Path | None = None, explain: Explain | None = None) -> str:
    """Runs a tool and returns its output. It gets only the environment variables that compilers need.

    If it fails, raises the ToolError that `explain` makes of its output, or one with the first lines of the
    output. Messages call the step `what`.
    """
    try:
        process = subprocess.run(
            command,
            cwd=cwd,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    except (OSError, ValueError) as error:  # ValueError: a null character in an argument
        reason = error.strerror if isinstance(error, OSError) else error
        raise ToolError(f"{what}: cannot start {command[0]}: {reason}") from error
    if process.returncode != 0:
        output = (process.stderr or process.stdout).strip()
        better = explain(output) if explain is not None else None
        if better is not None:
            raise better
        lines = output.splitlines()
        first = lines[:_LINES_SHOWN] + (["..."] if len(lines) > _LINES_SHOWN else [])
        how = f"exit {process.returncode}"
        if process.returncode < 0:
            how = f"signal {-process.returncode}, {signal.strsignal(-process.returncode)}"
        text = f"{what} failed ({Path(command[0]).name} {how})"
        raise ToolError("\n".join([f"{text}:" if first else text, *first]))
    return process.stdout
