"""The C kernels, as package data: include/, runtime/, and one folder for each kernel family."""
