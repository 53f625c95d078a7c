"""Compilers for the builds of a test run, by which each kernel is compiled once for all of them.

    environment = os.environ | once_compiled(tmp_path_factory)     # for the process that builds

A build in a fresh folder compiles every kernel that its board can run, and a dozen tests build in fresh
folders. The programs made here stand in for the compilers that buildtool would find: they hand every call on
to them, but for a compilation of a C file of the checkout that includes nothing from elsewhere. The object of
such a one is kept by the words of its command: the checkout does not change while its tests run. The folder
of objects belongs to the test run, and so to all its workers.
"""

import functools
import tempfile
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import Compiler, find_clang, find_gcc
from paths import ROOT

from buildtool.base.errors import ToolError

# Written for the shell, which starts and ends in the fraction of a compilation.
_PROGRAM = """\
#!/usr/bin/env bash
real={real} cache={cache} root={root}
given=("$@") compiling= output= source= known=1 kept={cache}
while (($#)); do
    case $1 in
        -c) compiling=1 ;;
        -o) output=$2; shift ;;
        -I* | -isystem)
            folder=${{1#-I}}
            if [[ $1 = -isystem ]]; then folder=$2; shift; fi
            case $folder in "$root"/kernels/* | "$root"/plugins/*) ;; *) known= ;; esac
            kept+=/I${{folder//\\//_}} ;;
        -*) kept+=/${{1//\\//_}} ;;
        "$root"/kernels/*.c | "$root"/plugins/*.c)
            if [[ -n $source ]]; then known=; fi
            source=$1 ;;
        *) known= ;;
    esac
    shift
done
if [[ -z $compiling || -z $known || -z $source || -z $output ]]; then
    exec "$real" "${{given[@]}}"
fi
object=$kept/${{source//\\//_}}.o
if [[ -f $object ]]; then
    exec cp "$object" "$output"
fi
"$real" "${{given[@]}}" || exit
mkdir -p "$kept" && cp "$output" "$object.$$" && mv "$object.$$" "$object"
"""


def once_compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables that name the compilers to use; none for a compiler that is not installed."""
    found = tmp_path_factory.getbasetemp()
    # each worker has its own folder in that of the run
    return _programs(found.parent if found.name.startswith("popen-") else found)


@functools.cache
def _programs(folder: Path) -> dict[str, str]:
    made = {}
    for variable, compiler in _compilers().items():
        path = folder / "compilers" / compiler.kind
        cache = folder / "compiled"
        for missing in (path.parent, cache):
            missing.mkdir(exist_ok=True)
        text = _PROGRAM.format(real=compiler.path, cache=cache, root=ROOT)
        _write_program(path, text)
        made[variable] = str(path)
    return made


def _compilers() -> dict[str, Compiler]:
    wanted = {
        "BUILDTOOL_CLANG": find_clang,
        "BUILDTOOL_GCC": functools.partial(find_gcc, "arm-none-eabi-gcc", ""),
    }
    found = {}
    for variable, find in wanted.items():
        try:
            found[variable] = find()
        except ToolError:
            continue  # whoever needs it is told so by the build
    return found


def _write_program(path: Path, text: str) -> None:
    """Whole or not at all: another worker may be running it."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    part = Path(file.name)
    part.chmod(0o755)
    part.replace(path)
