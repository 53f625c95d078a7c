"""Targets as plain data: boards, cores, kernel catalogues and costs; and the interface of target plugins."""
