"""CMSIS-NN in place of the project's own kernels, where the user has it: `cmsis_nn=PATH` of its checkout.

Nothing of the library is part of this project: adapters (kernels/cortex_m_cmsis_nn) come before the core's
other kernels, and the library's int8 sources are compiled from where they are.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from buildtool.errors import UsageError
from buildtool.target.types import Board, Toolchain

FAMILIES = {"cortex_m_dsp": "cortex_m_cmsis_nn", "cortex_m_mve": "cortex_m_cmsis_nn_mve"}
HEADERS = ("Include/arm_nnfunctions.h", "Include/arm_nn_types.h")
_INT8 = re.compile(r"_s8|/NNSupportFunctions/")
_NOT = re.compile(r"_(f16|f32|flt)\b|/(LSTM|SVDF)Functions/")


def with_adapters(board: Board, path: str) -> Board:
    """`board`, its core with the adapters first; UsageError for other cores, or if no library is there."""
    families = board.core.families
    adapters = [FAMILIES[family] for family in families if family in FAMILIES]
    if not adapters:
        raise UsageError(f"CMSIS-NN is for Cortex-M boards, not for '{board.name}'", hint="drop cmsis-nn")
    root = Path(path)
    missing = [name for name in HEADERS if not (root / name).is_file()]
    if missing or not _sources(root):
        what = f"has no {missing[0]}" if missing else "has no sources in Source/"
        raise UsageError(
            f"this is no checkout of CMSIS-NN: it {what}",
            path=path,
            hint="the folder that has Include/ and Source/ in it",
        )
    return replace(board, core=replace(board.core, families=(*adapters, *families)))


def with_library(tools: Toolchain, path: str) -> Toolchain:
    """`tools`, which find the library's headers and compile its int8 sources with the start-up code."""
    root = Path(path).resolve()
    folders = (root / "Include", root / "Include" / "Internal")
    flags = [word for folder in folders if folder.is_dir() for word in ("-isystem", str(folder))]
    sources = tuple(str(source) for source in _sources(root))
    return replace(tools, cflags=(*tools.cflags, *flags), objects=(*tools.objects, *sources))


def _sources(root: Path) -> list[Path]:
    """The library's files that some int8 operator may need; what is not used is not linked."""
    found = sorted((root / "Source").rglob("*.c"))
    names = ((path, f"/{path.relative_to(root).as_posix()}") for path in found)
    return [path for path, name in names if _INT8.search(name) and not _NOT.search(name)]
