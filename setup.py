"""Which folders are packages, found rather than listed; all else is in pyproject.toml.

The kernels, the SCons tools and the examples are packages of another name than their folder's: nothing called
`kernels`, `plugins`, `site_tools` or `examples` may land in site-packages. The planner's parts in C are plain
shared libraries that use nothing of Python: one wheel per system serves every version.
"""

import re
import sys
import tomllib
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

WINDOWS = sys.platform == "win32"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def readme() -> str:
    """Returns README.md with absolute links to the files of this version, for pages elsewhere."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project["urls"]["Source"].rstrip("/")
    version = re.search(r'__version__ = "(.*)"', Path("buildtool/__init__.py").read_text(encoding="utf-8"))[1]

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}[{LINK.sub(absolute, link[2])}]({source}/{kind}/v{version}/{link[3]})"

    return LINK.sub(absolute, Path("README.md").read_text(encoding="utf-8"))


def compiled(source: Path) -> Extension:
    """The library `_NAME` beside NAME.c, which `buildtool.base.compiled` loads."""
    name = ".".join([*source.parent.parts, f"_{source.stem}"])
    public = re.findall(rf"^\w[\w *]*\b({source.stem}_\w+)\(", source.read_text(encoding="utf-8"), re.M)
    return Extension(name, [source.as_posix()], export_symbols=sorted(set(public)))


class BuildLibraries(build_ext):
    """Builds shared libraries that export their own functions; their names have no version of Python."""

    def build_extension(self, ext: Extension) -> None:
        """Compiles as C99, for which MSVC has another word.

        Without -g0 the libraries would have the folder's path. The keys of caches have the libraries' digest,
        and would differ between machines.
        """
        is_msvc = self.compiler.compiler_type == "msvc"
        ext.extra_compile_args = ["/std:c11", "/O2"] if is_msvc else ["-std=c99", "-O3", "-g0"]
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


class BuildWithExamples(build_py):
    """Copies Python files and data; of the examples those that their list names."""

    def finalize_options(self) -> None:
        """Adds the examples' files to the data."""
        super().finalize_options()
        index = tomllib.loads(Path("examples/examples.toml").read_text(encoding="utf-8")).values()
        files = [f"{example['folder']}/{name}" for example in index for name in example["files"]]
        self.package_data = {**(self.package_data or {}), "buildtool_examples": ["examples.toml", *files]}


class WheelForAllPythons(bdist_wheel):
    """Makes a wheel for one system and every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Returns the tags of Python, its binary interface and the system."""
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"bdist_wheel": WheelForAllPythons, "build_ext": BuildLibraries, "build_py": BuildWithExamples},
    long_description=readme(),
    long_description_content_type="text/markdown",
    packages=[
        *find_packages(".", include=["buildtool", "buildtool.*"]),
        *find_packages("plugins"),
        "buildtool_examples",
        "buildtool_kernels",
        "buildtool_scons",
    ],
    ext_modules=[compiled(source) for source in sorted(Path("buildtool").rglob("*.c"))],
)
