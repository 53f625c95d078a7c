"""Running images in QEMU's system emulators, and counting instructions there."""
