"""Folders of networks for any build system: `buildtool build MODEL --board B --out DIR --bundle`.

The service returns a network's own files and the kernels that the network needs. This package puts them
beside the networks that a folder has already, and writes the files that list all of them.
"""
