"""Starts a daemon: `python -m buildtool.service.daemon NAME READY`, as the client does.

NAME is the endpoint's, READY the number of a pipe that is written to once clients can connect. The exit
status is 0 where another daemon is there already.
"""

from __future__ import annotations

import contextlib
import os
import sys

from buildtool.client.endpoint import Endpoint, locked
from buildtool.errors import BuildtoolError
from buildtool.folders import state_folder


def main() -> int:
    """Runs the daemon until it ends; its exit status."""
    from buildtool.service.daemon.lifetime import Life, shorten_log

    name, ready = sys.argv[1], int(sys.argv[2])
    os.set_inheritable(ready, False)
    try:
        at = Endpoint(name, state_folder()).prepared()
    except BuildtoolError as error:
        print(error, flush=True)
        return 1
    with locked(at.lock, wait=False) as mine:
        if mine is None:
            return 0
        shorten_log(at)
        life = Life(at, mine)
        with contextlib.suppress(OSError):
            os.write(ready, b"r")
        os.close(ready)
        return _serve(life)


def _serve(life: object) -> int:
    """Serves; what goes wrong is in the record, for the next client."""
    from buildtool.service.daemon.lifetime import Life
    from buildtool.service.daemon.server import Server, retire_others

    assert isinstance(life, Life)
    try:
        server = Server(life)
        retire_others(life.at)
        server.run()
    except BaseException as error:
        import traceback

        traceback.print_exc()
        life.leave(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
