"""What Bazel has to know of a compiler: where its headers are, and how it is kept from following links."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence

_BEGIN, _END = "#include <...> search starts here:", "End of search list."


def builtin_folders(cc: str, flags: Sequence[str], but: Iterable[str]) -> list[str]:
    """The folders that `cc` with these flags looks into; those below the folders `but` are left out."""
    done = _run([cc, *flags, "-E", "-v", "-xc", "/dev/null", "-o", "/dev/null"])
    listed = done.stderr.partition(_BEGIN)[2].partition(_END)[0].splitlines()
    ours = tuple(f"{folder}/" for folder in but)
    found = [line.strip() for line in listed if line.strip() and not line.strip().startswith(ours)]
    # Bazel wants no "..", and compilers name a file also behind its links.
    return list(
        dict.fromkeys(way(folder) for folder in found for way in (os.path.normpath, os.path.realpath))
    )


def names_as_given(cc: str) -> list[str]:
    """The flag by which `cc` names headers as it was told to: Bazel knows links, not what is behind them."""
    flag = "-fno-canonical-system-headers"
    done = _run([cc, flag, "-Werror", "-fsyntax-only", "-xc", "/dev/null"])
    return [] if done.returncode else [flag]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
