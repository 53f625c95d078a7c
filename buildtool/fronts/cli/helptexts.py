"""What `--help` says beyond the options: examples, exit status, environment and files.

Imported only where help is printed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

Pair = tuple[str, str]

# A command line, and what it does.
EXAMPLES: dict[str, tuple[Pair, ...]] = {
    "": (
        ("buildtool analyze wake.tflite", "Does it fit, and where? What would help?"),
        ("buildtool plan wake.tflite -b cortex-m4 --ram 64K", "How it runs within 64 KiB."),
        ("buildtool build wake.tflite -b cortex-m4 -o out", "The firmware, as files."),
        ("buildtool validate wake.tflite -b cortex-m4", "Is its output exact?"),
    ),
    "analyze": (
        ("buildtool analyze wake.tflite", "On every board that is known."),
        ("buildtool analyze wake.tflite -b cortex-m4 -b my.toml", "On two of them."),
    ),
    "plan": (
        ("buildtool plan wake.tflite -b cortex-m4", "The cheapest plan that fits the board."),
        (
            "buildtool plan wake.tflite -b cortex-m4 --objective ram --max-f 1.1",
            "The least RAM for 10 % more.",
        ),
        ("buildtool plan wake.tflite -b cortex-m4 --sarif plan.sarif", "The same in CI."),
    ),
    "front": (("buildtool front wake.tflite -b cortex-m4 --image stream", "Memory against work."),),
    "report": (
        ("buildtool report wake.tflite -b cortex-m4 --out wake.html", "Then open wake.html in a browser."),
        ("buildtool report wake.tflite -b cortex-m4 --against wake.html --out new.html", "What changed?"),
    ),
    "build": (
        ("buildtool build wake.tflite -b cortex-m4 -o out", "Sources, .elf, .map and .bin in out/."),
        ("buildtool build wake.tflite -b cortex-m4 -o out --debug", "The same for a debugger."),
    ),
    "emit": (
        ("buildtool emit wake.tflite -b cortex-m4 -o gen --stamp gen/s --depfile gen/s.d", "A build's rule."),
    ),
    "describe": (("buildtool describe -b cortex-m4 --json", "Flags, sources and dependencies."),),
    "sizes": (
        ("buildtool sizes out/wake.elf -b cortex-m4", "What it takes of each memory, and what that is."),
        ("buildtool sizes new.elf -b cortex-m4 --diff old.elf --fail-if code+2%", "What grew."),
    ),
    "validate": (
        ("buildtool validate wake.tflite -b cortex-m4 --inputs 3 --tensors", "Every layer, three inputs."),
        ("buildtool validate wake.tflite -b host --sanitize", "With checks of addresses."),
        (
            "buildtool validate wake.tflite -b host --data photos --fail-if 'top1<70%'",
            "Accuracy on a folder of images for each class.",
        ),
    ),
    "profile": (
        ("buildtool profile wake.tflite -b cortex-m55", "Instructions by layer."),
        (
            "buildtool profile wake.tflite -b cortex-m4 --elf out/wake.elf --plan out/wake.plan",
            "Of an image.",
        ),
    ),
    "flash": (
        (
            "buildtool flash wake.tflite -b nucleo-f767zi -o out",
            "Then: buildtool profile wake.tflite -b nucleo-f767zi --on board --flashed",
        ),
    ),
    "debug": (
        ("buildtool debug wake.tflite -b cortex-m4 -o session", "Then, elsewhere, the line that it prints."),
    ),
    "ops": (
        ("buildtool ops", "Which of TFLite's operators are read, by data type."),
        ("buildtool ops wake.tflite", "Which kernels run its operators."),
    ),
    "boards": (("buildtool boards", "Names, cores and memories."),),
    "target": (
        (
            "buildtool target check acme",
            "The kernels of the plugin acme, on every board of it that runs here.",
        ),
        ("buildtool target check acme -b acme-demo --cases 50 -o failed", "Closer, and keeps what fails."),
    ),
    "diff": (
        ("buildtool diff old.json new.json", "What grew, in all and by layer."),
        ("buildtool diff old.json new.json --markdown --fail-if ram+0,cost+2%", "In a pull request's check."),
    ),
    "zoo": (("buildtool zoo ds_cnn -o models", "Writes models/ds_cnn.tflite."),),
    "split": (
        (
            "buildtool split wake.keras --data photos -b nucleo-f767zi --ram 64K -o small",
            "Then: buildtool build small/split.tflite -b nucleo-f767zi --plan small/split.plan -o out",
        ),
        ("buildtool split vgg16 --width 0.25 --data cifar10 -b cortex-m4", "Trains the network first."),
    ),
    "watch": (("buildtool watch wake.tflite -b cortex-m4", "Until Ctrl-C."),),
    "ide": (
        ("buildtool ide vscode -b cortex-m4 --model wake.tflite", "Tasks, a debugger, clangd."),
        ("buildtool ide vscode", "Tasks that ask for board and model."),
    ),
    "daemon": (("buildtool daemon status", "Whether one runs, and what it does."),),
    "cache": (("buildtool cache explain wake.tflite", "Why its plan was made anew."),),
    "arena": (("buildtool arena buffers.csv --capacity 4096 -o solved.csv", "Offsets within 4 KiB."),),
}
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


def text(command: str, width: int) -> str:
    """What stands below the options of a command ("": of all), in lines of `width` characters at most."""
    parts = [
        ("examples", _block([line for pair in EXAMPLES.get(command, ()) for line in _example(pair, width)]))
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


def _block(lines: Iterable[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


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
