"""Which folders are packages, found rather than listed; all else is in pyproject.toml.

The kernels and the SCons tools are packages of another name than their folder's: nothing called
`kernels`, `plugins` or `site_tools` may land in site-packages. The one part in C is a plain shared
library; where it cannot be compiled, its twin in Python does the same more slowly.
"""

from setuptools import Extension, find_packages, setup

setup(
    packages=[
        *find_packages(".", include=["buildtool", "buildtool.*"]),
        *find_packages("plugins"),
        "buildtool_kernels",
        "buildtool_scons",
    ],
    ext_modules=[
        Extension(
            "buildtool.plan.place._search",
            ["buildtool/plan/place/search.c"],
            extra_compile_args=["-std=c99", "-O3"],
            optional=True,
        )
    ],
)
