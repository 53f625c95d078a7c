"""Reads XML files of vendors: CMSIS-SVD files, and the description (.pdsc) of a CMSIS-Pack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.parsers import expat

from buildtool.base.errors import UsageError, closest
from buildtool.target.chipfiles.facts import ChipFacts, Region, add_region, evaluate
from buildtool.target.hardware import MemoryKind

MOST_NAMED = 8  # chips that an error names
_LEVELS = 4  # from a family to a variant
_CORES = {"0": "cortex-m0", "0PLUS": "cortex-m0plus", "0+": "cortex-m0plus"}
_FPU = {"0": "none", "NO_FPU": "none", "1": "", "FPU": "", "SP_FPU": "single", "DP_FPU": "double"}


def _parse(data: bytes, what: str) -> ElementTree.Element:
    """Returns the root element of an XML file. Raises UsageError if it is malformed, or has a DTD, whose
    entities could grow without limit.
    """

    def refuse(*_: object) -> None:
        text = f"the {what} has a document type (DTD), which is not read"
        raise UsageError(text, hint="remove <!DOCTYPE ...>")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
        return ElementTree.fromstring(data)
    except (expat.ExpatError, ElementTree.ParseError, LookupError, ValueError) as error:
        raise UsageError(f"the {what} is not XML: {error}") from None


def _core(text: str) -> str:
    """Returns buildtool's name for a core called "CM4", "Cortex-M0+" and similar; another core's name
    unchanged.
    """
    match = re.fullmatch(r"(?:CM|Cortex-?M)([0-9]+(?:PLUS|\+)?)[A-Z]*", text.strip(), re.IGNORECASE)
    return _CORES.get(match[1].upper(), f"cortex-m{match[1]}") if match else text.strip().lower()


def _number(text: str | None) -> int:
    return evaluate((text or "").strip().lower().removeprefix("#")) or 0


def read_svd(data: bytes) -> ChipFacts:
    """Returns the facts in a CMSIS-SVD: the chip's name, its core and floating-point unit, its serial ports.
    It has no memories.
    """
    root = _parse(data, "SVD file")
    if root.tag != "device":
        raise UsageError(f"this is not an SVD file: its root is <{root.tag}>, not <device>")
    uarts = []
    for peripheral in root.iterfind("peripherals/peripheral"):
        name, base = peripheral.findtext("name", "").strip(), _number(peripheral.findtext("baseAddress"))
        if base and re.search(r"UART|USART|SERCOM|\bSCI", name, re.IGNORECASE):
            uarts.append((name, base))
    has_fpu = root.findtext("cpu/fpuPresent", "").strip().lower()
    return ChipFacts(
        chip=root.findtext("name", "").strip(),
        core=_core(root.findtext("cpu/name", "")),
        fpu="none"
        if has_fpu in ("false", "0")
        else "double"
        if root.findtext("cpu/fpuDP", "") in ("true", "1")
        else "",
        uarts=tuple(uarts),
    )


def read_pack(data: bytes, chip: str) -> ChipFacts:
    """Returns the facts in the .pdsc file of a CMSIS-Pack about `chip` ("": the only one): core, highest
    clock and memories.

    Raises UsageError if the pack does not have that chip, or if `chip` is "" and the pack has several.
    """
    root = _parse(data, "pack description")
    if root.tag != "package":
        raise UsageError(f"this is not a pack description: its root is <{root.tag}>, not <package>")
    chips = {name.upper(): (name, path) for name, path in _chips(root)}
    if not chips:
        raise UsageError("this pack describes no chips", hint="a device family pack (DFP) does")
    if not chip and len(chips) > 1:
        some = ", ".join(name for name, _ in list(chips.values())[:MOST_NAMED])
        raise UsageError(f"the pack has {len(chips)} chips", hint=f"--chip NAME: {some}, ...")
    if chip and chip.upper() not in chips:
        near = closest(chip.upper(), sorted(chips), MOST_NAMED) or sorted(chips)[:MOST_NAMED]
        raise UsageError(f"the pack has no chip '{chip}'", hint=f"--chip {' or '.join(near)}")
    name, path = chips[chip.upper()] if chip else next(iter(chips.values()))
    return _pack_facts(name, path)


def _chips(root: ElementTree.Element) -> Iterator[tuple[str, list[ElementTree.Element]]]:
    """Yields every chip's name with the elements that describe it, from its family to its variant. Later
    elements override earlier ones.
    """

    def below(
        element: ElementTree.Element, path: list[ElementTree.Element]
    ) -> Iterator[tuple[str, list[ElementTree.Element]]]:
        here = [*path, element]
        name = element.get("Dvariant") or element.get("Dname")
        if name and len(name) < 100 and name.isprintable():
            yield name, here
        for tag in ("subFamily", "device", "variant") if len(here) < _LEVELS else ():
            for inner in element.iterfind(tag):
                yield from below(inner, here)

    for family in root.iterfind("devices/family"):
        yield from below(family, [])


def _pack_facts(chip: str, path: list[ElementTree.Element]) -> ChipFacts:
    processors: dict[str, dict[str, str]] = {}
    for element in path:
        for processor in element.iterfind("processor"):
            processors.setdefault(processor.get("Pname", ""), {}).update(processor.attrib)
    shared = processors.pop("", {}) if len(processors) > 1 else {}
    own_name, own = next(iter(processors.items()), ("", {}))
    own = {**shared, **own}
    regions: list[Region] = []
    code = ""
    for memory in (m for element in reversed(path) for m in element.iterfind("memory")):
        if memory.get("alias") or memory.get("Pname", own_name) != own_name:
            continue
        name, access = memory.get("name") or memory.get("id") or "", memory.get("access") or ""
        is_ram = "w" in access if access else "RAM" in name.upper()
        kind = MemoryKind.RAM if is_ram and "FLASH" not in name.upper() else MemoryKind.ROM
        before = len(regions)
        add_region(regions, name, kind, _number(memory.get("start")), _number(memory.get("size")))
        if len(regions) > before and kind is MemoryKind.ROM and memory.get("startup") == "1":
            code = code or regions[-1].name
    others = [name for name in processors if name not in ("", own_name)]
    return ChipFacts(
        chip=chip,
        core=_core(own.get("Dcore", "")),
        fpu=_FPU.get(own.get("Dfpu", "").upper(), ""),
        clock_hz=_number(own.get("Dclock")),
        regions=tuple(regions),
        code=code,
        remarks=(f"The chip's other cores ({', '.join(others)}) are not used.",) if others else (),
    )
