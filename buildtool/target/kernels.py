"""Where the kernels' public interface is, and the families that come with buildtool."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from buildtool.base.errors import TargetError

HOME = Path(__file__).resolve().parents[2]  # of the checkout, or site-packages


@cache
def kernels_root() -> Path:
    """The folder of include/ (nn.h and what kernels share), runtime/ and one folder a family."""
    for name in ("kernels", "buildtool_kernels"):
        if (HOME / name / "include" / "nn.h").is_file():
            return HOME / name
    spec = importlib.util.find_spec("buildtool_kernels")
    if spec is None or not spec.submodule_search_locations:
        raise TargetError(
            "the kernels (package buildtool_kernels) are not installed", hint="reinstall buildtool"
        )
    return Path(next(iter(spec.submodule_search_locations)))
