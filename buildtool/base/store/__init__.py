"""The store: bytes in levels, each under a key of all that it depends on.

    disk.py     one checked file an entry, in a folder of this user's; eviction by bytes
    notes.py    bytes and counts of the cache, and what was asked of it: for `stats` and `explain`
    cache.py    both, as a session asks them: hits, misses and entries made are counted
    recent.py   in memory: the values used last, within a bound
    care.py     stats, verify, clear, explain

Two folders hold entries: the cache (`folders.cache_folder`), through `Cache`, and the memo of builds
(`folders.memo_folder`), which is read before anything is planned, through `disk.recall` and `disk.keep`.
Results computed from a file, valid while it is unchanged, are in base/digests.py. What cannot be made again
is kept elsewhere: the daemon's files, SCons's turns and records of targets, a split's results.

A store makes a build faster and never fails one, nor changes its bytes: a bad entry is a miss.
"""

# The levels of the cache. BUILDTOOL_CACHE may name some of them; docs/rebuilds.md says what each holds.
LEVELS = (
    *("arenas", "blocktimes", "code", "fronts", "networks", "objects", "orders", "passes", "plans"),
    *("programs", "refusals", "tables", "weights"),
)

Known = tuple[str, str]  # an entry: its level and its key
