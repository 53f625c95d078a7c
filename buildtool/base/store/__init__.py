"""What is kept of something that was made once: bytes in levels, each under a key of all that it depends on.

    recent.py   in memory: the values used last, within a bound
    disk.py     on disk: one checked file an entry, in a folder of this user's; eviction by bytes
    index.py    sizes, order of use and counts of the cache's entries, in sqlite: for eviction and `stats`
    cache.py    both, as a session asks them: memory over disk, with what was found, made and left out counted
    care.py     stats, verify, clear, explain

Two folders hold entries: the cache (`folders.cache_folder`), through `Cache`, and the memo of builds
(`folders.memo_folder`), which is read before anything is planned, through `disk.recall` and `disk.keep`.
What was made of a file's content, and holds while the file is as it was, is base/digests.py.

Kept elsewhere, because it is not a copy of what could be made again: the daemon's socket, lock and record
(daemon/lifetime.py), which say who is alive; SCons's turns and records of targets (client/turns.py,
site_scons), which belong to a build's folder; a search's records, networks and checkpoints (split), which
are results of hours and are named by the user. The daemon's list of requests to prepare (daemon/watcher.py)
is a queue, not a memo.

A store makes a build faster and never fails one, nor changes its bytes: a bad entry is a miss.
"""

# The levels of the cache. BUILDTOOL_CACHE may name some of them; docs/rebuilds.md says what each holds.
LEVELS = (
    *("arenas", "blocktimes", "code", "fronts", "networks", "objects", "orders", "passes", "plans"),
    *("programs", "refusals", "tables", "weights"),
)
