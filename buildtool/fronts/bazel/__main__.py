"""`python3 -m buildtool.fronts.bazel` prints buildtool.bzl, a file to put beside the WORKSPACE file."""

from __future__ import annotations

import sys

from buildtool.fronts.bazel.repository import RULES

if __name__ == "__main__":
    sys.stdout.write((RULES / "buildtool.bzl").read_text(encoding="utf-8"))
