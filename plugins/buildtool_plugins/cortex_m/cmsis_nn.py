"""Uses CMSIS-NN instead of the project's own kernels, if the user has a checkout of it.

This project contains no source of the library. Kernel families of adapters precede the core's other kernels,
and the library's int8 sources are compiled in the checkout.

The library computes its scratch sizes in C functions, which differ from version to version. They are compiled
once for this machine, with the adapters' description of a layer (nn_cmsis_nn_ask.h in
kernels/cortex_m_cmsis_nn). The program is run once for each geometry.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from buildtool.base.errors import ToolError, UsageError
from buildtool.base.programs import program
from buildtool.target.kernels import kernels_root
from buildtool.target.types import Board, Library

NAME = "cmsis_nn"
FAMILIES = {
    **dict.fromkeys(("cortex_m0", "cortex_m3", "cortex_m_dsp"), "cortex_m_cmsis_nn"),
    "cortex_m_mve": "cortex_m_cmsis_nn_mve",
}
HEADERS = ("Include/arm_nnfunctions.h", "Include/arm_nn_types.h")
_INT8 = re.compile(r"_s8|/NNSupportFunctions/")
_NOT = re.compile(r"_(f16|f32|flt)\b|/(LSTM|SVDF)Functions/")
SOURCE = Path(__file__).resolve().with_name("ask_cmsis_nn.c")
VALUES = ("kh", "kw", "sh", "sw", "dh", "dw", "pt", "pl", "ih", "iw", "cin", "oh", "ow", "cout")
FLAGS = ("-std=gnu99", "-O1", "-w")
SECONDS = 60.0  # time limit for one run of the program
_SIZES = "*get_buffer_size*_s8.c"
_FOLDERS = ("ConvolutionFunctions", "PoolingFunctions")


def cmsis_nn(board: Board, path: str) -> Library:
    """Returns the library in the checkout at `path`.

    Raises UsageError if CMSIS-NN has no kernels for the core, or if `path` is not a checkout of it.
    """
    adapters = tuple(FAMILIES[family] for family in board.core.families if family in FAMILIES)
    if not adapters:
        raise UsageError(f"CMSIS-NN has no kernels for the core of '{board.name}'", hint="drop cmsis-nn")
    root = Path(path)
    missing = [name for name in HEADERS if not (root / name).is_file()]
    # All files that an int8 operator may need; the linker drops unused functions.
    files = sorted((root.resolve() / "Source").rglob("*.c"))
    names = ((path, f"/{path.relative_to(root.resolve()).as_posix()}") for path in files)
    sources = [path for path, name in names if _INT8.search(name) and not _NOT.search(name)]
    if missing or not sources:
        what = f"has no {missing[0]}" if missing else "has no sources in Source/"
        text = f"this is not a checkout of CMSIS-NN: it {what}"
        raise UsageError(text, path=path, hint="name the folder with Include/ and Source/ in it")
    includes = (root.resolve() / "Include", root.resolve() / "Include" / "Internal")
    folders = tuple(folder for folder in includes if folder.is_dir())
    flags = tuple(word for folder in folders for word in ("-isystem", str(folder)))
    functions = sizes(root.resolve(), folders, mve=FAMILIES["cortex_m_mve"] in adapters)
    reads = (*functions.sources, *functions.headers)
    return Library(NAME, adapters, functions.digest, flags, tuple(map(str, sources)), functions.ask, reads)


# ---- scratch ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """The functions of a library that compute scratch sizes.

    `mve`: whether they are for cores with Helium; otherwise they are for those with the DSP extension.
    `includes`: the folders of headers. The sizes depend on the files `sources` and `headers`.
    """

    root: Path
    mve: bool
    sources: tuple[Path, ...]
    headers: tuple[Path, ...]
    includes: tuple[Path, ...]
    digest: str

    def ask(self, question: str, geometry: Mapping[str, int]) -> int:
        """Returns the bytes of scratch for a geometry. `question` is "conv", "depthwise" or "avg_pool".
        Raises ToolError if the program fails.
        """
        return _run_size_function(self, question, tuple(geometry[name] for name in VALUES))


def sizes(root: Path, includes: tuple[Path, ...], mve: bool) -> Sizes:
    """Returns the functions for scratch sizes of the library at `root`. Raises UsageError if it has none.
    `mve` is that of `Sizes`.
    """
    sources = sorted(path for name in _FOLDERS for path in (root / "Source" / name).glob(_SIZES))
    headers = sorted((root / "Include").rglob("*.h"))
    if not sources:
        text = f"this CMSIS-NN has no functions for scratch sizes: no {_SIZES} in Source/{_FOLDERS[0]}"
        raise UsageError(text, path=str(root), hint="version 5.0.0 or later has them")
    digest = hashlib.sha256()
    for path in (*sources, *headers):
        name = path.relative_to(root).as_posix().encode()
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read CMSIS-NN: {error.strerror}", path=str(path)) from None
        digest.update(b"%d %s %d " % (len(name), name, len(data)) + data)
    return Sizes(root, mve, tuple(sources), tuple(headers), includes, digest.hexdigest())


@lru_cache(maxsize=4096)
def _run_size_function(functions: Sizes, question: str, values: tuple[int, ...]) -> int:
    from buildtool_plugins.tools.find import find_host_compiler

    folders = (kernels_root() / "cortex_m_cmsis_nn", kernels_root() / "include", *functions.includes)
    includes = (word for folder in folders for word in ("-I", str(folder)))
    flags = (*FLAGS, f"-DNN_CMSIS_NN_MVE={int(functions.mve)}", *includes)
    hint = "use version 5.0.0 or later of the library, without changes"
    cc, sources = find_host_compiler(), (SOURCE, *functions.sources)
    path = program(cc, "ask", sources, flags, "CMSIS-NN's code for scratch sizes", functions.root, hint)
    command = [str(path), question, *map(str, values)]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"cannot run CMSIS-NN's scratch size functions: {error}", path=command[0]) from None
    if process.returncode or not process.stdout.strip().isdecimal():
        shape = " ".join(f"{name}={value}" for name, value in zip(VALUES, values, strict=True))
        answer = process.stdout.strip() or f"nothing (exit status {process.returncode})"
        text = f"CMSIS-NN's scratch size for {question} {shape} is not a number: {answer}"
        raise ToolError(text, path=str(functions.root))
    return int(process.stdout)
