"""The entries that buildtool adds to VS Code's files, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

PREFIX = "buildtool: "
PORT = 3333  # the server's port for the debugger
INPUT_BOARD, INPUT_MODEL = "buildtool.board", "buildtool.model"
_LOCATION: dict[str, Any] = {
    "owner": "buildtool",
    "source": "buildtool",
    "fileLocation": ["autoDetect", "${workspaceFolder}"],
}
_TEXT = r"(error|warning|note): (.*?)(?: \[([A-Z]+)\])?$"
# This pattern also matches compilers' messages: with $gcc beside it, each problem would appear twice.
_GROUPS = {"file": 1, "line": 2, "column": 3, "severity": 4, "message": 5, "code": 6}
AT_A_LINE: dict[str, Any] = {
    **_LOCATION,
    "pattern": {"regexp": r"^(.+?):(\d+):(\d+): (?:fatal )?" + _TEXT, **_GROUPS},
}
IN_A_FILE: dict[str, Any] = {
    **_LOCATION,
    "pattern": {
        "kind": "file",
        "regexp": r"^(?!.*:\d+: )(?!scons: )(\S.*?): " + _TEXT,
        **{"file": 1, "severity": 2, "message": 3, "code": 4},
    },
}
MATCHERS = [AT_A_LINE, IN_A_FILE]
ROUND = {
    "activeOnStart": False,
    "beginsPattern": "^buildtool watch: planning$",
    "endsPattern": "^buildtool watch: done in ",
}
SERVING = {"activeOnStart": True, "beginsPattern": "^server: ", "endsPattern": "^waiting at "}
# Compilers that clangd may run to find their own folders of headers.
DRIVERS = "--query-driver=**/clang*,**/arm-none-eabi-gcc*,**/riscv*-elf-gcc*,**/xtensa-*-elf-gcc*"
CLANGD = "clangd.arguments"
COMMANDS = "--compile-commands-dir=${workspaceFolder}"


@dataclass(frozen=True)
class Subject:
    """The network and the board that the files are for.

    - `board`, `model`: as on the command line of a task, which runs in the editor's folder ("": VS Code
      asks).
    - `boards`: the boards to choose from.
    - `net`: the network's name in C ("": not known).
    - `emulator`: the board's emulator: a machine, "native" or None.
    - `scons`: whether the folder has an SConstruct.
    """

    board: str
    model: str
    boards: tuple[str, ...]
    net: str
    emulator: str | None
    scons: bool

    @property
    def title(self) -> str:
        """The network and the board in words, for labels."""
        return " ".join(part for part in (self.net, f"on {self.board}" if self.board else "") if part)

    @property
    def folder(self) -> str:
        """The folder for a build's results."""
        board = PurePath(self.board).stem if self.board.endswith(".toml") else self.board
        return f"build/vscode/{_input(board, INPUT_BOARD)}/{self.net or 'network'}"


def _input(value: str, name: str) -> str:
    return value or f"${{input:{name}}}"


def tasks(subject: Subject) -> list[dict[str, Any]]:
    """Returns the tasks: build, run, validate, watch, and a server for a debugger."""
    network = [_input(subject.model, INPUT_MODEL), f"--board={_input(subject.board, INPUT_BOARD)}"]
    out = f"--out={subject.folder}"
    result = [
        _task("build", subject, ["build", *network, out], group="build"),
        _task("run", subject, ["profile", *network]),
        _task("validate", subject, ["validate", *network], group="test"),
        _task("watch", subject, ["watch", *network], background=ROUND),
    ]
    if subject.net and subject.board:
        background = None if subject.emulator == "native" else SERVING
        words = ["debug", *network, out, f"--port={PORT}"]
        result.append(_task("serve a debugger", subject, words, background=background))
    if subject.scons:
        own = {"label": f"{PREFIX}scons", "type": "process", "command": "scons", "args": ["-Q"]}
        result.append({**own, "group": "build", "problemMatcher": MATCHERS})
    return result


def _task(
    what: str, subject: Subject, words: list[str], group: str = "", background: dict[str, Any] | None = None
) -> dict[str, Any]:
    label = f"{PREFIX}{what} {subject.title}".rstrip()
    task: dict[str, Any] = {"label": label, "type": "process", "command": "buildtool", "args": words}
    if group:
        task["group"] = group
    matchers = MATCHERS
    if background is not None:
        task["isBackground"] = True
        matchers = [{**AT_A_LINE, "background": background}, {**IN_A_FILE, "background": background}]
    return {**task, "problemMatcher": matchers}


def inputs(subject: Subject) -> list[dict[str, Any]]:
    """Returns the questions that VS Code asks before a task begins."""
    result: list[dict[str, Any]] = []
    if not subject.board:
        first = next(iter(subject.boards), "")
        result.append(
            {
                "id": INPUT_BOARD,
                "type": "pickString",
                "description": "Board (buildtool boards)",
                "options": list(subject.boards),
                "default": "cortex-m4" if "cortex-m4" in subject.boards else first,
            }
        )
    if not subject.model:
        what = "Model: a .tflite or .onnx file, or a network of buildtool zoo"
        result.append(
            {"id": INPUT_MODEL, "type": "promptString", "description": what, "default": "model.tflite"}
        )
    return result


def configurations(subject: Subject) -> list[dict[str, Any]]:
    """Returns a debugger's configuration for one network on one board, or [] if either is unknown."""
    if not (subject.net and subject.board):
        return []
    folder, net = f"${{workspaceFolder}}/{subject.folder}", subject.net
    server = f"{PREFIX}serve a debugger {subject.title}"
    entry: dict[str, Any] = {"name": f"{PREFIX}debug {subject.title}", "request": "launch", "cwd": folder}
    image = f"{folder}/{net}.elf"
    if subject.emulator == "native":
        setup = [{"description": "where sources are", "text": f"source {net}_sources.gdb"}]
        native = {"type": "cppdbg", "MIMode": "gdb", "program": image, "setupCommands": setup}
        return [{**entry, **native, "stopAtEntry": True, "preLaunchTask": server}]
    entry |= {
        "type": "cortex-debug",
        "servertype": "external",
        "gdbTarget": f"127.0.0.1:{PORT}",
        "gdbPath": "gdb-multiarch",
        "executable": image,
        "preLaunchTask": server,
        "preLaunchCommands": [f"source {net}_sources.gdb"],
        "runToEntryPoint": "main",
    }
    if subject.emulator is not None:  # QEMU has loaded the image, and supports no commands of a probe
        entry["overrideLaunchCommands"] = ["set confirm off"]
        entry["overrideResetCommands"] = ["monitor system_reset"]
    return [entry]
