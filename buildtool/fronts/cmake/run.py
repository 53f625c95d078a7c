"""The script that the CMake package calls.

    python -P run.py ask|check|called|compile|plan|confirm|COMMAND WORDS...

COMMAND is a command of buildtool. The script imports the buildtool that it belongs to, even if the
interpreter would find another installation first.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

if sys.argv[1:2] == ["ask"]:
    from buildtool.fronts.cmake import answering

    sys.exit(answering.main(sys.argv[2:]))
if sys.argv[1:2] == ["check"]:
    from buildtool.fronts.cmake import inputs

    sys.exit(inputs.check(sys.argv[2]))
if sys.argv[1:2] == ["called"]:
    from buildtool.fronts.cmake import called_kernels

    sys.exit(called_kernels.update(*sys.argv[2:]))
if sys.argv[1:2] == ["compile"]:
    from buildtool.fronts.cmake import called_kernels

    sys.exit(called_kernels.compile_sources(*sys.argv[2:]))
if sys.argv[1:2] in (["plan"], ["confirm"]):
    from buildtool.fronts.cmake import planning

    sys.exit(getattr(planning, sys.argv[1])(*sys.argv[2:]))

from buildtool.client import options

options.FRONT.set(options.CMAKE)
runpy.run_module("buildtool", run_name="__main__", alter_sys=True)
