"""The `buildtool` command: a command line, its answer or its error, and the exit status."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from buildtool import DISTRIBUTION, __version__
from buildtool.base import identity
from buildtool.base.errors import BuildtoolError, InternalError, UsageError
from buildtool.fronts.cli import arguments, console
from buildtool.fronts.cli.commands import load
from buildtool.fronts.texts import table

if TYPE_CHECKING:
    from buildtool.base.session import Session

USAGE = 2  # the exit status of a mistake in usage
INTERNAL = 70  # the exit status of a fault of ours (EX_SOFTWARE of sysexits.h)


def run(argv: Sequence[str], session: Session | None = None) -> int:
    """Runs one command line; the exit status: 0, 1 for an error, 2 for a usage error, 70 for a fault of ours.

    An error goes to standard error; with --json it is the answer, on standard output. `session`: what
    several command lines of one process share.
    """
    try:
        if not argv:  # as git does: the help, and no success, since nothing was done
            arguments.parser().print_help()
            return USAGE
        if list(argv) == [arguments.CMAKE_DIR]:
            from buildtool.fronts.cmake.quoting import cmake_folder

            console.write(str(cmake_folder()))
            return 0
        if list(argv) == [arguments.VERSION]:
            console.write(f"buildtool {__version__}, from {DISTRIBUTION} in {identity.home()}")
            return 0
        try:
            args = arguments.parse(argv)  # help and version are printed here
        except BrokenPipeError:
            raise
        except OSError as error:
            raise console.unwritable(error) from None
        args.session = session
        command = load(args.command)
        if not command.multiplies:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        with contextlib.ExitStack() as stack:
            stack.callback(table.width.reset, table.width.set(console.width()))
            if getattr(args, "hash_inputs", False):
                from buildtool.base.digests import hashing_always

                stack.enter_context(hashing_always(True))
            answer, text, status = command.run(args)
            if answer and args.json:
                console.write(console.as_json(answer))
            elif answer:
                console.write_text(text)
        console.write_sarif(argv, [], status, answer)
        return status
    except BrokenPipeError:
        raise
    except Exception as error:
        told = console.report(error, argv)
        status = USAGE if isinstance(told, UsageError) else 1
        if isinstance(told, InternalError):
            status = INTERNAL
        with contextlib.suppress(BuildtoolError):  # what was wrong first has been said
            console.write_sarif(argv, [told], status)
        return status


def main() -> NoReturn:
    """The console script."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks which words could follow
        arguments.complete()
    try:
        _end_in_order()
        console.prepare()
        _warn_of_namesakes()
        status = _run_and_flush(sys.argv[1:])
    except BrokenPipeError:
        # Who reads our output has enough; the interpreter must not flush into the pipe once more.
        console.silence()
        status = 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    sys.exit(status)


def _warn_of_namesakes() -> None:
    """Warns where somebody else's package `buildtool` is installed here, and says what helps."""
    for path in identity.namesakes():
        version = os.path.basename(path).partition("-")[2].rpartition(".")[0]  # noqa: PTH119
        print(
            f"warning: somebody else's package 'buildtool' ({version}) is installed beside {DISTRIBUTION}: "
            f"{path}\n  hint: it has the same command and import name, and its files may have replaced ours: "
            f"run 'pip uninstall buildtool', and install {DISTRIBUTION} again (docs/installing.md)",
            file=sys.stderr,
            flush=True,
        )


def _end_in_order() -> None:
    """Turns signals that end the process into SystemExit, which ends children and removes files."""

    def end(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(number, end)


def _run_and_flush(argv: Sequence[str]) -> int:
    """The exit status of a command line; flushes all that was printed, help and version too."""
    try:
        status = run(argv)
    except SystemExit as ended:  # argparse has printed what was asked for
        status = ended.code if isinstance(ended.code, int) else 0
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        console.report(console.unwritable(error), [])
        return 1
    return status


if __name__ == "__main__":
    main()
