"""Reads files about a chip, by the ending of their names."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from buildtool.base.errors import UsageError
from buildtool.base.files import File
from buildtool.base.sizes import parse_size
from buildtool.target.chipfiles.devicetree import read_device_tree
from buildtool.target.chipfiles.facts import ChipFacts, Region, evaluate, unused_name
from buildtool.target.chipfiles.linkerscript import read_linker_script
from buildtool.target.chipfiles.xmlfiles import read_pack, read_svd
from buildtool.target.hardware import MemoryKind

ENDINGS = (".svd", ".pdsc", ".dts", ".dtsi", ".overlay", ".ld", ".lds", ".x")
_MOST_BYTES = 64 << 20
_LEVELS = 8  # folders above a device tree that are searched for the files that it includes


def read_facts(path: Path, chip: str) -> ChipFacts:
    """Returns the facts in a file about a chip; the ending of its name gives its format.

    `chip` names one of the chips in a CMSIS-Pack ("": the only one). Raises UsageError if the file cannot be
    read, or has none of the known formats.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        hint = "known endings: " + ", ".join(ENDINGS) + "; a .pack is a zip archive with a .pdsc"
        raise UsageError(f"what kind of file is this? Its name ends in '{ending}'", path=str(path), hint=hint)
    data = File(str(path)).read("the file", _MOST_BYTES)
    try:
        match ending:
            case ".svd":
                return read_svd(data)
            case ".pdsc":
                return read_pack(data, chip)
            case ".dts" | ".dtsi" | ".overlay":
                return read_device_tree(data.decode("utf-8", "replace"), lambda name: _beside(path, name))
        return read_linker_script(data.decode("utf-8", "replace"))
    except UsageError as error:
        error.path = error.path or str(path)
        raise


def _beside(path: Path, name: str) -> bytes | None:
    """Returns the content of the included file `name`: beside `path`, or in a folder above it or its folder
    `include`. None if it does not exist.
    """
    if name.startswith("/") or ".." in Path(name).parts:
        return None
    for folder in list(path.resolve().parents)[:_LEVELS]:
        for file in (folder / name, folder / "include" / name):
            with contextlib.suppress(OSError, ValueError):  # a name that is too long, a null character
                if file.is_file() and file.stat().st_size <= _MOST_BYTES:
                    return file.read_bytes()
    return None


def given_memory(text: str, kind: MemoryKind) -> Region:
    """Returns the memory that the text of an option describes: ADDRESS:SIZE, such as 0x08000000:512K. Raises
    UsageError for another text.
    """
    option = "ram" if kind is MemoryKind.RAM else "flash"
    base, _, size = text.partition(":")
    address, length = evaluate(base), parse_size(size)
    if address is None or not length:
        raise UsageError(f"'{text}' is not ADDRESS:SIZE", option=option, hint=f"--{option} 0x20000000:128K")
    return Region(option, kind, address, length)


def merged_facts(sources: Sequence[Path], chip: str, memories: Sequence[Region]) -> ChipFacts:
    """Returns the facts of several files; where they differ, the first file counts.

    `memories` are given by the user. They replace the memories of the same kind in the files.
    """
    facts = ChipFacts()
    for source in sources:
        read = read_facts(source, chip)
        if facts.core and read.core and facts.core != read.core:
            remark = f"{source.name} names another core, {read.core}, which was disregarded."
            facts = replace(facts, remarks=(*facts.remarks, remark))
        facts = facts.or_else(read)
    kinds = {memory.kind for memory in memories}
    kept = [r for r in facts.regions if r.kind not in kinds and not any(map(r.overlaps, memories))]
    names = {region.name for region in kept}
    regions = (*(replace(m, name=unused_name(m.name, names)) for m in memories), *kept)
    return replace(
        facts,
        regions=regions,
        code=facts.code if facts.code in names else "",
        arena=facts.arena if facts.arena in names else "",
    )
