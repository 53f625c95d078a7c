"""A network as a folder that any build system compiles: its sources, its kernels and all their headers.

This needs no compiler. For an example, the folder also has a golden input. `buildtool.fronts.bundles` writes
the files that depend on the other networks of a folder, such as CMakeLists.txt.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool import DISTRIBUTION
from buildtool.api.answers.building import needs, sources_of
from buildtool.api.describe import EXACT
from buildtool.api.requests.kinds import Bundle
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import System
from buildtool.base.session import Session
from buildtool.schema.builds import BundleAnswer, BundledNetwork, License, SecondArena
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.emit.sources import Sources
    from buildtool.firmware.planned import Planned
    from buildtool.plan.types import Plan

KERNELS, NETWORKS = "kernels", "networks"  # the folders of the shared files, and of each network's own
_HARNESS = "harness_net.h"  # for the test firmware only
TEXTS = "LICENSES"  # the folder of the licenses' texts
_BUILDTOOL = "buildtool"
_NAMES = re.compile(r"(?i)(licen[cs]e|copying)([.-].*)?$")
_TAG = re.compile(rb"SPDX-License-Identifier:[ \t]*([\w.+() -]+?)[ \t]*(?:\*/|\r?$)", re.MULTILINE)


def example_folder(system: System) -> str:
    """Returns the bundle's folder for the example, which compares an output with the reference's.

    Bundles for all systems but plain have an example.
    """
    return "example/main" if system is System.IDF else "example"  # of ESP-IDF: a component


def answer(request: Bundle, session: Session) -> BundleAnswer:
    """Returns the answer to a `bundle` request."""
    from buildtool.emit.sources import kernel_sources
    from buildtool.target.kernels import application_sources

    if request.target.cmsis_nn:
        raise UsageError(
            "a bundle cannot use CMSIS-NN: no files of CMSIS-NN are copied into a bundle",
            option="cmsis_nn",
            hint=suggest(cmsis_nn=None),
        )
    planned, sources, emitted = sources_of(request, session)
    own = {file: data for file, data in emitted.items() if file != _HARNESS}
    compiled = [*kernel_sources(planned.plan, planned.target), *application_sources()]
    kernels, headers = _find_kernel_files(planned.target, own.values(), compiled)
    licensed, texts = licenses(planned.target, {**kernels, **headers})
    files = {f"{NETWORKS}/{sources.net}/{file}": data for file, data in own.items()}
    files |= {file: path.read_bytes() for file, path in {**kernels, **headers}.items()} | texts
    if request.system is not System.PLAIN:
        from buildtool.firmware.run.example_header import golden_header

        place = f"{example_folder(request.system)}/nn_golden_{sources.net}.h"
        files[place] = golden_header(request, planned, sources.net)
    network = _describe_network(
        request, planned, sources, list(kernels), list(headers), licensed, list(files)
    )
    return {**needs(planned, sources), "network": network, "files": files}


def _describe_network(
    request: Bundle,
    planned: Planned,
    sources: Sources,
    kernels: list[str],
    headers: list[str],
    licensed: list[License],
    files: list[str],
) -> BundledNetwork:
    """Returns the description of the network for build systems.

    `kernels`, `headers` and `files` are names of files in the bundle.
    """
    from buildtool.plan.codec import digest

    net, plan, core = sources.net, planned.plan, planned.target.board.core
    folder, text = f"{NETWORKS}/{net}", sources.files[f"{net}.h"].decode()
    array = f"{folder}/{net}_weights.c"
    return {
        "network": request.name or planned.model.name,
        "system": str(request.system),
        "board": planned.target.board.name,
        "core": list(core.cflags),
        "exact": list(EXACT),
        "defines": list(core.defines),
        "plan": digest(plan),
        "arena_bytes": _read_macro(text, "ARENA_BYTES") or plan.arenas[0],
        **_count_other_memory(plan, text),
        "arena_alignment": _read_macro(text, "ARENA_ALIGNMENT") or plan.alignment,
        "stack_bytes": _read_macro(text, "STACK_BYTES"),
        "weights_bytes": len(sources.image.data),
        "streamed": f" {net}_set_row_source(" in text,
        "loaded": bool(plan.loads),
        "sources": [f"{folder}/{file}" for file in sources.c_files],
        "kernels": kernels,
        "weights": f"{folder}/{net}_weights.bin",
        "assembly": f"{folder}/{net}_weights.S",
        "array": array,
        "include": [folder, f"{KERNELS}/include"],
        "include_kernels": sorted({file.rpartition("/")[0] for file in headers}),
        "licenses": licensed,
        "files": sorted([*files, array]),
    }


def _count_other_memory(plan: Plan, header: str) -> SecondArena:
    keys: SecondArena = {}
    if plan.second_at:
        keys["second_arena_bytes"] = _read_macro(header, "SECOND_ARENA_BYTES") or plan.arenas[1]
    if plan.states:
        keys["state_bytes"] = plan.state_bytes
    return keys


def _read_macro(header: str, name: str) -> int | None:
    """Returns the number that the network's header defines as NET_`name`; None if there is no such macro."""
    match = re.search(rf"(?m)^#define \w+_{name} (\d+)$", header)
    return int(match.group(1)) if match else None


