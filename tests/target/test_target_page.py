"""The reference of board files and catalogues is what their readers accept, and nothing more."""

import pytest
from paths import ROOT

from buildtool.base.errors import TargetError
from buildtool.target import board_keys, catalogue_keys
from buildtool.target.page import page
from buildtool.target.types import Argument, Contract, Role, Windows


def test_the_page_is_current():
    hint = "run: python -m buildtool.target.page > docs/target-reference.md"
    assert (ROOT / "docs/target-reference.md").read_text(encoding="utf-8") == page(), hint


@pytest.mark.parametrize("keys", [board_keys.TABLES, catalogue_keys.TABLES])
def test_every_key_has_a_whole_sentence_and_stands_once(keys):
    for _, about, table in keys:
        assert about
        assert len({key.name for key in table}) == len(table)
        for key in table:
            assert key.meaning[0].isupper(), key
            assert key.meaning.endswith("."), key


def test_every_word_of_a_catalogue_is_explained():
    for words, meanings in [
        (Argument, catalogue_keys.ARGUMENTS),
        (Contract, catalogue_keys.CONTRACTS),
        (Windows, catalogue_keys.WINDOWS),
        (Role, catalogue_keys.ROLES),
    ]:
        assert list(words) == list(meanings)


def test_the_costs_that_are_read_are_those_of_the_page(tmp_path):
    from buildtool.target.costs import load_costs

    path = tmp_path / "catalogue.toml"
    for key in catalogue_keys.COSTS:
        path.write_text(f'[costs]\n{key.name} = "2"\n')
        assert load_costs(path) == {key.name: "2"}
    path.write_text('[costs]\nlaod = "2"\n')
    with pytest.raises(TargetError, match="unknown key"):
        load_costs(path)
