"""Reads the MEMORY command of a GNU linker script."""

from __future__ import annotations

import re

from buildtool.base.errors import UsageError
from buildtool.target.chipfiles.facts import ChipFacts, Region, add_region, evaluate
from buildtool.target.hardware import MemoryKind

_MOST_TEXT = 1 << 14  # characters of a MEMORY command
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|^[ \t]*#.*?$", re.DOTALL | re.MULTILINE)
_BLANKS = re.compile(r"\s+")  # replaced by single ones: the other patterns would try each blank
_BLOCK = re.compile(rf"\bMEMORY\s*\{{([^{{}}]{{0,{_MOST_TEXT}}})\}}")
_REGION = re.compile(
    r"(?<![\w.])([A-Za-z_.][\w.]*)\s*(?:\(([^)]*)\))?\s*:\s*(?:ORIGIN|org|o)\s*=\s*(.*?)\s*,\s*(?:LENGTH|len|l)\s*=\s*(.*?)"
    r"(?=\s*(?:\n|;|$|[A-Za-z_.][\w.]*\s*(?:\([^)]*\))?\s*:))",
    re.DOTALL | re.IGNORECASE,
)
_SYMBOL = re.compile(r"^\s*([A-Za-z_]\w*)\s*=\s*([^;]{1,200});", re.MULTILINE)
_OF = re.compile(r"\b(ORIGIN|LENGTH)\s*\(\s*([\w.]+)\s*\)", re.IGNORECASE)


def read_linker_script(text: str) -> ChipFacts:
    """Returns the memories of a linker script. Raises UsageError if none has plain numbers.

    A memory counts as ROM if its name says flash or ROM, or if its attributes do not allow writing.
    """
    plain = _BLANKS.sub(lambda blanks: "\n" if "\n" in blanks[0] else " ", _COMMENT.sub("", text))
    blocks = _BLOCK.findall(plain)
    if not blocks:
        raise UsageError("this linker script has no MEMORY command that can be read")
    names = {
        name: number for name, value in _SYMBOL.findall(plain) if (number := evaluate(value)) is not None
    }
    regions: list[Region] = []
    unknown = []
    for name, attributes, origin, length in (match for block in blocks for match in _REGION.findall(block)):
        base, size = (evaluate(_OF.sub(r"\1_\2", part), names) for part in (origin, length))
        if base is None or size is None:
            unknown.append(name)
            continue
        names |= {f"ORIGIN_{name}": base, f"LENGTH_{name}": size}
        is_flash = re.search(r"flash|rom|\bmram|xip", name, re.IGNORECASE) is not None
        writable = "w" in attributes.lower() if attributes else not is_flash
        add_region(regions, name, MemoryKind.RAM if writable and not is_flash else MemoryKind.ROM, base, size)
    if not regions:
        what = f"sizes of {', '.join(unknown)} are symbols" if unknown else "it has no regions"
        raise UsageError(
            f"no memory of this linker script is known: {what}", hint="preprocess it, or --flash, --ram"
        )
    remarks = (f"Not numbers, so left out: {', '.join(unknown)}.",) if unknown else ()
    return ChipFacts(regions=tuple(regions), remarks=remarks)