def _find_kernel_files(
    target: Target, own: Iterable[bytes], compiled: list[Path]
) -> tuple[dict[str, Path], dict[str, Path]]:
    """Returns the kernels' sources and all included headers, each as a map from a name in the bundle to a
    file.

    `own` are the contents of the network's own sources, and `compiled` the files of the kernels to compile.
    """
    from buildtool.base.objects import closure
    from buildtool.target.kernels import APART_HEADERS, include_folder, kernel_includes

    homes = {family.folder: family.name for family in target.families}
    homes |= {include_folder(): "include", compiled[0].parent: compiled[0].parent.name}

    def place(paths: Iterable[Path]) -> dict[str, Path]:
        files = {}
        for path in paths:
            home = next(folder for folder in (path.parent, *path.parents) if folder in homes)
            files[f"{KERNELS}/{homes[home]}/{path.relative_to(home).as_posix()}"] = path
        return dict(sorted(files.items()))

    folders = kernel_includes(target)
    application = (f'#include "{name}"\n'.encode() for name in APART_HEADERS)
    return place(compiled), place(closure([*own, *application], compiled, folders))


# ---- the licenses of the kernels, as their distributions give them --------------------------------------


def licenses(target: Target, files: Mapping[str, Path]) -> tuple[list[License], dict[str, bytes]]:
    """Returns the licenses of `files`, and the licenses' texts by their names in the bundle.

    `files` maps a name in the bundle to a file.
    """
    from buildtool.firmware.tools import ours

    roots = [folder.resolve() for folder in ours().values()]
    own_folders, others = set[str](), dict[str, dict[str, Path]]()
    for name, path in files.items():
        folder = name.rpartition("/")[0]
        if any(path.resolve().is_relative_to(root) for root in roots):
            own_folders.add(folder)
        else:
            others.setdefault(folder, {})[name] = path
    rows: list[License] = []
    texts: dict[str, bytes] = {}

    def add(name: str, spdx: str, text: bytes, folders: list[str]) -> None:
        place = f"{TEXTS}/{name}.txt" if text else ""
        texts.update({place: text} if text else {})
        rows.append({"spdx": spdx, "text": place, "folders": folders})

    if own_folders:
        add(_BUILDTOOL, *_read_our_license(), sorted(own_folders))
    families = {family.folder: family.name for family in target.families}
    for folder, members in sorted(others.items()):
        first = next(iter(members.values()))
        home = next((place for place in first.parents if place in families), first.parent)
        # the text is in the folder of the kernel family, or in the folder of the package around it
        near = (path for place in (home, home.parent) for path in sorted(place.iterdir()))
        text = next((path.read_bytes() for path in near if _NAMES.match(path.name) and path.is_file()), b"")
        tags = {tag for path in members.values() for tag in _TAG.findall(path.read_bytes())}
        spdx = " AND ".join(sorted(tag.decode(errors="replace") for tag in tags))
        add(families.get(home, home.name), spdx, text, [folder])
    return rows, texts


def _read_our_license() -> tuple[str, bytes]:
    """Returns the SPDX expression and the text of buildtool's license, from the package or the checkout."""
    expression, files = "", []
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, KeyError):  # it is not installed
        expression = importlib.metadata.metadata(DISTRIBUTION)["License-Expression"]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        files = importlib.metadata.files(DISTRIBUTION) or []
    checkout = Path(__file__).resolve().parents[2] / "LICENSE"
    paths = [checkout, *(Path(str(file.locate())) for file in files if _NAMES.match(file.name))]
    return expression, next((path.read_bytes() for path in paths if path.is_file()), b"")
