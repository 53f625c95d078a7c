"""The C kernels, as package data: include/, runtime/, and one folder a kernel family."""
