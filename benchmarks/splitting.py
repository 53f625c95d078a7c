"""Splitting VGG16 and ResNet18: parameters and multiply-accumulates of the published structures.

python benchmarks/splitting.py --counts
"""

import argparse

from buildtool.split.published import print_published


def main() -> None:
    """Prints what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--counts", action="store_true", help="parameters and MACs of the published structures"
    )
    parser.add_argument("--width", type=float, default=1.0, help="of the networks (default 1)")
    parser.add_argument("--size", type=int, default=32, help="rows and columns of the input (default 32)")
    given = parser.parse_args()
    if given.counts:
        print_published(given.width, given.size)
    else:
        parser.print_usage()


if __name__ == "__main__":
    main()
