"""What `profile` and `validate` run: a network planned and built here, or the image and plan of a build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from buildtool.emit.sources import Sources, emit
from buildtool.errors import UsageError
from buildtool.service.emulation.execute import built, linked
from buildtool.service.emulation.identity import read_file
from buildtool.service.firmware.firmware import Firmware
from buildtool.service.pipeline.given import given_plan
from buildtool.service.pipeline.options import PlanOptions
from buildtool.service.pipeline.pipeline import Planned, planned, refuse_unless_fits


def subject(request: Mapping[str, Any], options: PlanOptions) -> tuple[Planned, Sources]:
    """The model's plan, that of the request's file `plan` if there is one, and what is emitted for it."""
    model, board = str(request.get("model", "")), str(request.get("board", ""))
    elf, path = request.get("elf"), request.get("plan")
    if bool(elf) != bool(path):
        given, missing = ("elf", "plan") if elf else ("plan", "elf")
        raise UsageError(
            f"'{given}' needs '{missing}': an image is run by the plan it was built from",
            hint="the .plan is emitted with the network's sources",
        )
    if path:
        _refuse_planning(request)
        made = given_plan(model, board, options, read_file(str(path), "the plan"), str(path))
    else:
        made = planned(model, board, options)
    sources = emit(made.graph, made.plan, made.target, made.model.name)
    refuse_unless_fits(made, len(sources.image.data))
    return made, sources


def _refuse_planning(request: Mapping[str, Any]) -> None:
    """UsageError for planning options, which a plan that is given has settled."""
    idle = sorted(set(request.get("options") or {}) - {"cmsis_nn"})
    if idle:
        raise UsageError(f"'{idle[0]}' has no effect: the plan is given", hint="leave it out, or the plan")


@contextmanager
def firmware(
    request: Mapping[str, Any], made: Planned, sources: Sources, flags: Sequence[str] = ()
) -> Iterator[Firmware]:
    """The request's image `elf`, which is not touched, or one that is built here."""
    elf, toolchain = request.get("elf"), str(request.get("toolchain") or "")
    if not elf:
        with built(made, sources, toolchain, flags) as image:
            yield image
        return
    if flags:
        raise UsageError("the image is given, so it cannot be built with sanitizers", hint="leave out one")
    yield linked(made, sources, str(elf))
