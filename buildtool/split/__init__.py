"""Splitting a trained network's structure: slim branches replace its blocks, as narrow as a board needs them.

A network is cut at its poolings and strides into blocks (blocks.py). A block with splitting factor K becomes
K branches that each have 1/K of its channels; a fusion block joins them (structure.py). Keras and TensorFlow
come with the extra `split`; nothing outside this room imports them, and its plain modules do without.
"""
