"""The `buildtool` command: runs a command line, prints its answer or its error, sets the exit status."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from buildtool import DISTRIBUTION, __version__
from buildtool.base.code_digest import home, namesakes
from buildtool.base.errors import BuildtoolError, InternalError, UsageError
from buildtool.base.folders import REMOTE_MODE, REMOTE_URL
from buildtool.fronts.asking import as_json
from buildtool.fronts.cli import arguments, console
from buildtool.fronts.cli.commands import load
from buildtool.fronts.texts import table

if TYPE_CHECKING:
    import argparse

    from buildtool.base.session import Session

USAGE = 2  # the exit status for a usage error
INTERNAL = 70  # the exit status for a bug in buildtool (EX_SOFTWARE of sysexits.h)


def run(argv: Sequence[str], session: Session | None = None) -> int:
    """Runs one command line. Returns the exit status: 0, 1 (error), 2 (usage error) or 70 (bug in buildtool).

    An error goes to standard error. With --json it goes to standard output in place of the answer.
    `session` is shared by several command lines of one process.
    """
    try:
        if not argv:  # as git does: prints the help and fails, since nothing was done
            arguments.parser().print_help()
            return USAGE
        if list(argv) == [arguments.CMAKE_DIR]:
            from buildtool.fronts.cmake.quoting import cmake_folder

            console.write(str(cmake_folder()))
            return 0
        if list(argv) == [arguments.VERSION]:
            console.write(f"buildtool {__version__}, from {DISTRIBUTION} in {home()}")
            return 0
        try:
            args = arguments.parse(argv)  # help and version are printed here
        except BrokenPipeError:
            raise
        except OSError as error:
            raise console.write_failure(error) from None
        args.session = session
        command = load(args.command)
        if not command.multiplies:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        with contextlib.ExitStack() as stack:
            stack.callback(table.width.reset, table.width.set(console.width()))
            stack.enter_context(_shared_cache(args))
            if getattr(args, "hash_inputs", False):
                from buildtool.base.digests import hashing_always

                stack.enter_context(hashing_always(True))
            answer, text, status = command.run(args)
            if answer and args.json:
                console.write(as_json(answer))
            elif answer:
                console.write_text(text)
        console.write_sarif(argv, [], status, answer)
        return status
    except BrokenPipeError:
        raise
    except Exception as error:
        reported = console.report(error, argv)
        status = USAGE if isinstance(reported, UsageError) else 1
        if isinstance(reported, InternalError):
            status = INTERNAL
        with contextlib.suppress(BuildtoolError):  # the first error is printed already
            console.write_sarif(argv, [reported], status)
        return status


@contextlib.contextmanager
def _shared_cache(args: argparse.Namespace) -> Iterator[None]:
    """A context in which the environment has the shared cache of the arguments, also for child processes."""
    pairs = ((REMOTE_URL, "cache_url"), (REMOTE_MODE, "cache_mode"))
    given = {name: str(vars(args)[key]) for name, key in pairs if vars(args).get(key) is not None}
    if given and getattr(args, "no_cache", False):
        raise UsageError("--no-cache also leaves out the shared cache", hint="leave --no-cache out")
    if REMOTE_MODE in given and not given.get(REMOTE_URL, os.environ.get(REMOTE_URL)):
        raise UsageError("--cache-mode has no effect without a shared cache", hint="add --cache-url URL")
    old = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in old.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def main() -> NoReturn:
    """Runs the console script."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        arguments.complete()
    try:
        _end_in_order()
        console.prepare()
        _warn_of_namesakes()
        status = _run_and_flush(sys.argv[1:])
    except BrokenPipeError:
        # The reader closed the pipe. The interpreter must not flush into it again.
        console.silence()
        status = 128 + getattr(signal, "SIGPIPE", 13)  # Windows does not have this signal
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    sys.exit(status)


def _warn_of_namesakes() -> None:
    """Warns if another package named `buildtool` is installed in this Python, and says what to do."""
    for path in namesakes():
        version = os.path.basename(path).partition("-")[2].rpartition(".")[0]  # noqa: PTH119
        print(
            f"warning: another package named 'buildtool' ({version}) is installed beside {DISTRIBUTION}: "
            f"{path}\n  hint: it has the same command and import name, and may have overwritten our files: "
            f"run 'pip uninstall buildtool', and install {DISTRIBUTION} again (docs/start/installing.md)",
            file=sys.stderr,
            flush=True,
        )


def _end_in_order() -> None:
    """Turns signals that end the process into SystemExit, so that children end and temporary files are
    removed.
    """

    def end(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(number, end)


def _run_and_flush(argv: Sequence[str]) -> int:
    """Runs a command line and flushes standard output, even after --help. Returns the exit status."""
    try:
        status = run(argv)
    except SystemExit as exit_:  # argparse has printed the help
        status = exit_.code if isinstance(exit_.code, int) else 0
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        console.report(console.write_failure(error), [])
        return 1
    return status


if __name__ == "__main__":
    main()
