"""Answers about builds as text: sizes, firmware, bundles, build descriptions, arena problems."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from buildtool.base.modes import Level
from buildtool.client.planned import planned_line
from buildtool.fronts.changes import sizetree
from buildtool.fronts.texts.boards import board_lines, note_lines
from buildtool.fronts.texts.table import Cell, count, plain, state_suffix, table

if TYPE_CHECKING:
    from buildtool.schema.builds import (
        ArenaAnswer,
        BuildAnswer,
        BundleAnswer,
        DescribeAnswer,
        MemorySize,
        SizePart,
        SizesAnswer,
        StackSize,
        TflmAnswer,
    )

DEPTH = 3  # default number of levels of a tree that are shown
INDENT = 2  # blanks per level
FILES_FROM = {
    "map": "files and libraries: from the linker's map",
    "symbols": "files: known for some symbols, from their compilers; the linker's map (--map) has more",
    "": "files are not known: the firmware image does not name them; give the linker's map (--map)",
}

SMALL = 100  # a section of a host program below 1 / SMALL of its memory has no line of its own


def sizes_text(sizes: Sequence[MemorySize], stacks: Sequence[StackSize] = ()) -> str:
    """Returns a table of the memories that are not empty, with their sections, and the stacks below it."""
    rows: list[list[Cell]] = []
    for memory in sizes:
        if not memory["used"]:
            continue
        size = memory["size"] or None
        share = f"{100 * memory['used'] / size:.1f} %" if size else None
        name = f"{memory['memory']} of this machine" if memory["memory"] == "process" else memory["memory"]
        rows.append([name, memory["used"], size, share])
        sections = [(section["name"], section["bytes"]) for section in memory["sections"]]
        if memory["memory"] == "process":
            sections = [(name, number) for name, number in sections if SMALL * number >= memory["used"]]
            rest = memory["used"] - sum(number for _, number in sections)
            sections += [("others", rest)] if rest else []
        rows += [[f"  {name}", number, None, None] for name, number in sections]
    lines = [table(["memory", "bytes used", "bytes there", "share"], rows)]
    return "\n".join([*lines, *([""] if stacks else []), *map(_stack_text, stacks)])


def tree(parts: Sequence[SizePart], files_from: str, depth: int) -> str:
    """Returns a table of what each memory contains, in `depth` levels. Larger parts come first.

    `files_from` says how the files of parts were found, as in `SizesAnswer`.
    """
    rows = [[plain(name), node.after] for name, node in tree_lines(sizetree.tree((), parts), depth)]
    return "\n".join([table(["memory, and what is in it", "bytes"], rows), FILES_FROM[files_from]])


def tree_lines(nodes: Sequence[sizetree.Node], depth: int) -> Iterator[tuple[str, sizetree.Node]]:
    """Yields (indented name, node) for the nodes of the first `depth` levels. C++ names are demangled."""
    lines = list(sizetree.walk(nodes, depth))
    names = demangle(node.name for _, node in lines if node.level == "symbol")
    for indent, node in lines:
        yield " " * INDENT * indent + names.get(node.name, node.name), node


def _stack_text(stack: StackSize) -> str:
    """Returns a line about the stack that a network takes, with a warning if too little is reserved."""
    needed, reserved = stack["needed"], count(stack["reserved"], "byte")
    if needed is None:
        return f"stack: the size for {stack['function']} is not known; {reserved} are reserved"
    text = f"stack: {stack['function']} takes at most {count(needed, 'byte')} of {reserved} reserved"
    if needed <= stack["reserved"]:
        return text
    more = needed - stack["reserved"]
    return f"{text}; warning: raise stack_bytes in the board's file by {count(more, 'byte')}"


_TOOLS = ("c++filt", "llvm-cxxfilt", "arm-none-eabi-c++filt")
_MANGLED = ("_Z", "__Z", "_R")
_SECONDS = 20


def demangle(names: Iterable[str]) -> dict[str, str]:
    """Returns the demangled names by their mangled names; {} if no demangler works."""
    mangled = sorted({name for name in names if name.startswith(_MANGLED) and name.isprintable()})
    tool = next((path for name in _TOOLS if (path := shutil.which(name))), None)
    if not mangled or tool is None:
        return {}
    try:
        process = subprocess.run(
            [tool],
            input="\n".join(mangled) + "\n",
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    demangled = process.stdout.splitlines()
    return dict(zip(mangled, demangled, strict=True)) if len(demangled) == len(mangled) else {}


_HOW_TO_RUN = " ('buildtool validate' runs it and compares every output)"
MOST_OF_A_FOLDER = 8  # files that are named one by one


def build_text(answer: BuildAnswer, folder: str, files: Sequence[str], removed: Sequence[str]) -> str:
    """Returns the arena, the size report, the files written below `folder`, and those removed there."""
    folders = Counter(name.partition("/")[0] for name in files if "/" in name)
    shown: dict[str, None] = {}  # a folder with many files is shown with their number
    for name in files:
        top = name.partition("/")[0]
        many = "/" in name and folders[top] > MOST_OF_A_FOLDER
        shown[f"{top}/ ({folders[top]} files)" if many else name] = None
    lines = [
        f"{answer['net']} for {answer['board']}, compiled by {answer['compiler']}",
        f"level: {answer['level_text']}" + _HOW_TO_RUN * (answer["level"] == Level.COMPILED),
        f"arena: {count(answer['arena_bytes'], 'byte')}" + state_suffix(answer["state_bytes"]),
        "",
        sizes_text(answer["sizes"], answer["stacks"]),
        *board_lines(answer),
        "",
        f"written to {folder}: {', '.join(shown)}",
        f"{answer['net']}.elf is test firmware; for firmware of your own, 'buildtool build --bundle' writes "
        "the sources, the weights and the kernels that they call",
    ]
    if removed:
        lines.append(f"removed files of an earlier build: {', '.join(removed)}")
    return "\n".join(lines)


def image_text(answer: SizesAnswer, depth: int = DEPTH) -> str:
    """Returns what a firmware image takes of each memory, and what each memory contains.

    `depth` is the number of levels of the tree of contents.
    """
    lines = [sizes_text(answer["sizes"], answer["stacks"]), f"level: {answer['level_text']}"]
    lines += note_lines(answer["note"])
    return "\n".join([*lines, *(["", tree(answer["parts"], answer["files_from"], depth)] if depth else [])])


def bundle_text(answer: BundleAnswer, folder: str, changed: Sequence[str], removed: Sequence[str]) -> str:
    """Returns what the network needs, the numbers of files, and where to read more."""
    network = answer["network"]
    stack = network["stack_bytes"]
    lines = [
        planned_line(answer),
        f"board {network['board']}; stack of an invoke: "
        f"{'not known' if stack is None else count(stack, 'byte')}",
        "",
        f"{folder}: {count(len(changed), 'file')} written, {len(removed)} removed",
        f"the network uses {count(len(network['kernels']), 'file')} of kernels; "
        "README.md says how to compile and call it",
    ]
    return "\n".join(lines)


def description_text(answer: DescribeAnswer) -> str:
    """Returns the compiler with its flags, the groups of sources, and the network's files."""
    tools, network = answer["tools"], answer["network"]
    lines = [
        f"board     {answer['board']}",
        f"compiler  {tools['identity']}: {tools['cc']}",
        f"core      {shlex.join([*tools['core'], *(f'-D{name}' for name in tools['defines'])])}",
        f"exact     {shlex.join(tools['exact'])}",
    ]
    if network is not None:
        lines += [f"network   {network['net']}", f"emitted   {', '.join(network['emitted'])}"]
    users = dict.fromkeys(answer["library"], "library") | dict.fromkeys(answer["image"], "image")
    rows: list[list[Cell]] = [
        [group["name"], users.get(group["name"], ""), len(group["sources"])] for group in answer["groups"]
    ]
    return "\n".join([*lines, "", table(["group", "part of", "sources"], rows)])


