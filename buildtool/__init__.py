"""buildtool: makes trained int8 neural networks fit and run on microcontrollers."""

__version__ = "0.1.0"
DISTRIBUTION = "buildtool-mcu"  # on PyPI, `buildtool` is somebody else's
