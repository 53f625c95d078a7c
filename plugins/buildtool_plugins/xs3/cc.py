"""A compiler driver for the XS3 runner. Its command line is like that of clang.

    buildtool-xs3-cc --clang=PATH FLAG... -c FILE -o OBJECT
    buildtool-xs3-cc --clang=PATH FLAG... [--ram=NAME,BASE,BYTES] [--far=...] [--stack=BYTES] [-Map=FILE]
                     -o IMAGE OBJECT... ARCHIVE...

C is compiled by clang's XCore back end, `.S` files by its preprocessor; objects hold the assembly text. A
link assembles all of them, and keeps the sections that `_start` needs. --ram is the memory for code, data and
stack, --far that for the weights.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import ToolError

if TYPE_CHECKING:
    from buildtool_plugins.xs3.linker import Memory

NAME = "buildtool-xs3-cc"
ENTRY = "_start"
_INCBIN = re.compile(r'(?m)^\s*\.incbin\s+"([^"]+)"\s*$')
_OF_LINKS = ("--ram=", "--far=", "--stack=", "-Map=")
_CHUNK = 3 << 16  # bytes in a line of base64


def program() -> str:
    """Returns the path of the driver as an installed program. Raises ToolError if it is not installed."""
    beside = Path(sys.executable).with_name(NAME)
    found = str(beside) if beside.is_file() else shutil.which(NAME)
    if found is None:
        raise ToolError(f"the program {NAME} is not installed", hint="install buildtool-mcu again")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles or links, as the arguments say (None: those of the command line). Returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    clang = next((word.partition("=")[2] for word in words if word.startswith("--clang=")), "clang")
    rest = [word for word in words if not word.startswith(("--clang=", *_OF_LINKS))]
    if "-c" not in rest and "-o" not in rest:
        return subprocess.run([clang, *rest], check=False).returncode  # --version, -v
    output = Path(rest[rest.index("-o") + 1])
    try:
        if "-c" in rest:
            return _compile(clang, rest, output)
        _link([Path(word) for word in rest if word.endswith((".o", ".a"))], output, words)
    except (ToolError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _compile(clang: str, words: list[str], output: Path) -> int:
    from buildtool_plugins.xs3.elf_files import write_object

    at = words.index("-o")
    flags = [*words[:at], *words[at + 2 :]]
    source = next(Path(word) for word in flags if word.endswith((".c", ".S")))
    is_c = source.suffix == ".c"
    how = ["-S"] if is_c else ["-E", "-P"]
    made = subprocess.run(
        [clang, *(flag for flag in flags if flag != "-c"), *how, "-o", "-"],
        stdout=subprocess.PIPE,
        check=False,
    )
    if made.returncode:
        return made.returncode
    text = made.stdout.decode("latin-1")
    if not is_c:
        folders = [source.parent, *(Path(flag[2:]) for flag in flags if flag.startswith("-I"))]
        text = _INCBIN.sub(lambda match: _contents(match[1], folders), text)
    output.write_bytes(write_object(text))
    return 0


def _contents(name: str, folders: Sequence[Path]) -> str:
    """Returns assembler directives with the bytes of the file `name`. Raises ToolError if it is in none of
    the folders.
    """
    for folder in folders:
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            lines = (base64.b64encode(data[k : k + _CHUNK]).decode() for k in range(0, len(data), _CHUNK))
            return "\n".join(f'.base64 "{line}"' for line in lines)
    raise ToolError(f"the file '{name}' of .incbin was not found")


def _link(objects: Sequence[Path], output: Path, words: Sequence[str]) -> None:
    from buildtool_plugins.xs3.assembler import assemble
    from buildtool_plugins.xs3.elf_files import read_object, write_image, write_map
    from buildtool_plugins.xs3.linker import FAR, RAM, STACK_BYTES, link
    from buildtool_plugins.xs3.vendor_elf import members

    texts = []
    for path in objects:
        content = path.read_bytes()
        if path.suffix == ".a":
            files = [(f"{path}({name})", data) for name, data in members(content)]
        else:
            files = [(str(path), content)]
        texts += [(name, read_object(data, str(path))) for name, data in files]
    given = {flag: word[len(flag) :] for word in words for flag in _OF_LINKS if word.startswith(flag)}
    ram, far = RAM, FAR
    if "--ram=" in given:
        ram, far = (_memory_of(given[flag]) for flag in ("--ram=", "--far="))
    stack = int(given.get("--stack=", STACK_BYTES))
    image = link([assemble(text, name) for name, text in texts], [ENTRY], ram, far, stack)
    if "-Map=" in given:
        Path(given["-Map="]).write_text(write_map(image), encoding="latin-1")
    output.write_bytes(write_image(image, ENTRY))


def _memory_of(word: str) -> Memory:
    from buildtool_plugins.xs3.linker import Memory

    name, base, size = word.split(",")
    return Memory(int(base, 0), int(size, 0), name)
