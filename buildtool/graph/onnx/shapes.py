"""Infers the shapes of an ONNX model: from stdin to stdout, in a process with limited memory and time.

It is run by path, so that it imports only the standard library and onnx. A file that makes onnx's native code
crash ends only this process.
"""

import contextlib
import sys

MOST_MEMORY = 4 << 30  # bytes of address space
MOST_SECONDS = 60  # of processor time


def main() -> int:
    """Returns 0 on success. Otherwise writes the reason to stderr in one line and returns 1."""
    _limit()
    import onnx

    data = sys.stdin.buffer.read()
    try:
        inferred = onnx.shape_inference.infer_shapes(onnx.load_from_string(data), data_prop=True)
        result = inferred.SerializeToString()
    except Exception as error:  # the native code's message tells what is wrong with the file
        sys.stderr.write(" ".join(str(error).split())[:400])
        return 1
    sys.stdout.buffer.write(result)
    return 0


def _limit() -> None:
    """Limits this process's memory and time where the system can: not on Windows; on macOS only the time."""
    try:
        import resource
    except ImportError:
        return
    for limit, most in (
        (resource.RLIMIT_AS, MOST_MEMORY),
        (resource.RLIMIT_CPU, MOST_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    sys.exit(main())
