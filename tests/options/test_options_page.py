"""The reference page of the options is the one that their table gives."""

import sys

from paths import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks.options_page import page
from buildtool.api.requests import type_of
from buildtool.fronts.cli import arguments
from buildtool.fronts.cli.commands import COMMANDS, load
from buildtool.options import OPTIONS

DOCS = ROOT / "docs/reference"


def test_the_page_is_current():
    hint = "run: python -m benchmarks.options_page > docs/reference/options.md"
    assert (DOCS / "options.md").read_text(encoding="utf-8") == page(), hint


def test_every_option_is_a_whole_sentence_on_the_page():
    for option in OPTIONS:
        assert option.sentence.endswith(".") and option.sentence[0].isupper()
        assert f"| `{option.name}`" in page()


def test_the_command_line_has_the_options_of_the_table_and_says_the_same(capsys):
    for command in map(load, COMMANDS):
        try:
            arguments.parse([command.name, "--help"])
        except SystemExit as stopped:
            assert stopped.code == 0
        said = " ".join(capsys.readouterr().out.split())
        for option in OPTIONS:
            if command.kind and option.name in type_of(command.kind).takes:
                assert _words(option.help, said)
                assert option.name in command.positional or option.flagged in said


def _words(sentence, said):
    """Whether a help text says a sentence; argparse breaks lines at hyphens."""
    return sentence.replace(" ", "").replace("-", "") in said.replace(" ", "").replace("-", "")
