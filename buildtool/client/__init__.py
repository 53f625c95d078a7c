"""The client that build systems use: sends requests to the service, which runs in a child process.

A leaf: the standard library and msgpack only, so that a build that has nothing to do starts fast.
"""

from buildtool.client.child import Client

__all__ = ["Client"]
