"""The Python interface, for scripts and notebooks: `buildtool.open("wake.tflite").plan(board="cortex-m4")`.

`buildtool` itself offers its names, and imports this package when one of them is used.
"""
