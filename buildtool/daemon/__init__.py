"""The planner daemon: one process per user, which plans for clients and remembers the answers.

    server.py       the event loop: connections, heartbeats, the end
    connection.py   clients' sockets
    scheduler.py    chooses the child process for each request; equal requests run once
    pool.py         the child processes
    worker.py       the program of a child process
    memory.py       answers that are still valid
    preparing.py    answers that are prepared before a client asks
    lifetime.py     begin and end of a daemon: lock, socket, record; the next daemon after an edit of the code
    watcher.py      finds changed files, so that the next answers about them are prepared

The daemon's own process imports no planner, so that it can always answer at once.
"""
