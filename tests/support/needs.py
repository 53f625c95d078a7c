"""Requirements of tests that a machine may lack: files of ../shared, programs, Python packages.

    path = needs_shared("models/mlperf_kws.tflite")   # the path; without the file the test is skipped
    clang = needs_tool("clang")                       # the newest clang, as the toolchains choose it
    nm = needs_tool("arm-none-eabi-nm")               # any program by its name

A skip names what is missing and the command that installs it. Under `./.ci/run` only the skips listed in
tests/allowed_skips.txt are allowed.
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
    "docs": ("sphinx", "myst_nb", "furo", "nbclient", "nbformat", "ipykernel", "pandas"),
    "gdb": ("gdb-multiarch",),
    "mcuboot": ("imgtool",),
    "nginx": ("nginx",),
    "platformio": ("pio",),
    "quantize": ("ai_edge_quantizer", "onnxruntime"),
    "redis": ("redis-server",),
    "split": ("keras", "tensorflow"),
    "sweep": ("distributed", "pyarrow"),
    "xtensa": ("xtensa-lx106-elf-gcc",),
}
# Program or package -> its name for `./dev --with`.
WITH = {name: option for option, names in _OPTIONS.items() for name in names}


def needs_shared(name: str) -> Path:
    """Returns the path of a file of ../shared."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"needs the file ../shared/{name} beside the checkout")
    return path


def needs_tool(name: str) -> str:
    """Returns the path of a program. "clang": the newest version."""
    if name == "clang":
        try:
            return find_clang().path
        except ToolError as error:
            pytest.skip(f"needs clang: {error}")
    # Programs of Python packages lie beside the interpreter, whose folder may be missing in PATH.
    # Servers lie in /usr/sbin, which is in the PATH of root alone.
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), "/usr/sbin"]
    folders = os.pathsep.join(places)
    path = shutil.which(name, path=folders)
    if path is None:
        pytest.skip(f"needs the program {name}{_say_how(name)}")
    return path


def needs_package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"needs the Python package {name}{_say_how(name)}")


def skip_without_tool(error: ToolError) -> None:
    """Skips the test if `error` says that a program was not found."""
    if "was not found" not in error.text:
        return
    name = next((name for name in WITH if name in error.text), "")
    pytest.skip(f"{error.text}{_say_how(name)}")


def _say_how(name: str) -> str:
    return f": ./dev --with {WITH[name]}" if name in WITH else ""
