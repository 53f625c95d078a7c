"""The planner daemon: a process of the user's that keeps what planners found, and plans for whoever asks.

    server.py       the event loop: connections, heartbeats, the end
    connection.py   clients' sockets
    scheduler.py    which request runs in which child process: equal ones once, for all that wait
    pool.py         child processes that plan
    worker.py       what runs in them
    memory.py       answers that are still true
    lifetime.py     lock, socket, record: how a daemon begins and ends; code that changed: the next daemon
    watcher.py      events of files, and which changed: their next answers are prepared

The daemon's own process imports no planner: it answers at once, whatever its children do.
"""
