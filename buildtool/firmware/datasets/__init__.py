"""Data sets: arrays or images, with their labels, as the inputs of a network."""
