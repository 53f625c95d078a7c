"""What `--help` says beyond the options: examples, exit status, environment and files.

Imported only where help is printed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from buildtool.fronts.cli.commands import load

Pair = tuple[str, str]

EXAMPLES: tuple[Pair, ...] = (
    ("buildtool analyze wake.tflite", "Does it fit, and where? What would help?"),
    ("buildtool plan wake.tflite -b cortex-m4 --ram 64K", "How it runs within 64 KiB."),
    ("buildtool build wake.tflite -b cortex-m4 -o out", "The firmware, as files."),
    ("buildtool validate wake.tflite -b cortex-m4", "Is its output exact?"),
)  # of all commands together
STATUS: tuple[Pair, ...] = (
    ("0", "It worked; with validate and profile, the output is exact, or within its bounds."),
    ("1", "An error, or an output that differs."),
    ("2", "A mistake in the command line or in what it names."),
    ("70", "A fault of buildtool's own: please report it."),
)
ENVIRONMENT: tuple[Pair, ...] = (
    ("BUILDTOOL_DAEMON", "Who plans: auto, off or require."),
    ("BUILDTOOL_CACHE", "off: no plan and no object is kept; names of levels: these alone are."),
    ("BUILDTOOL_COMPILER_ENV", "Names of more variables that compilers get, with commas between them."),
    ("BUILDTOOL_HASH_INPUTS", "1: every file is read, whatever its times say."),
    ("BUILDTOOL_CLANG", "Path of a clang, in place of those in PATH."),
    ("BUILDTOOL_GCC", "The same of a gcc."),
    ("CI", "Where it is set, no daemon is started."),
    ("COLUMNS", "The width of tables, in characters."),
    ("NO_COLOR", "Where it is set, nothing is coloured."),
    ("FORCE_COLOR", "Where it is set (not 0), text is coloured also in files and pipes."),
    ("TMPDIR", "The folder for what is built and run on the way."),
)
FILES: tuple[Pair, ...] = (
    ("~/.cache/buildtool", "What was planned and compiled; $XDG_CACHE_HOME names another place."),
)


def examples(command: str) -> tuple[Pair, ...]:
    """Command lines, and what they do ("": of all commands together)."""
    return load(command).examples if command else EXAMPLES


def text(command: str, width: int) -> str:
    """What stands below the options of a command ("": of all), in lines of `width` characters at most."""
    parts = [
        ("examples", "\n".join(f"  {line}" for pair in examples(command) for line in _example(pair, width)))
    ]
    parts.append(("exit status", _table(STATUS, width)))
    if not command:
        parts += [("environment", _table(ENVIRONMENT, width)), ("files", _table(FILES, width))]
        see = "'buildtool help COMMAND' tells of a command; errors read path:line:column: error: text [CODE]."
    else:
        see = "'buildtool --help' tells of environment and files."
    shown = [f"{title}:\n{body}" for title, body in parts if body]
    return "\n\n".join([*shown, textwrap.fill(see, width, break_on_hyphens=False)]) + "\n"


def _example(pair: Pair, width: int) -> Iterable[str]:
    yield f"$ {pair[0]}"
    yield from (f"    {line}" for line in textwrap.wrap(pair[1], max(width - 6, 20)))


def _table(pairs: tuple[Pair, ...], width: int) -> str:
    """Names, and behind them what they mean."""
    widest = max(len(name) for name, _ in pairs)
    return "\n".join(
        textwrap.fill(
            meaning,
            max(width, widest + 24),
            initial_indent=f"  {name:{widest}}  ",
            subsequent_indent=" " * (widest + 4),
            break_on_hyphens=False,
        )
        for name, meaning in pairs
    )
