"""The compiler that a request asks for, for a debugger or not."""

from __future__ import annotations

from buildtool.service.depends import Origins
from buildtool.service.pipeline.targets import TargetChoice
from buildtool.target import registry
from buildtool.target.debugging import debuggable
from buildtool.target.types import Target, Toolchain


def toolchain(choice: TargetChoice, target: Target) -> Toolchain:
    """The compiler of a choice, as the plugin of its `target` sets it up; ToolError where it is missing."""
    tools = registry.toolchain(target, choice.toolchain)
    if not choice.debug:
        return tools
    return debuggable(tools, Origins.of(choice, target).folders(choice.cmsis_nn))
