"""Settings of every test run."""

import os

# Workers already fill the cores; a matrix product with threads of its own is several times slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
