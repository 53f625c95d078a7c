"""The test firmware that validates, profiles and traces a network on any target: its C sources."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent
