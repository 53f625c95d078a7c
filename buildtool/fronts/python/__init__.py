"""The Python interface, for scripts and notebooks: `buildtool.open("wake.tflite").plan(board="cortex-m4")`.

The module `buildtool` has its names, and imports this package when one of them is used.
"""
