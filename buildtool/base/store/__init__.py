"""The store: bytes in namespaces, each under a key of everything that they depend on.

    disk.py     one checked file per entry, in a folder of the user; evicts the oldest entries
    remote/     a server that several machines share, asked if the disk lacks an entry; imported only if set
    notes.py    size and counts of the cache, and reports on requests, for `stats` and `explain`
    cache.py    disk, server and notes together, for a session; counts hits and misses
    recent.py   in memory: the values used last, up to a limit
    care.py     the commands stats, verify, clear, explain

Two folders contain entries. `Cache` uses the cache (`folders.cache_folder`). `disk.recall` and `disk.keep`
use the memo of builds (`folders.memo_folder`), which is read before anything is planned. base/digests.py has
the results that are valid while a file is unchanged. Data that cannot be made again is not in the store: the
daemon's files, SCons's locks and records of targets, the results of a split.

The store makes builds faster. It never makes one fail or changes its output: a bad entry counts as missing.
"""

# The cache namespaces. BUILDTOOL_CACHE may name some of them; docs/internals/rebuilds.md says what each
# contains.
NAMESPACES = (
    *("arenas", "blocktimes", "code", "fronts", "networks", "objects", "orders", "passes", "plans"),
    *("programs", "refusals", "weights"),
)

OFF_FILE = "remote.off"  # in the cache's folder; its time says when the server did not answer

EntryId = tuple[str, str]  # identifies an entry: its namespace and its key
