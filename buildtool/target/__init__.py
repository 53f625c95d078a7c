"""Targets as data: boards, cores, kernel catalogues, costs; the plugin interface."""
