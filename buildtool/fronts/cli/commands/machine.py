"""Commands for this machine: the daemon, the cache, an editor's files."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import write_changed
from buildtool.fronts.cli.commands import Own, Result, command


@command(
    "Starts, stops or shows the planner's daemon, which makes every plan after the first one fast.",
    kind="",
    own=(
        Own(("action",), "What to do.", choices=("start", "stop", "restart", "status", "logs")),
        Own(
            ("--all",),
            "With stop and status: also daemons of other versions and caches.",
        ),
    ),
    examples=(("buildtool daemon status", "Whether one runs, and what it does."),),
)
def daemon(args: argparse.Namespace) -> Result:
    """Starts, stops or shows the planner's daemon."""
    from buildtool.fronts.cli import upkeep

    return upkeep.daemon_command(args.action, every=args.all)


@command(
    "Shows, checks or empties the cache of plans; explains what was made anew, and why.",
    kind="",
    own=(
        Own(("action",), "What to do.", choices=("stats", "verify", "clear", "explain")),
        Own(("words",), "With explain: words of the request, such as the model's file.", many=True),
    ),
    examples=(("buildtool cache explain wake.tflite", "Why its plan was made anew."),),
)
def cache(args: argparse.Namespace) -> Result:
    """Shows, checks, empties or explains the cache."""
    from buildtool.base.store import care
    from buildtool.fronts.cli import upkeep

    if args.words and args.action != "explain":
        raise UsageError(f"words have no effect on 'cache {args.action}'", hint="leave them out")
    if args.action == "stats":
        answer = care.stats()
        return answer, upkeep.stats_text(answer), 0
    if args.action == "verify":
        answer = care.verify()
        return answer, upkeep.verify_text(answer), 1 if answer["bad"] or answer["unreadable"] else 0
    if args.action == "clear":
        answer = care.clear()
        upkeep.drop_answers()
        return answer, f"removed {answer['entries']:,} entries, {answer['bytes']:,} bytes", 0
    answer = care.explain(" ".join(args.words))
    return answer, upkeep.explain_text(answer), 0


@command(
    "Writes an editor's files. Adds entries to existing files and changes none.",
    kind="",
    own=(
        Own(("editor",), "Which editor.", choices=("vscode",)),
        Own(("-b", "--board"), "The board (default: the editor asks).", "BOARD"),
        Own(("--model",), "The network (default: the editor asks).", "MODEL"),
        Own(("--folder",), "The folder that the editor opens (default: this one).", "DIR"),
    ),
    examples=(
        ("buildtool ide vscode -b cortex-m4 --model wake.tflite", "Tasks, a debugger, clangd."),
        ("buildtool ide vscode", "Tasks that ask for board and model."),
    ),
)
def ide(args: argparse.Namespace) -> Result:
    """Writes files for an editor, merged into the existing ones."""
    from buildtool.emit.ctext import identifier
    from buildtool.fronts.vscode.entries import Subject
    from buildtool.fronts.vscode.merge import FOLDER, merged, places
    from buildtool.options import MODEL_SUFFIXES
    from buildtool.plan.models import net_name
    from buildtool.target.registry import board_names, load_board

    folder, model = Path(args.folder or "."), args.model or ""
    if model.lower().endswith(MODEL_SUFFIXES):
        model = str(Path(model).absolute())
    emulator = load_board(args.board).own_emulator if args.board else None
    subject = Subject(
        _relative_name(args.board or "", folder),
        _relative_name(args.model or "", folder),
        tuple(board_names()),
        identifier(net_name(model)) if model else "",
        (emulator.machine or emulator.kind) if emulator else None,
        (folder / "SConstruct").is_file(),
    )
    merge = merged(folder, subject)
    written = sorted(
        name for place, files in places(folder, merge.files).items() for name in write_changed(files, place)
    )
    lines = [f"added to {FOLDER}/{name}" for name in merge.added]
    lines += [f"left as it is: {FOLDER}/{name}" for name in merge.kept]
    text = "\n".join(lines or [f"{folder / FOLDER}: nothing is missing"])
    return {"files": written, "added": merge.added, "kept": merge.kept}, text, 0


def _relative_name(name: str, folder: Path) -> str:
    """Returns a board's or model's name for the editor's tasks.

    Relative paths start at `folder`, where these tasks run.
    """
    from buildtool.options import MODEL_SUFFIXES

    if not name.lower().endswith((*MODEL_SUFFIXES, ".toml")):
        return name
    path = name if Path(name).is_absolute() else os.path.relpath(name, folder)
    return f"./{path}" if path.startswith("-") else path
