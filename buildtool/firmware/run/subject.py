"""What `profile` and `validate` run: a network planned and built here, or the image and plan of a build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, ToolError, suggest
from buildtool.emit.sources import Sources, emit
from buildtool.firmware.needs import refuse_unless_fits
from buildtool.firmware.planned import Planned, given_plan, planned_or_given
from buildtool.firmware.run.execute import built, linked
from buildtool.target.choice import wire_of

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Debug, Flash, Profile, Validate
    from buildtool.base.session import Session
    from buildtool.firmware.firmware import Firmware


def subject(request: Validate | Profile | Debug | Flash, session: Session) -> tuple[Planned, Sources]:
    """The model's plan, that of the request's image if there is one, and what is emitted for it."""
    if request.made is not None:
        made = given_plan(request.model, request.target, request.made.plan, session)
    else:
        made = planned_or_given(request.model, request.target, request.options, request.lock, session)
    sources = emit(made.graph, made.plan, made.target, made.model.name, session)
    refuse_unless_fits(made, len(sources.image.data))
    return made, sources


@contextmanager
def firmware(
    request: Validate | Profile, made: Planned, sources: Sources, flags: Sequence[str] = ()
) -> Iterator[Firmware]:
    """The request's image, which is not touched, or one that is built here."""
    if request.made is not None:
        _refuse_stand_in(made, request.made.elf.path)
        with linked(made, sources, request.made.elf) as image:
            yield image
        return
    with built(made, sources, flags, emulated=True) as image:
        yield image


def _refuse_stand_in(made: Planned, path: str) -> None:
    """ToolError for a board's image that is to run where another machine stands in for the board."""
    board = made.target.board
    if board.is_stand_in and not wire_of(made.choice, board):
        raise ToolError(
            f"the emulator of board '{board.name}' has other addresses, and cannot run the board's image",
            path=path,
            hint=[suggest("on the desk", on="board"), Hint("or name no image: one is made here")],
        )
