"""The runtime's C files as a library of this machine: nn_crc32, nn_image_check..., nn_slots_...

    library = runtime("gcc")
    library.nn_crc32(0, data, len(data), None)

Compiled with the warnings of all C of the project as errors; undefined behaviour traps.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from ckernels import WARNINGS
from needs import needs_tool
from paths import KERNELS

SOURCES = ("nn_image.c", "nn_crc32.c", "nn_slots.c")
_SANITIZE = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-fno-sanitize-recover=all")


@functools.cache
def runtime(tool: str) -> ctypes.CDLL:
    """By gcc or clang."""
    folder = Path(tempfile.mkdtemp(prefix="runtime-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "runtime.so"
    sources = [KERNELS / "runtime" / name for name in SOURCES]
    flags = (*WARNINGS, "-O2", *_SANITIZE, "-shared", "-fPIC", f"-I{KERNELS / 'include'}")
    subprocess.run([needs_tool(tool), *flags, *sources, "-o", path], check=True)
    library = ctypes.CDLL(str(path))
    library.nn_crc32.restype = ctypes.c_uint32
    library.nn_crc32.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    return library
