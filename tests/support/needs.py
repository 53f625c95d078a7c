"""What a test needs and this machine may lack: files of ../shared, programs, Python packages.

    path = needs_shared("models/mlperf_kws.tflite")   # a path, or the test is skipped and says why
    clang = needs_tool("clang")                       # the newest clang, as the toolchains choose it
    nm = needs_tool("arm-none-eabi-nm")               # any program by its name

A skip names what is missing and the line to run. Under `./.ci/run` a skip fails, but for those that
tests/allowed_skips.txt excuses.
"""

import importlib
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from buildtool_plugins.tools.find import find_clang
from paths import SHARED

from buildtool.base.errors import ToolError

_OPTIONS = {
    "arm-gcc": ("arm-none-eabi-gcc", "arm-none-eabi-nm", "arm-none-eabi-objcopy"),
    "bazel": ("bazel",),
    "browser": ("chromedriver", "chromium", "selenium", "selenium.webdriver"),
    "gdb": ("gdb-multiarch",),
    "mcuboot": ("imgtool",),
    "platformio": ("pio",),
    "split": ("keras", "tensorflow"),
    "xtensa": ("xtensa-lx106-elf-gcc",),
}
# Program or package -> the name that `./dev --with` knows it by.
WITH = {name: option for option, names in _OPTIONS.items() for name in names}


def needs_shared(name: str) -> Path:
    """A file of ../shared by its path in there."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"needs the file ../shared/{name} beside the checkout")
    return path


def needs_tool(name: str) -> str:
    """The path of a program; "clang" is the newest one, whatever its number."""
    if name == "clang":
        try:
            return find_clang().path
        except ToolError as error:
            pytest.skip(f"needs clang: {error}")
    # Programs of Python packages lie beside the interpreter, also where that folder is not in PATH.
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=folders)
    if found is None:
        pytest.skip(f"needs the program {name}{_how(name)}")
    return found


def needs_package(name: str) -> ModuleType:
    """An importable Python package by its module's name."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"needs the Python package {name}{_how(name)}")


def skip_without_tool(error: ToolError) -> None:
    """Skips the test if `error` says that a program was not found; else does nothing."""
    if "was not found" not in error.text:
        return
    name = next((name for name in WITH if name in error.text), "")
    pytest.skip(f"{error.text}{_how(name)}")


def _how(name: str) -> str:
    return f": ./dev --with {WITH[name]}" if name in WITH else ""
