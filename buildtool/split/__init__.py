"""Splitting a trained network's structure: slim branches replace its blocks, as narrow as a board needs them.

A network is cut at its poolings and strides into blocks (branches.py). With splitting factor K, a block
becomes K branches with 1/K of its channels each, and a fusion block joins them (structure.py). Keras and
TensorFlow come with the extra `split`. Only this room imports them.
"""
