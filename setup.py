"""Which folders are packages, found rather than listed; all else is in pyproject.toml.

The kernels and the SCons tools are packages of another name than their folder's: nothing called
`kernels`, `plugins` or `site_tools` may land in site-packages. The planner's parts in C are plain shared
libraries, which no version of Python is compiled into: one wheel a system serves all of them.
"""

import re
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

WINDOWS = sys.platform == "win32"


def compiled(source: Path) -> Extension:
    """The library `_NAME` beside NAME.c, which `buildtool.base.compiled` loads."""
    name = ".".join([*source.parent.parts, f"_{source.stem}"])
    public = re.findall(rf"^\w[\w *]*\b({source.stem}_\w+)\(", source.read_text(encoding="utf-8"), re.M)
    return Extension(name, [source.as_posix()], export_symbols=sorted(set(public)))


class BuildLibraries(build_ext):
    """Builds shared libraries that export their own functions, and have no version of Python in their names."""

    def build_extension(self, ext: Extension) -> None:
        """Compiles as C99, for which MSVC has another word."""
        is_msvc = self.compiler.compiler_type == "msvc"
        ext.extra_compile_args = ["/std:c11", "/O2"] if is_msvc else ["-std=c99", "-O3"]
        super().build_extension(ext)

    def get_ext_filename(self, fullname: str) -> str:
        """Returns the file's path; macOS calls loadable libraries .so as Linux does."""
        return fullname.replace(".", "/") + (".dll" if WINDOWS else ".so")

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Returns the names for linkers that export nothing by themselves; Python's own is not among them."""
        return ext.export_symbols if WINDOWS else []

    def get_libraries(self, ext: Extension) -> list[str]:
        """Returns no library: Python's would tie the file to one version."""
        return []


class WheelForAllPythons(bdist_wheel):
    """Makes a wheel for one system and every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Returns the tags of Python, its binary interface and the system."""
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"bdist_wheel": WheelForAllPythons, "build_ext": BuildLibraries},
    packages=[
        *find_packages(".", include=["buildtool", "buildtool.*"]),
        *find_packages("plugins"),
        "buildtool_kernels",
        "buildtool_scons",
    ],
    ext_modules=[compiled(source) for source in sorted(Path("buildtool").rglob("*.c"))],
)
