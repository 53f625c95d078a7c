"""The page about the Python interface: its examples print what it says. The site runs its notebook."""

import doctest

from paths import ROOT

PAGE = ROOT / "docs/guides/python.md"


def test_the_page_s_examples_print_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 5 and failed == 0
