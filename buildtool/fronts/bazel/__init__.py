"""The front for Bazel: rules, the answers for a repository rule, and a persistent worker.

Begin at rules/buildtool.bzl, which users copy. repository.py answers its questions. The users' BUILD files
load rules/defs.bzl.
"""
