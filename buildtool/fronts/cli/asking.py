"""From a command line's arguments to the service's answer, and the files that both are about."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from buildtool.base.errors import BuildtoolError, UsageError
from buildtool.fronts.cli import arguments, console

# What is being done before the service says so: it has to be loaded, and files to be read.
_FIRST = {
    "analyze": "analysing the network",
    "plan": "planning",
    "front": "planning",
    "watch": "planning",
    "ops": "reading the network",
    "sizes": "reading the image",
    "target": "checking kernels",
    "zoo": "making the network",
    "arena": "placing buffers",
    **dict.fromkeys(("build", "emit", "validate", "profile", "debug", "flash"), "planning"),
    "describe": "describing the build",
}


def ask(args: argparse.Namespace, kind: str = "", without: Collection[str] = ()) -> Any:
    """The service's answer to the request that the arguments make, of another `kind`, `without` some keys."""
    from buildtool.client import door
    from buildtool.client.files import Located

    request = {name: value for name, value in arguments.request(args).items() if name not in without}
    located = Located(request | ({"kind": kind} if kind else {}))
    use = _cache_use(args)
    who = door.mode(args.daemon) if hasattr(args, "daemon") else door.Mode.OFF

    def here(request: Mapping[str, Any]) -> dict[str, Any]:
        from buildtool.api import answered, kept_session

        session = args.session or kept_session()
        session.listen(lambda text: listen({"progress": {"text": text}}))
        return answered(request, session, use)

    try:
        with console.progress(_FIRST.get(args.command, "")) as listen:
            return door.ask(located.request, here, mode=who, cache=use, listen=listen)
    except BuildtoolError as error:
        raise located.restored(error) from None


def inputs(args: argparse.Namespace) -> list[str]:
    """The files that a request's answer depends on, as far as they are there."""
    from buildtool.client.files import Located
    from buildtool.target.registry import board_chain

    request = Located(arguments.request(args)).request
    paths = [value["path"] for value in request.values() if isinstance(value, dict) and "path" in value]
    paths += [value for name, value in request.items() if name in ("model", "board") and _is_file(value)]
    board = next((path for path in paths if path.endswith(".toml")), None)
    if board is not None:
        with contextlib.suppress(BuildtoolError, OSError):
            paths += [str(path) for path in board_chain(board)]
    return sorted(set(paths))


def _is_file(value: object) -> bool:
    """Whether a request's value is a path (absolute, as the client has made it)."""
    return isinstance(value, str) and Path(value).is_absolute()


def _cache_use(args: argparse.Namespace) -> str:
    """What is done with the cache; UsageError for both of its options at once."""
    off, renew = getattr(args, "no_cache", False), getattr(args, "recache", False)
    if off and renew:
        raise UsageError("--no-cache and --recache exclude each other", hint="leave one of them out")
    return "off" if off else "renew" if renew else "on"
