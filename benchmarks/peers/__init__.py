"""Other systems beside this one: the same file, in one run, each as its package installs it.

python -m benchmarks.peers MODEL.tflite [--segments 0-6x20,7-14x10]... [--json]
"""
