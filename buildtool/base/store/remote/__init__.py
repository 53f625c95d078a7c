"""A cache that several machines share: entries on a server, behind the cache on disk.

    settings.py     where the server is, how it is used, its credentials; from the environment
    entries.py      an entry as it is sent: compressed, with a checksum and a signature
    servers.py      HTTP servers and Redis, and a limit on the time that they may take
    cache.py        which namespaces are sent, and what happens after an error

It is imported only where a server is set. docs/guides/shared-cache.md says who can do what to it.
"""
