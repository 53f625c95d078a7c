"""Acme's target for buildtool: a board, how to run programs for it, and a kernel family."""

from __future__ import annotations

from acme_target.plugin import AcmePlugin

plugin = AcmePlugin()

__all__ = ["plugin"]
