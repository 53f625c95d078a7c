"""The reference of board files and catalogues has exactly the keys that their readers accept."""

import pytest
from paths import ROOT

from buildtool.base.errors import TargetError
from buildtool.base.plain import key_names
from buildtool.target.family import costs_of
from buildtool.target.page import page
from buildtool.target.types import Costs


def test_the_page_is_current():
    hint = "run: python -m buildtool.target.page > docs/reference/target-reference.md"
    assert (ROOT / "docs/reference/target-reference.md").read_text(encoding="utf-8") == page(), hint


def test_the_costs_that_are_read_are_those_of_the_page(tmp_path):
    path = tmp_path / "catalogue.toml"
    for key in key_names(Costs):
        assert costs_of({key: "2"}, path, {}) == {key: "2"}
    with pytest.raises(TargetError, match="unknown key"):
        costs_of({"laod": "2"}, path, {})
