"""Runs firmware images in QEMU's system emulators, and counts their instructions."""
