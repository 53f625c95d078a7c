"""A cache that several machines share: entries on a server, which are read where the disk has no entry.

    settings.py     where the server is, how it is used, its credentials; from the environment
    entries.py      an entry as it is sent: compressed, with a checksum and a signature
    servers.py      HTTP servers, and a limit on the time that servers may take
    redisserver.py  Redis servers
    cache.py        which namespaces are sent, and what happens after an error

It is imported only where a server is set. docs/guides/shared-cache.md says who can do what to it.
"""
