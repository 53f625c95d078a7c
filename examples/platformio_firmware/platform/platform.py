"""A platform without packages: compilers are those of the system."""

from platformio.public import PlatformBase


class Buildtool_boardsPlatform(PlatformBase):
    """See builder/main.py."""

    def is_embedded(self):
        """For the order of libraries, which the linker searches again and again."""
        return True
