"""The client that build systems use: sends requests to the service, which runs in a child process.

A leaf: the standard library and msgpack only, so that a build that has nothing to do starts fast.
"""

from buildtool import options
from buildtool.client import turns
from buildtool.client.child import Client
from buildtool.client.files import Located
from buildtool.errors import BuildtoolError, did_you_mean
from buildtool.identity import code_digest, home

__all__ = ["BuildtoolError", "Client", "Located", "code_digest", "did_you_mean", "home", "options", "turns"]
