import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.errors import TargetError
from buildtool.base.expression import MAX_DEPTH, check, evaluate

NAMES = {"kh": 3, "kw": 5, "cin": 16, "zero": 0}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7", 7),
        ("-kh + 2 * kw", 7),
        ("cin // kh", 5),
        ("cin % kh", 1),
        ("cin / kw", 3.2),
        ("kh == 3 and kw != 3", True),
        ("not kh or zero", False),
        ("1 < kh < kw <= 5", True),
        ("5 if zero else 6", 6),
        ("min(kh, kw, 4) + max(kh, kw)", 8),
        ("abs(kh - kw)", 2),
        ("ceil_div(cin, kh)", 6),
        ("align(kh * kw, 16)", 16),
        ("align(cin, 16)", 16),
        (" ( 1 )\n", 1),
        ("zero and 1 / zero", False),  # short circuit, as Python
        ("kh if kh else 1 / zero", 3),
        ("(1 / zero if zero else 2) + (1 / zero if zero else 2)", 4),  # these branches are not taken
        ("(kh * kw) + (kh * kw) * (1 + kh * kw)", 255),
        ("(kw < 3) + (kh < 3) + 2 * (kh < 4) + 4 * (kh < 4)", 6),
        ("(kw % 3 == 2 and kh) + (kw % 3 == 2 and kh)", 2),  # a condition is True or False
        ("kh * 1 == kh * 1.0 and (2 if kh * 1 == 3 else 0) * 1.0", True),
    ],
)
def test_value(expression, value):
    assert evaluate(expression, NAMES) == value


REFUSED = (
    *(
        "__import__('os').system('true')",
        "().__class__",
        "kh.__class__",
        "kh.bit_length()",
        "[1, 2][0]",
        "{1: 2}",
    ),
    *("'text'", "b'text'", "None", "...", "1j", "lambda: 1", "(x := 1)", "[x for x in (1, 2)]", "f'{kh}'"),
    *("2 ** 100000", "1 << 100000", "kh | 1", "~kh", "kh @ kw", "kh in (3,)", "kh is kw", "min(*(1, 2))"),
    *("min(a=1, b=2)", "(min)(1, 2)(3)", "max(1)", "align(1, 2, 3)", "min", "exit()", "yield 1", "await kh"),
    *("1; 2", "x = 1", "import os", "", "   ", "1 +", "kh kw", "\x00", "é", "99999999999999999999999999"),
    *("1e400", "(" * 3000 + ")" * 3000, "-" * 500 + "1", "+".join(["1"] * 600)),
    "min(" * 100 + "1" + ", 1)" * 100,
    *("kh / zero", "kh // zero", "kh % zero", "ceil_div(kh, zero)", "align(kh, zero)"),
)


@pytest.mark.parametrize("expression", REFUSED)
def test_everything_but_arithmetic_and_divisions_by_zero_are_refused(expression):
    with pytest.raises(TargetError, match=re.escape(f"expression '{expression[:70]}")):
        evaluate(expression, NAMES)


def _pairs(inner):
    """Expressions, each with an equal one in Python, where conditions have to be made True or False."""
    forms = [f"({{0}} {op} {{1}})" for op in ("+", "-", "*", "//", "%", "<", "==")]
    forms += ["({0} if {1} else {0})", "max({0}, {1}, {0})"]
    return st.one_of(
        st.builds(lambda form, a, b: tuple(map(form.format, a, b)), st.sampled_from(forms), inner, inner),
        st.builds(lambda a, b: (f"({a[0]} and {b[0]})", f"bool({a[1]} and {b[1]})"), inner, inner),
    )


_LEAVES = st.sampled_from([*NAMES, "1", "2", "7", "0.5"]).map(lambda text: (text, text))


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.recursive(_LEAVES, _pairs, max_leaves=12))
def test_values_are_those_of_the_arithmetic_as_python_reads_it(pair):
    try:
        expected = eval(pair[1], {"max": max, "bool": bool}, dict(NAMES))
    except ZeroDivisionError:
        with pytest.raises(TargetError):
            evaluate(pair[0], NAMES)
        return
    assert evaluate(pair[0], NAMES) == expected


def test_results_that_are_not_finite_and_deep_nesting_are_refused():
    with pytest.raises(TargetError, match="not finite"):
        evaluate(" * ".join(["9e18"] * 20), {})
    assert evaluate("-" * MAX_DEPTH + "1", {}) == 1
    with pytest.raises(TargetError, match="nested deeper"):
        evaluate("-" * (MAX_DEPTH + 1) + "1", {})


def test_an_unknown_name_is_named_with_the_closest_also_in_a_branch_that_is_not_taken():
    assert evaluate("1 if kh else chin", NAMES) == 1
    for function, expression, name, known in (
        (evaluate, "kh + chin", "name 'chin'", "cin"),
        (check, "alignn(kh, 2)", "function 'alignn'", "align"),
        (check, "1 if kh else chin", "name 'chin'", "cin"),
    ):
        with pytest.raises(TargetError, match=f"unknown {name}") as caught:
            function(expression, NAMES if function is evaluate else frozenset(NAMES))
        assert caught.value.hint == f"did you mean '{known}'?"


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.text(st.characters(codec="utf-8"), max_size=60)
    | st.text("kh()+-*/%<>=!., 0123456789eifandor", max_size=60)
)
def test_any_text_gives_a_finite_number_or_a_target_error(expression):
    try:
        value = evaluate(expression, NAMES)
    except TargetError:
        return
    assert isinstance(value, int | float)
    assert math.isfinite(value)
