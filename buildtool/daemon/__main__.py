"""Starts a daemon: `python -m buildtool.daemon NAME READY`. The client runs this.

NAME is the endpoint's name. READY is the descriptor of a pipe, which gets a byte once clients can connect.
The exit status is 0 if another daemon runs already.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from buildtool.base.code_digest import code_digest
from buildtool.base.errors import BuildtoolError
from buildtool.base.folders import state_folder
from buildtool.base.locks import hold_lock
from buildtool.client.endpoint import Endpoint, endpoint
from buildtool.daemon.lifetime import Life, retire_others, shorten_log


def main() -> int:
    """Runs the daemon until it ends; returns the exit status."""
    name, ready = sys.argv[1], int(sys.argv[2])
    os.set_inheritable(ready, False)
    try:
        at = Endpoint(name, state_folder()).prepared()
    except BuildtoolError as error:
        print(error, flush=True)
        return 1
    with hold_lock(at.lock, wait=False) as mine:
        if mine is None:
            return 0
        code = code_digest()
        if endpoint().name != name:
            print("buildtool daemon: buildtool's code has changed since it was started", flush=True)
            return 1
        shorten_log(at)
        life = Life(at, mine, code)
        with contextlib.suppress(OSError):
            os.write(ready, b"r")
        os.close(ready)
        try:
            from buildtool.daemon.server import Server

            server = Server(life)
            threading.Thread(target=retire_others, args=(life.at, life.code), daemon=True).start()
            server.run()
        except BaseException as error:  # the next client finds it in the record
            import traceback

            traceback.print_exc()
            life.leave(f"{type(error).__name__}: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
