"""`buildtool debug` and `buildtool flash`: run a debugger's server or a flashing tool in a folder.

In a debugging session, the firmware reads input.bin and writes output.bin and report.txt. The server
(QEMU or the server of a debug probe) starts halted: nothing runs until the debugger starts it.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, ToolError, suggest
from buildtool.base.outfiles import write as write_files

if TYPE_CHECKING:
    from buildtool.schema.builds import StackSize
    from buildtool.schema.runs import DebugAnswer, FlashAnswer


_INSTALL = {"gdb-multiarch": "apt-get install gdb-multiarch", "gdb": "apt-get install gdb"}
_HERE = "127.0.0.1"
_END_SECONDS = 5.0  # time for the server to end after a request


def write(answer: DebugAnswer, folder: Path) -> None:
    """Writes the files of a debugging session to its folder, and removes outputs of the session before."""
    sources = list(answer["sources"])
    if answer["image"] not in answer["files"]:  # built elsewhere; source paths are relative to here
        here = str(Path.cwd()).replace("\\", "\\\\").replace('"', '\\"')  # GDB splits its words at blanks
        sources.append(f'directory "{here}"')
    commands = {
        f"{answer['net']}_sources.gdb": sources,
        f"{answer['net']}.gdb": ["set confirm off", *sources, *answer["commands"]],
    }
    scripts = {
        name: ("\n".join(lines) + "\n").encode(errors="surrogateescape") for name, lines in commands.items()
    }
    write_files({**answer["files"], **scripts}, folder)
    for name in answer["outputs"]:
        (folder / name).unlink(missing_ok=True)


def text(answer: DebugAnswer, folder: Path) -> str:
    """Returns a text that says how to begin: the command for a shell, and the folder with the files."""
    lines = [f"{answer['net']} on {answer['board']}, compiled by {answer['compiler']} for a debugger"]
    lines += [f"{folder}: the firmware reads input.bin there and writes {', '.join(answer['outputs'])}"]
    lines += [f"warning: {problem}" for problem in map(_stack_problem, answer["stacks"]) if problem]
    if answer["server"]:
        lines += [f"server: {shlex.join(answer['server'])}"]
        lines += [f"waiting at {_HERE}:{answer['port']}, halted; in another terminal:"]
    else:
        lines += ["the debugger starts the program itself:"]
    first = answer["debuggers"][0]
    installed = next((name for name in answer["debuggers"] if shutil.which(name)), "")
    command = [installed or first, "-x", f"{answer['net']}.gdb", answer["image"]]
    lines += ["", f"    cd {shlex.quote(str(folder.absolute()))} && {shlex.join(command)}", ""]
    if not installed:
        advice = _INSTALL.get(first, f"install {first}")
        lines += [f"note: none of {', '.join(answer['debuggers'])} was found here: {advice}"]
    return "\n".join(lines)


def _stack_problem(stack: StackSize) -> str:
    """Returns a sentence about a stack that is too small, or "" if the stack is large enough."""
    needed, reserved = stack["needed"], stack["reserved"]
    if needed is None or needed <= reserved:
        return ""
    return (
        f"compiled for a debugger, {stack['function']} takes up to {needed:,} bytes of stack, and the board "
        f"has {reserved:,}: raise stack_bytes in the board's file"
    )


def need_port(answer: DebugAnswer) -> None:
    """Raises ToolError if another server uses the session's port. A debugger would connect to that server."""
    port = answer["port"]
    if answer["server"] and _is_taken(port):
        raise ToolError(
            f"port {port} of this machine is in use by another session or another server",
            hint=suggest("or end that one", port=port + 1),
        )


def serve(answer: DebugAnswer, folder: Path) -> int:
    """Runs the session's server until it ends or is interrupted. Returns the exit status 0.

    Raises ToolError if the server fails.
    """
    if not answer["server"]:
        return 0
    # An editor that ends this process must not leave the server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        server = subprocess.Popen(answer["server"], cwd=folder, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise ToolError(f"the server cannot be started: {error.strerror}", path=answer["server"][0]) from None
    try:
        status = server.wait()
    finally:
        if server.poll() is None:
            server.terminate()
            try:
                server.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    if status:
        raise ToolError(f"{Path(answer['server'][0]).name} ended with exit status {status}")
    return 0


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HERE, port))
        except OSError:
            return True
    return False


def flash_text(answer: FlashAnswer, folder: Path) -> str:
    """Returns a text with the path of the firmware image and the command that flashes it."""
    about = f"{answer['net']} for {answer['board']}, compiled by {answer['compiler']}"
    return f"{about}: {folder / answer['image']}\nflashing: {shlex.join(answer['command'])}"


def flash(answer: FlashAnswer, folder: Path) -> int:
    """Flashes the board and returns 0. Raises ToolError if the tool is missing or fails."""
    tool = answer["tool"]
    if not answer["is_there"]:
        what = f"the program {tool} that flashes the board was not found; the firmware image is written"
        line = f"cd {shlex.quote(str(folder.absolute()))} && {shlex.join(answer['command'])}"
        hints = [Hint(answer["install"]), Hint(f"then run, here or where it is installed: {line}")]
        raise ToolError(what, hint=hints)
    try:
        process = subprocess.run(answer["command"], cwd=folder, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise ToolError(f"{tool} cannot be started: {error.strerror}", path=answer["command"][0]) from None
    if process.returncode:
        hint = "check the cable, the board's power, and that no other program uses the probe"
        raise ToolError(f"{tool} ended with exit status {process.returncode}", hint=hint)
    return 0
