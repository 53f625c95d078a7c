"""The answers to requests: each file has the handlers of some kinds, or a part of their answers."""
