"""The door to the service: a request goes to the daemon, or is answered here; the answer is the same.

    auto        the daemon, which is started where none runs; where that fails, here
    off         here
    require     the daemon, or an error

The default is $BUILDTOOL_DAEMON, else `auto`; `off` where $CI says that nobody will ask again.
"""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from buildtool.api.requests import needs
from buildtool.api.requests.parts import Needs
from buildtool.base.digests import is_hashed_always
from buildtool.base.errors import ToolError, UsageError, did_you_mean
from buildtool.base.folders import cache_levels, most_disk_bytes

if TYPE_CHECKING:
    from buildtool.client.daemon import Listener

MODE = "BUILDTOOL_DAEMON"
_HINT = "'buildtool daemon status' and 'buildtool daemon logs' tell more"


class Mode(enum.StrEnum):
    """Who answers."""

    AUTO = "auto"
    OFF = "off"
    REQUIRE = "require"


def mode(given: str | None = None) -> Mode:
    """The mode that was `given`, or the environment's; UsageError for an unknown word.
    Off where every file is to be read: a daemon remembers what it has read.
    """
    text = given or os.environ.get(MODE, "")
    if is_hashed_always():
        return Mode.OFF
    if not text:
        in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false", "no")
        return Mode.OFF if in_ci else Mode.AUTO
    try:
        return Mode(text.lower())
    except ValueError:
        where = "" if given else f" in ${MODE}"
        raise UsageError(
            f"unknown mode '{text}'{where}", option="daemon", hint=did_you_mean(text, list(Mode))
        ) from None


def ask(
    request: Mapping[str, Any],
    here: Callable[[Mapping[str, Any]], dict[str, Any]],
    *,
    mode: Mode,
    cache: str = "on",
    listen: Listener | None = None,
) -> dict[str, Any]:
    """The answer to a request with absolute paths; `here` answers it without a daemon. Its notes are printed.
    ToolError where a daemon is required and none answers; UsageError for unknown settings in the environment.
    """
    cache_levels()
    most_disk_bytes()
    answer = None
    if mode is not Mode.OFF and needs(request) is not Needs.PROGRAMS:
        from buildtool.client import daemon, endpoint  # who answers here needs no sockets

        try:
            answer = daemon.ask(request, cache, listen)
        except daemon.UnservedError:
            pass
        except endpoint.AbsentError as error:
            why = error.args[0]
            if mode is Mode.REQUIRE:
                raise ToolError(f"the planner daemon does not answer: {why}", hint=_HINT) from None
            if why != daemon.NO_DAEMONS:
                print(f"note: this is planned without the daemon: {why}", file=sys.stderr, flush=True)
    if answer is None:
        answer = here(request)
    for note in answer.get("notes", ()):
        print(f"note: {note}", file=sys.stderr, flush=True)
    return answer
