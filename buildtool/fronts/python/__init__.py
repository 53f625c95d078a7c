"""The Python interface, for scripts and notebooks: `buildtool.open("wake.tflite").plan(board="cortex-m4")`.

The module `buildtool` has the names of this interface, and imports this package when a name is used.
"""
