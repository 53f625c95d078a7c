"""`python3 -m buildtool.fronts.platformio FOLDER` writes the library for PlatformIO into a folder."""

from __future__ import annotations

import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent / "library"


def main(words: list[str]) -> int:
    """Writes the library to the folder `words[0]`. Returns the exit status."""
    if len(words) != 1 or words[0].startswith("-"):
        print("usage: python3 -m buildtool.fronts.platformio FOLDER", file=sys.stderr)
        return 2
    try:
        folder = Path(words[0])
        folder.mkdir(parents=True, exist_ok=True)
        for source in sorted(LIBRARY.iterdir()):
            (folder / source.name).write_bytes(source.read_bytes())
    except OSError as error:
        print(f"{words[0]}: error: cannot write: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
