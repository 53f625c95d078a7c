"""Decides who answers a request: the daemon, or this process. The answer is the same. The modes are:

    auto        the daemon answers, and is started if none runs; if that fails, this process answers
    off         this process answers
    require     the daemon answers, or the request fails

The default is $BUILDTOOL_DAEMON, else `auto`, but `off` where $CI is set: nobody will ask again there.
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
from buildtool.base.folders import REMOTE_URL, cache_levels, most_disk_bytes

if TYPE_CHECKING:
    from buildtool.client.daemon import Listener

MODE = "BUILDTOOL_DAEMON"
_HINT = "see 'buildtool daemon status' and 'buildtool daemon logs'"
_NO_HINT = f"leave it out, or set {MODE}=off: the command then plans in its own process"


class Mode(enum.StrEnum):
    """Whether a daemon answers requests; the module's docstring describes each mode."""

    AUTO = "auto"
    OFF = "off"
    REQUIRE = "require"


def mode(given: str | None = None) -> Mode:
    """Returns the mode `given`, or the one of the environment if `given` is None or "".

    The mode is OFF if every file must be read again, because a daemon remembers what it has read. Raises
    UsageError for an unknown word.
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
    """Returns the answer to a request with absolute paths, and prints the answer's notes.

    `here` answers the request without a daemon. `listen` gets progress from a daemon. Raises ToolError if a
    daemon is required and none answers. Raises UsageError for invalid settings in the environment.
    """
    cache_levels()
    most_disk_bytes()
    if os.environ.get(REMOTE_URL):
        from buildtool.base.store.remote.settings import Settings

        Settings.of(os.environ)
    answer = None
    if mode is not Mode.OFF and needs(request) is not Needs.PROGRAMS:
        from buildtool.client import daemon, endpoint  # not needed for answers without a daemon

        try:
            answer = daemon.ask(request, cache, listen)
        except daemon.UnservedError:
            pass
        except endpoint.AbsentError as error:
            why = error.args[0]
            if mode is Mode.REQUIRE:
                hint = _NO_HINT if why == daemon.NO_DAEMONS else _HINT
                raise ToolError(f"the planner daemon does not answer: {why}", hint=hint) from None
            if why != daemon.NO_DAEMONS:
                print(f"note: continuing without the daemon: {why}", file=sys.stderr, flush=True)
    if answer is None:
        answer = here(request)
    for note in answer.get("notes", ()):
        print(f"note: {note}", file=sys.stderr, flush=True)
    return answer
