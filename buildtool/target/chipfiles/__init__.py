"""Reads what vendors publish about a chip, and writes a board file to start from.

A CMSIS-SVD has the core and the peripherals, a CMSIS-Pack's .pdsc also memories and the highest clock. A
device tree has core, memories, clock and serial ports, a GNU linker script only the memories. `facts.py` has
the type that all readers return. `reading.py` reads files, `newboard.py` writes the board's file.
"""
