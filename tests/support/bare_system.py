"""Runs a command line in a Python that lacks what only Unix has: python bare_system.py WORD...

Windows has none of these modules and names. The standard library itself is imported before: it has looked.
"""

import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

assert platform and shutil and subprocess and tempfile
MODULES = "fcntl grp posix pty pwd resource syslog termios tty"
NAMES = {
    socket: "AF_UNIX SO_PEERCRED socketpair",
    signal: "SIGALRM SIGHUP SIGPIPE SIGUSR1 alarm pthread_kill pthread_sigmask setitimer",
    os: "O_DIRECTORY O_NOFOLLOW O_NONBLOCK SCHED_IDLE chown fork forkpty getegid geteuid getgid getpgid "
    "getuid killpg mkfifo nice posix_fadvise pread pwrite sched_getaffinity sched_param sched_setscheduler "
    "setpgid setsid sysconf",
}


def strip() -> None:
    """Makes imports of the modules fail, and removes the names."""
    sys.modules.update(dict.fromkeys(MODULES.split()))
    for module, names in NAMES.items():
        for name in names.split():
            delattr(module, name)


if __name__ == "__main__":
    strip()
    from buildtool.fronts.cli.main import main

    main()
