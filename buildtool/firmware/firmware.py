"""Compiles and links emitted sources to a firmware image."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from buildtool.base.errors import ToolError
from buildtool.base.locks import scratch
from buildtool.base.objects import Compiler, Unit
from buildtool.base.outfiles import write_whole
from buildtool.base.session import Session
from buildtool.emit.sources import Sources, kernel_sources
from buildtool.firmware.linkmap import MAP_FLAG, explain_link_failure
from buildtool.firmware.objects import compile_all, refuse_unless_made, run
from buildtool.firmware.tools import RENAMES, harness
from buildtool.graph.types import Graph
from buildtool.plan.codec import digest
from buildtool.plan.summary.view import to_json
from buildtool.plan.types import Plan
from buildtool.target.kernels import kernel_includes
from buildtool.target.plugin import Exported, Harness, TargetPlugin, VendorBuild
from buildtool.target.types import Target, Toolchain


@dataclass(frozen=True)
class Firmware:
    """A linked firmware image on disk (`elf`), and the name and version of its compiler."""

    elf: Path
    compiler: str


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Writes files below `folder`, each one completely or not at all."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)


@dataclass(frozen=True)
class Objects:
    """The object files of a test firmware by owner; `all` has them in the order in which they are linked."""

    network: tuple[Path, ...]
    weights: tuple[Path, ...]
    kernels: tuple[Path, ...]
    others: tuple[Path, ...]

    @property
    def all(self) -> tuple[Path, ...]:
        """All objects, in the order in which they are linked."""
        return (*self.network, *self.weights, *self.kernels, *self.others)


def build_firmware(
    sources: Sources,
    plan: Plan,
    target: Target,
    toolchain: Toolchain,
    folder: Path,
    flags: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
    own_harness: Harness | None = None,
) -> Firmware:
    """Compiles and links a network's test firmware in `folder`.

    `flags` are added to every compilation and to the link (-DNN_TRACE, sanitizers). `tell` is called with the
    progress as text. `own_harness` has C files that replace those of the plugin's harness (None: the
    plugin's).
    """
    objects = compile_firmware(sources, plan, target, toolchain, folder, flags, tell, own_harness)
    elf = folder / f"{sources.net}.elf"
    tell(f"linking {elf.name}")
    link(toolchain, objects.all, elf, target, flags)
    return Firmware(elf, toolchain.identity)


def compile_firmware(
    sources: Sources,
    plan: Plan,
    target: Target,
    toolchain: Toolchain,
    folder: Path,
    flags: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
    own_harness: Harness | None = None,
) -> Objects:
    """Compiles a network's test firmware in `folder`. The arguments are those of `build_firmware`."""
    emitted = folder / "src"
    write_files(sources.files, emitted)
    includes = kernel_includes(target)
    renames = toolchain.renames
    if renames:  # debuggers look for the emitted files in the folder where they start
        renames = (*renames, f"{RENAMES}{emitted.resolve()}=.")
    own_sources = own_harness or harness(target.board, toolchain)
    all_flags = (*toolchain.cflags, *own_sources.flags, *flags)
    compiler = Compiler(toolchain.cc, toolchain.identity, all_flags, renames)
    own = (emitted, *map(Path, toolchain.includes), *includes)
    network = [Unit(emitted / name, (emitted, *includes)) for name in sources.c_files]
    weights = [Unit(emitted / f"{sources.net}_weights.S")]
    kernels = [Unit(source, includes) for source in kernel_sources(plan, target)]
    others = [
        *(Unit(source, (*own, *own_sources.includes)) for source in own_sources.sources),
        *(Unit(Path(source), own) for source in toolchain.objects),
    ]
    objects_folder = folder / "obj"
    objects_folder.mkdir(parents=True, exist_ok=True)
    groups = (network, weights, kernels, others)
    objects = iter(compile_all(compiler, list(itertools.chain(*groups)), objects_folder, tell))
    return Objects(*(tuple(itertools.islice(objects, len(units))) for units in groups))


