"""The front end for Bazel: rules, the answers for a repository rule, and a persistent worker.

Begin at rules/buildtool.bzl, which users copy. repository.py answers the questions of this file. The users'
BUILD files load rules/defs.bzl.
"""
