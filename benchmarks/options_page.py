"""The reference page of the options, made from their table: `python -m benchmarks.options_page`."""

from __future__ import annotations

import sys

from buildtool.api.requests import EVERY_KIND, type_of
from buildtool.base.modes import Strategy
from buildtool.options import OPTIONS
from buildtool.options.table import Group, Option

_HEAD = """\
# Options

This page is made from the table in `buildtool/options/`:
`python -m benchmarks.options_page > docs/reference/options.md`.

The command line, SCons and requests have the same options. The command line writes `--max-f 1.1`, SCons and
requests write `max_f=1.1`. A request that an option does not change refuses it, and so does a strategy that
does not heed it. Sizes are in bytes. K means 1,024 bytes, M means
1,024 K: `64K`, `64k`, `64KB`, `64KiB` and `64 KiB` are all 65,536 bytes.
"""
_GROUPS = {
    Group.PLANNING: (
        "Planning",
        "How the network is planned. A limit that no plan meets is an error, which names a limit that works.",
    ),
    Group.TARGET: ("Target", "What the network is for, and what it is compiled with."),
    Group.FIELD: (
        "Checks in the field",
        "What the network can check in a product ([c-interface.md](c-interface.md#checks-in-the-field)).",
    ),
    Group.INPUT: ("Input", "What `validate` and `profile` run the network on."),
    Group.BUILT: (
        "Existing files",
        "A plan or a firmware image from an earlier run, to use instead of planning and building.",
    ),
    Group.DESK: (
        "An attached board",
        "Where test firmware runs, and how it is reached "
        "([attached-boards.md](../guides/attached-boards.md)).",
    ),
    Group.REPORT: ("Report", "What is compared and shown."),
    Group.COUNTING: (
        "ONNX and Darknet files without a board",
        "How `analyze` counts the memory of a .onnx file (without `board`) or a .cfg file; `order` acts "
        "there, too.",
    ),
    Group.QUANTISING: ("Quantising", "How `quantize` makes an integer network."),
    Group.SPLIT: (
        "Splitting and training",
        "What `split` does ([split.md](../guides/split.md)). "
        "The command does it in its own process, and no service.",
    ),
    Group.OTHER: ("Other", "The files that requests are about, and options of single requests."),
}


def page() -> str:
    """Returns the page as Markdown."""
    parts = [_HEAD]
    for group, (title, purpose) in _GROUPS.items():
        rows = [_row(option) for option in OPTIONS if option.group is group]
        head = ["| option | value | what it does | default | requests |", "| --- | --- | --- | --- | --- |"]
        parts.append("\n".join([f"## {title}", "", purpose, "", *head, *rows, ""]))
    return "\n".join(parts)


def _row(option: Option) -> str:
    name = f"`{option.name}`"
    if option.spelt:
        name += f" (`{option.flagged}`)"
    value = ", ".join(f"`{one}`" for one in option.values) or option.metavar
    said = option.sentence
    if len(option.strategies) < len(Strategy):
        said += f" With strategy {' or '.join(option.strategies)} only."
    kinds = ", ".join(kind for kind in EVERY_KIND if option.name in type_of(kind).takes)
    cells = [name, "true or false" if option.flag else value, said, option.default, kinds]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.stdout.write(page())
