"""Runs a linked program: python -m buildtool_plugins.xs3.run IMAGE. Its files are in the current folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.container import read_image
from buildtool_plugins.xs3.machine import Machine

FAULT = 70  # the exit status of a program that stops elsewhere than at its end


def main(words: Sequence[str]) -> int:
    """Returns the program's exit status."""
    (path,) = words
    try:
        image, entry = read_image(Path(path).read_bytes(), path)
        return Machine(image).run(entry) & 0xFF
    except ToolError as error:
        print(error, file=sys.stderr)
        return FAULT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