_MEANING = {
    "optimal": "optimal: no placement is lower",
    "feasible": "feasible: a lower placement may exist",
    "infeasible": "infeasible: it is proven that nothing fits",
    "unknown": "unknown: no placement found; a larger --budget may find one",
}


def arena_text(answer: ArenaAnswer) -> str:
    """Returns lines about a placement: whether it is optimal, its height, its lower bound, and the effort."""
    height, capacity = answer["height_bytes"], answer["capacity_bytes"]
    lines = [
        f"{answer['problem']}: {_MEANING[answer['status']]}",
        *([] if height is None else [f"height    {count(height, 'byte')}"]),
        f"bound     {count(answer['bound_bytes'], 'byte')}",
        *([] if capacity is None else [f"capacity  {count(capacity, 'byte')}"]),
        f"nodes     {answer['nodes']:,}",
    ]
    return "\n".join(lines)


def tflm_text(answer: TflmAnswer, out: str) -> str:
    """Returns lines that say how many bytes the arena has, and what is a part of it."""
    over = answer["arena_bytes"] - answer["arena_bound_bytes"]
    bound = "no placement needs less" if not over else f"{over:,} over the largest live sum"
    return "\n".join(
        [
            f"{answer['model']} for TensorFlow Lite Micro: "
            f"{answer['placed_tensors']} of {answer['tensors']} tensors of the file placed",
            f"arena    {count(answer['arena_bytes'], 'byte')} ({bound})",
            "         - it includes inputs and outputs; offsets and sizes are rounded up to 16 bytes",
            "         - kernels' scratch and TFLM's own structures come on top",
            f"written: {out}",
        ]
    )
