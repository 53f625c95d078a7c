"""Compilers that compile each kernel once for all builds of a test run.

    environment = os.environ | once_compiled(tmp_path_factory)     # for the process that builds

A build in a fresh folder compiles every kernel that its board can run, and a dozen tests build in fresh
folders. The programs made here wrap the compilers that buildtool would find. They cache the objects of C
files of the checkout that include nothing from elsewhere, by the words of the command. All other calls go to
the compiler. All workers of the test run share the objects.
"""

import functools
import tempfile
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import Compiler, find_clang, find_gcc
from paths import ROOT

from buildtool.base.errors import ToolError

# A shell script: it starts faster than Python.
_PROGRAM = Path(__file__).with_suffix(".sh")


def once_compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns the variables that name the installed compilers."""
    base = tmp_path_factory.getbasetemp()
    # each worker has its own folder in that of the run
    return _write_programs(base.parent if base.name.startswith("popen-") else base)


@functools.cache
def _write_programs(folder: Path) -> dict[str, str]:
    programs = {}
    for variable, compiler in _find_compilers().items():
        path = folder / "compilers" / compiler.kind
        cache = folder / "compiled"
        for missing in (path.parent, cache):
            missing.mkdir(exist_ok=True)
        text = _PROGRAM.read_text()
        for name, value in {"REAL": compiler.path, "CACHE": cache, "ROOT": ROOT}.items():
            text = text.replace(f"@{name}@", str(value))
        _write_program(path, text)
        programs[variable] = str(path)
    return programs


def _find_compilers() -> dict[str, Compiler]:
    finders = {
        "BUILDTOOL_CLANG": find_clang,
        "BUILDTOOL_GCC": functools.partial(find_gcc, "arm-none-eabi-gcc", ""),
    }
    compilers = {}
    for variable, find in finders.items():
        try:
            compilers[variable] = find()
        except ToolError:
            continue  # a build that needs it will fail and say so
    return compilers


def _write_program(path: Path, text: str) -> None:
    """Replaces a program in one step: another worker may be running it."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    part = Path(file.name)
    part.chmod(0o755)
    part.replace(path)
