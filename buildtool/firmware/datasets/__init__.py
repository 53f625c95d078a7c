"""Data sets: arrays or images that are the inputs of a network, with their labels."""
