"""The client that build systems use. It sends requests to the daemon, or to a child process.

It needs only the standard library and msgpack. It imports a module when the module is first used, so that a
build with nothing to do starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buildtool import options
    from buildtool.api.requests import options_of
    from buildtool.base.code_digest import code_digest, code_files, code_folders, home
    from buildtool.base.compiler import identify
    from buildtool.base.digests import Digests, hashing_always, is_hashed_always
    from buildtool.base.errors import BuildtoolError, UsageError, did_you_mean
    from buildtool.client import build_lock
    from buildtool.client.child import Client
    from buildtool.client.compiling import Objects
    from buildtool.client.descriptions import fetch_description
    from buildtool.client.files import Located
    from buildtool.client.placing import place
    from buildtool.client.planned import emitted_lines
    from buildtool.schema import builds as answers

__all__ = [
    "BuildtoolError",
    "Client",
    "Digests",
    "Located",
    "Objects",
    "UsageError",
    "answers",
    "build_lock",
    "code_digest",
    "code_files",
    "code_folders",
    "did_you_mean",
    "emitted_lines",
    "fetch_description",
    "hashing_always",
    "home",
    "identify",
    "is_hashed_always",
    "options",
    "options_of",
    "place",
]

_HOMES = {
    "api.requests": ("options_of",),
    "base.compiler": ("identify",),
    "base.digests": ("Digests", "hashing_always", "is_hashed_always"),
    "base.errors": ("BuildtoolError", "UsageError", "did_you_mean"),
    "base.code_digest": ("code_digest", "code_files", "code_folders", "home"),
    "client.child": ("Client",),
    "client.compiling": ("Objects",),
    "client.descriptions": ("fetch_description",),
    "client.files": ("Located",),
    "client.placing": ("place",),
    "client.planned": ("emitted_lines",),
}
_MODULES = {"answers": "schema.builds", "options": "options", "build_lock": "client.build_lock"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"buildtool.{_MODULES[name]}")
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"buildtool.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
