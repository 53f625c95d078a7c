"""C++ and Rust names as their authors wrote them, where a demangler is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable

_TOOLS = ("c++filt", "llvm-cxxfilt", "arm-none-eabi-c++filt")
_MANGLED = ("_Z", "__Z", "_R")
_SECONDS = 20


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Mangled name -> what it stands for; nothing of other names, nor where no demangler works."""
    wanted = sorted({name for name in names if name.startswith(_MANGLED) and name.isprintable()})
    tool = next((path for name in _TOOLS if (path := shutil.which(name))), None)
    if not wanted or tool is None:
        return {}
    try:
        done = subprocess.run(
            [tool],
            input="\n".join(wanted) + "\n",
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    found = done.stdout.splitlines()
    return dict(zip(wanted, found, strict=True)) if len(found) == len(wanted) else {}
