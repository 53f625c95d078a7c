"""Reads what vendors publish about a chip, and writes a board file to start from.

A CMSIS-SVD has the core and the peripherals, a CMSIS-Pack's .pdsc also memories and the highest clock, a
device tree and a GNU linker script the memories. `facts.py` has what all readers return, `reading.py` reads
files, `newboard.py` writes the board's.
"""
