"""A network as a folder that any build system compiles: its sources, the kernels it uses, what they include.

No compiler is needed to make it. What depends on the other networks of a folder, such as its CMakeLists.txt,
is written by buildtool.fronts.bundles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from buildtool.api.bundling.licenses import licenses
from buildtool.api.describe import EXACT
from buildtool.api.requests.kinds import Bundle
from buildtool.base.errors import UsageError, suggest
from buildtool.base.session import Session
from buildtool.plan.types import Plan
from buildtool.schema.builds import BundleAnswer, BundledNetwork, SecondArena
from buildtool.target.types import Target

KERNELS, NETWORKS = "kernels", "networks"  # the folders of what networks share, and of each by itself
_HARNESS = "harness_net.h"  # for the test firmware alone


def answer(request: Bundle, session: Session) -> BundleAnswer:
    """The answer to a `bundle` request."""
    from buildtool.emit.sources import kernel_sources
    from buildtool.firmware.emitted import emitted
    from buildtool.firmware.firmware import arena_map
    from buildtool.firmware.needs import refuse_unless_fits
    from buildtool.firmware.planned import planned_or_given
    from buildtool.plan.codec import digest, to_bytes
    from buildtool.target.kernels import apart

    if request.target.cmsis_nn:
        raise UsageError(
            "a bundle holds all that it needs, and no files of CMSIS-NN are copied",
            option="cmsis_nn",
            hint=suggest(cmsis_nn=None),
        )
    made = planned_or_given(request.model, request.target, request.options, request.lock, session)
    name = request.name or made.model.name
    sources = emitted(made, name)
    refuse_unless_fits(made, len(sources.image.data))
    net, plan, core = sources.net, made.plan, made.target.board.core
    own = {
        **{file: data for file, data in sources.files.items() if file != _HARNESS},
        **arena_map(net, name, plan, made.graph, session),
        f"{net}.plan": to_bytes(plan),
    }
    folder, compiled = f"{NETWORKS}/{net}", [*kernel_sources(plan, made.target), *apart()]
    kernels, headers = _kernel_files(made.target, own.values(), compiled)
    licensed = licenses(made.target, {**kernels, **headers})
    files = {f"{folder}/{file}": data for file, data in own.items()}
    files |= {file: path.read_bytes() for file, path in {**kernels, **headers}.items()} | licensed.texts
    text = own[f"{net}.h"].decode()
    array = f"{folder}/{net}_weights.c"
    network: BundledNetwork = {
        "network": name,
        "board": made.target.board.name,
        "core": list(core.cflags),
        "exact": list(EXACT),
        "defines": list(core.defines),
        "plan": digest(plan),
        "arena_bytes": plan.arenas[0],
        **_second(plan),
        "arena_alignment": _macro(text, "ARENA_ALIGNMENT") or plan.alignment,
        "stack_bytes": _macro(text, "STACK_BYTES"),
        "weights_bytes": len(sources.image.data),
        "streamed": f" {net}_set_row_source(" in text,
        "loaded": bool(plan.loads),
        "sources": [f"{folder}/{file}" for file in sources.c_files],
        "kernels": list(kernels),
        "weights": f"{folder}/{net}_weights.bin",
        "assembly": f"{folder}/{net}_weights.S",
        "array": array,
        "include": [folder, f"{KERNELS}/include"],
        "include_kernels": sorted({file.rpartition("/")[0] for file in headers}),
        "licenses": licensed.found,
        "files": sorted([*files, array]),
    }
    return {"net": net, "network": network, "files": files}


def _second(plan: Plan) -> SecondArena:
    """The sizes of a second arena, and of state; nothing where there is none."""
    found: SecondArena = {"second_arena_bytes": plan.arenas[1]} if plan.second_at else {}
    return {**found, "state_bytes": plan.state_bytes} if plan.states else found


def _macro(header: str, name: str) -> int | None:
    """The number that the network's header defines; None where it does not."""
    found = re.search(rf"(?m)^#define \w+_{name} (\d+)$", header)
    return int(found.group(1)) if found else None


def _kernel_files(
    target: Target, own: Iterable[bytes], compiled: list[Path]
) -> tuple[dict[str, Path], dict[str, Path]]:
    """Name in the folder -> file, of the kernels' sources and of all headers that anything includes."""
    from buildtool.firmware.includes import closure
    from buildtool.target.kernels import include_folder, kernel_includes

    homes = {family.folder: family.name for family in target.families}
    homes |= {include_folder(): "include", compiled[0].parent: compiled[0].parent.name}

    def placed(paths: Iterable[Path]) -> dict[str, Path]:
        named = {}
        for path in paths:
            home = next(folder for folder in (path.parent, *path.parents) if folder in homes)
            named[f"{KERNELS}/{homes[home]}/{path.relative_to(home).as_posix()}"] = path
        return dict(sorted(named.items()))

    folders = kernel_includes(target)
    return placed(compiled), placed(closure(own, compiled, folders))
