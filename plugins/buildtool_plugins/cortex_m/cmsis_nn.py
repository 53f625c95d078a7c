"""CMSIS-NN in place of the project's own kernels, where the user has a checkout of it.

Nothing of the library is part of this project: kernel families of adapters come before the core's other
kernels, and the library's int8 sources are compiled from where they are.
"""

from __future__ import annotations

import re
from pathlib import Path

from buildtool.base.errors import UsageError
from buildtool.target.types import Board, Library
from buildtool_plugins.cortex_m.ask_cmsis_nn import sizes

NAME = "cmsis_nn"
FAMILIES = {"cortex_m_dsp": "cortex_m_cmsis_nn", "cortex_m_mve": "cortex_m_cmsis_nn_mve"}
HEADERS = ("Include/arm_nnfunctions.h", "Include/arm_nn_types.h")
_INT8 = re.compile(r"_s8|/NNSupportFunctions/")
_NOT = re.compile(r"_(f16|f32|flt)\b|/(LSTM|SVDF)Functions/")


def cmsis_nn(board: Board, path: str) -> Library:
    """The checkout at `path` for the board's core; UsageError for other cores, or if there is none."""
    adapters = tuple(FAMILIES[family] for family in board.core.families if family in FAMILIES)
    if not adapters:
        raise UsageError(f"CMSIS-NN has no kernels for the core of '{board.name}'", hint="drop cmsis-nn")
    root = Path(path)
    missing = [name for name in HEADERS if not (root / name).is_file()]
    sources = _sources(root.resolve())
    if missing or not sources:
        what = f"has no {missing[0]}" if missing else "has no sources in Source/"
        raise UsageError(
            f"this is no checkout of CMSIS-NN: it {what}",
            path=path,
            hint="the folder that has Include/ and Source/ in it",
        )
    includes = (root.resolve() / "Include", root.resolve() / "Include" / "Internal")
    folders = tuple(folder for folder in includes if folder.is_dir())
    flags = tuple(word for folder in folders for word in ("-isystem", str(folder)))
    asked = sizes(root.resolve(), folders, mve=FAMILIES["cortex_m_mve"] in adapters)
    return Library(NAME, adapters, asked.digest, flags, tuple(map(str, sources)), asked.ask, asked.reads)


def _sources(root: Path) -> list[Path]:
    """The library's files that some int8 operator may need; what is not used is not linked."""
    found = sorted((root / "Source").rglob("*.c"))
    names = ((path, f"/{path.relative_to(root).as_posix()}") for path in found)
    return [path for path, name in names if _INT8.search(name) and not _NOT.search(name)]
