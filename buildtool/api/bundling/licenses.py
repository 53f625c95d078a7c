"""Under which licenses the kernels stand that a bundle copies: what their distributions say of themselves."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from buildtool import DISTRIBUTION
from buildtool.schema.builds import License
from buildtool.target.types import Target

TEXTS = "LICENSES"  # the folder of the texts
_OURS = "buildtool"
_NAMES = re.compile(r"(?i)(licen[cs]e|copying)([.-].*)?$")
_TAG = re.compile(rb"SPDX-License-Identifier:[ \t]*([\w.+() -]+?)[ \t]*(?:\*/|\r?$)", re.MULTILINE)


@dataclass
class Licensed:
    """What was found: the licenses, and the texts by their names in the bundle."""

    found: list[License] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)


def licenses(target: Target, files: Mapping[str, Path]) -> Licensed:
    """The licenses of `files` (name in the bundle -> file)."""
    from buildtool.firmware.tools import ours

    roots = [folder.resolve() for folder in ours().values()]
    mine, others = set[str](), dict[str, dict[str, Path]]()
    for name, path in files.items():
        folder = name.rpartition("/")[0]
        if any(path.resolve().is_relative_to(root) for root in roots):
            mine.add(folder)
        else:
            others.setdefault(folder, {})[name] = path
    licensed = Licensed()
    if mine:
        _add(licensed, _OURS, _our_expression(), _our_text(), sorted(mine))
    known = {family.folder: family.name for family in target.families}
    for folder, listed in sorted(others.items()):
        first = next(iter(listed.values()))
        home = next((place for place in first.parents if place in known), first.parent)
        _add(licensed, known.get(home, home.name), _tags(listed.values()), _text_near(home), [folder])
    return licensed


def _add(licensed: Licensed, name: str, spdx: str, text: bytes, folders: list[str]) -> None:
    place = f"{TEXTS}/{name}.txt" if text else ""
    if text:
        licensed.texts[place] = text
    licensed.found.append({"spdx": spdx, "text": place, "folders": folders})


def _our_expression() -> str:
    """As the distribution's metadata say."""
    try:
        return importlib.metadata.metadata(DISTRIBUTION)["License-Expression"]
    except (importlib.metadata.PackageNotFoundError, KeyError):  # a checkout that is not installed
        return ""


def _our_text() -> bytes:
    """The text that came with the distribution, or lies in the checkout."""
    checkout = Path(__file__).resolve().parents[3] / "LICENSE"
    if checkout.is_file():
        return checkout.read_bytes()
    try:
        listed = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        listed = []
    found = [Path(str(file.locate())) for file in listed if _NAMES.match(file.name)]
    return next((path.read_bytes() for path in found if path.is_file()), b"")


def _text_near(folder: Path) -> bytes:
    """The text in a kernel family's folder, or in the package's folder that it lies in."""
    for place in (folder, folder.parent):
        for path in sorted(place.iterdir()):
            if _NAMES.match(path.name) and path.is_file():
                return path.read_bytes()
    return b""


def _tags(files: Iterable[Path]) -> str:
    """What the files' SPDX tags say, all of it; "" where there is no tag."""
    found = {tag.decode(errors="replace") for path in files for tag in _TAG.findall(path.read_bytes())}
    return " AND ".join(sorted(found))
