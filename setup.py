"""Which folders are packages, found rather than listed; all else is in pyproject.toml.

kernels/ is the one folder whose package has another name: nothing called `kernels` or `plugins` may
land in site-packages.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(".", include=["buildtool", "buildtool.*"]),
        *find_packages("plugins"),
        "buildtool_kernels",
    ]
)
