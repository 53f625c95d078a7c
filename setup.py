"""Which folders are packages, found rather than listed; all else is in pyproject.toml.

The kernels and the SCons tools are packages of another name than their folder's: nothing called
`kernels`, `plugins` or `site_tools` may land in site-packages.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(".", include=["buildtool", "buildtool.*"]),
        *find_packages("plugins"),
        "buildtool_kernels",
        "buildtool_scons",
    ]
)
