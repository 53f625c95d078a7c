"""What outlives a process: answers of the planner's steps, each under a key of all that it depends on.

    entry.py    the bytes of an entry, and what is refused
    disk.py     one file an entry, in a folder of this user's
    index.py    sizes, ages and counts, in sqlite: for eviction, `stats` and `explain`
    cache.py    memory over disk, as a session asks it
    care.py     stats, verify, clear, explain

A cache makes a build faster and never fails one, nor changes its bytes: a bad entry is a miss.
"""
