"""Which folders are packages, found rather than listed; all else is in pyproject.toml.

The kernels and the SCons tools are packages of another name than their folder's: nothing called
`kernels`, `plugins` or `site_tools` may land in site-packages. The planner's parts in C are plain shared
libraries.
"""

from pathlib import Path

from setuptools import Extension, find_packages, setup


def compiled(source: Path) -> Extension:
    """The library `_NAME` beside NAME.c, which `buildtool.base.compiled` loads."""
    name = ".".join([*source.parent.parts, f"_{source.stem}"])
    return Extension(name, [source.as_posix()], extra_compile_args=["-std=c99", "-O3"])


setup(
    packages=[
        *find_packages(".", include=["buildtool", "buildtool.*"]),
        *find_packages("plugins"),
        "buildtool_kernels",
        "buildtool_scons",
    ],
    ext_modules=[compiled(source) for source in sorted(Path("buildtool").rglob("*.c"))],
)
