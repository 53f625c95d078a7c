"""Where a compiler looks for its own headers, which Bazel has to be told."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence

_BEGIN, _END = "#include <...> search starts here:", "End of search list."


def builtin_folders(cc: str, flags: Sequence[str], but: Iterable[str]) -> list[str]:
    """The folders that `cc` with these flags looks into; those below the folders `but` are left out."""
    done = subprocess.run(
        [cc, *flags, "-E", "-v", "-xc", "/dev/null", "-o", "/dev/null"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    listed = done.stderr.partition(_BEGIN)[2].partition(_END)[0].splitlines()
    ours = tuple(f"{folder}/" for folder in but)
    return [line.strip() for line in listed if line.strip() and not line.strip().startswith(ours)]
