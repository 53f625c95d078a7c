"""Answers requests that arrive on standard input, until it ends. The client starts this as its child."""

from __future__ import annotations

import os
import sys
from typing import Any

from buildtool.api import error_for_client, handle_cached, open_session
from buildtool.base import wire
from buildtool.base.errors import ToolError, to_data


def main() -> int:
    """Reads requests as frames from standard input, and writes answers as frames on standard output.

    Returns 0 at the end of the input, and 1 if a frame is broken or the client has gone.
    """
    # What a library prints must not get between the frames: it goes to standard error.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    session = open_session()  # for the whole process: one client works on one project
    try:
        while (message := wire.receive(sys.stdin.buffer)) is not None:
            reply: dict[str, Any]
            try:
                request = message.get("request")
                if not isinstance(request, dict):
                    raise ToolError("the message has no request")
                reply = {"answer": handle_cached(request, session, str(message.get("cache", "on")))}
            except Exception as error:
                reply = {"error": to_data(error_for_client(error))}
            wire.send(replies, reply)
            if session.keeper is not None:
                session.keeper.share()
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    except (BrokenPipeError, KeyboardInterrupt):
        return 1  # the client is gone
    return 0


if __name__ == "__main__":
    sys.exit(main())