def link(
    toolchain: Toolchain, objects: Sequence[Path], elf: Path, target: Target, flags: Sequence[str] = ()
) -> None:
    """Links objects to the image `elf`. If a memory overflows, the ToolError names it and the missing bytes.

    The linker script and the linker's map are written into the image's folder. Objects below this folder get
    paths relative to it, and so they appear in the map.
    """
    folder = elf.parent.resolve()
    paths = [path.resolve() for path in objects]
    command = [
        toolchain.cc,
        *toolchain.cflags,
        *flags,
        *(f"./{p.relative_to(folder)}" if p.is_relative_to(folder) else str(p) for p in paths),
        *link_flags(toolchain, folder),
        *("-Xlinker", f"{MAP_FLAG}{map_of(elf).name}"),
        *("-o", elf.name),
    ]
    try:
        what = f"linking {elf.name}"
        output = run(command, what, folder, lambda text: explain_link_failure(text, target.board))
        refuse_unless_made(elf, what, "firmware image", toolchain.cc, output)
    except ToolError:
        elf.unlink(missing_ok=True)
        raise


def map_of(elf: Path) -> Path:
    """Returns the path of the linker's map that belongs to a firmware image."""
    return elf.with_suffix(".map")


def link_flags(toolchain: Toolchain, folder: Path) -> tuple[str, ...]:
    """Returns the flags for a link, and writes the linker script that they name to `folder`."""
    if toolchain.script is not None:
        write_files({toolchain.script.name: toolchain.script.data}, folder)
    return toolchain.link_flags(folder)


def arena_map(net: str, name: str, plan: Plan, graph: Graph, session: Session) -> dict[str, bytes]:
    """Returns the file NET_arena.json, by name, where NET is `net`. It lists the buffers in the arena, and
    the steps in which each buffer is in use. `name` is the network's name.
    """
    view = to_json(plan, graph, session)
    rows: dict[str, object] = {
        key: view[key] for key in ("arena_bytes", "alignment", "accounting", "buffers", "loads", "moves")
    }
    if plan.second_at:
        rows["second_at"] = plan.second_at
    text = json.dumps({"network": name, "plan": digest(plan), **rows}, indent=1, sort_keys=True)
    return {f"{net}_arena.json": (text + "\n").encode()}


def for_other_tools(plugin: TargetPlugin, sources: Sources, plan: Plan, target: Target) -> dict[str, bytes]:
    """Returns the files that a board's family adds for the chip maker's own tools: build files and the
    kernels' sources. It is empty if the plugin has none.
    """
    make = getattr(plugin, "build_files", None)
    if make is None:
        return {}
    paths = kernel_sources(plan, target)
    kernels = {f"{path.parent.name}/{path.name}": path for path in paths}
    folders = dict.fromkeys([*kernel_includes(target), *sorted({path.parent for path in paths})])
    headers = {
        f"{folder.name}/{path.name}": path for folder in folders for path in sorted(folder.glob("*.h"))
    }
    includes = tuple(sorted({name.partition("/")[0] for name in headers}))
    copies = {f"kernels/{name}": path.read_bytes() for name, path in {**kernels, **headers}.items()}
    exported = Exported(sources.net, target.board, sources.files, tuple(kernels), includes)
    return {**copies, **make(exported)}


def compile_with_vendor(
    plugin: TargetPlugin, net: str, files: dict[str, bytes], tell: Callable[[str], None]
) -> VendorBuild | None:
    """Builds the files with the chip maker's own compiler; None if it is not installed, or the plugin uses
    none.
    """
    compile_ = getattr(plugin, "vendor_build", None)
    if compile_ is None:
        return None
    with scratch() as name:
        write_files(files, Path(name))
        return cast("VendorBuild | None", compile_(net, Path(name), tell))
