"""Serves requests on standard input until it ends: what the client starts as its child process."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from buildtool import wire
from buildtool.errors import BuildtoolError, ToolError
from buildtool.session import Session


def _respond(message: dict[str, Any], session: Session) -> dict[str, Any]:
    from buildtool.service import handle

    try:
        request = message.get("request")
        if not isinstance(request, dict):
            raise ToolError("a message holds no request")
        return {"protocol": wire.PROTOCOL, "answer": handle(request, session)}
    except BuildtoolError as error:
        return wire.error_message(error)
    except Exception as error:
        # Our own fault: the trace goes to whoever watches, the client gets an error and goes on.
        traceback.print_exc()
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119 (a frame's name, no file)
        text = f"internal error: {type(error).__name__}: {error} ({where})"
        return wire.error_message(ToolError(text, hint="this is an error in buildtool: please report it"))


def main() -> int:
    """Answers frames from standard input on standard output; 0 at its end, 1 for a broken frame."""
    # Whatever a library prints must not get between the frames.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    session = Session()  # of the process: one client asks about one project
    try:
        while (message := wire.receive(sys.stdin.buffer)) is not None:
            wire.send(replies, _respond(message, session))
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    except (BrokenPipeError, KeyboardInterrupt):
        return 1  # the client is gone
    return 0


if __name__ == "__main__":
    sys.exit(main())
