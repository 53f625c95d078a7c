"""The C kernels, as package data: include/, runtime/, and one folder per kernel family."""
