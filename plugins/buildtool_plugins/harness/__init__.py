"""The C sources of the test firmware that validates, profiles and traces a network on any target."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent
