"""Sessions: a value is made once, the ones used last stay, failures are not kept."""

import pytest

from buildtool.session import Session


def test_a_value_is_made_once_per_kind_and_key():
    session, made = Session(), []
    for kind, key in (("a", 1), ("a", 1), ("b", 1), ("a", 2)):
        assert session.remember(kind, key, lambda k=(kind, key): made.append(k) or k) == (kind, key)
    assert made == [("a", 1), ("b", 1), ("a", 2)]


def test_the_value_that_was_not_used_for_longest_goes_first():
    session = Session(most_entries=2)
    for key in (1, 2, 1, 3):
        session.remember("a", key, lambda key=key: [key])
    made = []
    for key in (1, 3, 2):
        session.remember("a", key, lambda key=key: made.append(key))
    assert made == [2]


def test_nothing_is_kept_of_a_failure():
    session = Session()
    with pytest.raises(ZeroDivisionError):
        session.remember("a", 1, lambda: 1 // 0)
    assert session.remember("a", 1, lambda: 5) == 5
