"""Folders of networks that any build system compiles: `buildtool build MODEL --board B --out DIR --bundle`.

The service gives a network's own files and the kernels that it needs. Here they are put beside the networks
that the folder holds already, and the files are written that name all of them.
"""
