"""The front for Bazel: rules, what a repository rule asks for, and a persistent worker.

Begin at rules/buildtool.bzl, which users copy; repository.py answers it; rules/defs.bzl is what their BUILD
files load.
"""
