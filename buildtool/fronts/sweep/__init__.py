"""Sweeps: networks times boards times options, each planned, in processes that share the cache.

- candidates.py: the candidates of a sweep, from a .toml file or from Python values, as jobs
- worker.py: what a process does with a batch of jobs: it makes rows of figures, or of an error
- running.py: spreads batches over processes of this machine or of a Dask cluster
- results.py: the folder of a sweep: a lock, the rows so far, and the results
- fronts.py: the candidates of a board that no other candidate beats
- changes.py: what changed since earlier results, with limits
- page.py: the HTML page
- calling.py: `run`, for the command, and `buildtool.sweep`
"""
