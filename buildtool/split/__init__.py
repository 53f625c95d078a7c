"""Splits the blocks of a trained network into slim branches, so that the network fits a board.

A network is cut at its poolings and strides into blocks (branches.py). With splitting factor K, a block
becomes K branches with 1/K of its channels each, and a fusion block joins them (structure.py). The package
extra `split` installs Keras and TensorFlow. Only this folder imports them.
"""
