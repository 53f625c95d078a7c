"""The answer of every kind of request has the keys and the types of values of its type."""

from __future__ import annotations

import functools
import io
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from answertypes import wrong
from needs import needs_tool
from paths import ROOT

sys.path.insert(0, str(ROOT))

from benchmarks.answers_page import answers_of, page
from buildtool import api
from buildtool.api.requests import EVERY_KIND
from buildtool.base.errors import ErrorData, UsageError, to_data
from buildtool.base.session import Session
from buildtool.schema import SCHEMA
from buildtool.schema.plans import PlanAnswer

handle = partial(api.handle, session=Session())  # makes a network's tables once

NET = {"model": "ds_cnn", "board": "host"}
CFG = b"[net]\nheight=8\nwidth=8\nchannels=3\n[convolutional]\nfilters=4\nsize=3\nstride=1\npad=1\n"
CSV = b"id,lower,upper,size\na,0,4,64\nb,2,6,32\n"
STREAMED = {"image": "stream", "objective": "ram"}


def checked(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request, after checking its schema's version and its type."""
    answer = handle(request)
    assert answer["schema"] == SCHEMA
    kinds = answers_of(request["kind"])
    rest = {key: value for key, value in answer.items() if key != "schema"}
    assert min((wrong(rest, kind) for kind in kinds), key=len) == []
    return answer


@functools.cache
def built() -> dict[str, Any]:
    """The test firmware of a network for this machine."""
    return checked({"kind": "build", **NET, "name": "named"})


def image() -> dict[str, Any]:
    """The files of the test firmware, as a request has them."""
    files = built()["files"]
    return {
        "elf": {"name": "named.elf", "data": files["named.elf"]},
        "plan": {"name": "named.plan", "data": files["named.plan"]},
    }


def test_every_kind_of_request_has_a_type() -> None:
    assert all(map(answers_of, EVERY_KIND))


@pytest.mark.parametrize(
    "request_",
    [
        {"kind": "ops"},
        {"kind": "boards"},
        {"kind": "zoo"},
        {"kind": "zoo", "model": "ds_cnn"},
        {"kind": "plan", **NET},
        {"kind": "plan", **NET, "options": STREAMED, "compare": True},
        {"kind": "plan", "model": "ds_cnn", "board": "xcore"},
        {"kind": "trace", **NET, "options": STREAMED},
        {"kind": "front", **NET, "peers": True},
        {"kind": "report", **NET, "peers": True},
        {"kind": "report", **NET, "options": STREAMED},
        {"kind": "analyze", "model": "ds_cnn", "boards": ["host"]},
        {"kind": "analyze", "model": "ds_cnn", "boards": ["hifive1"], "options": {"strategy": "layerwise"}},
        {"kind": "analyze", "model": {"name": "a.cfg", "data": CFG}},
        {"kind": "emit", **NET},
        {"kind": "bundle", **NET, "name": "other"},
        {"kind": "arena", "file": {"name": "a.csv", "data": CSV}},
        {"kind": "arena", "file": {"name": "a.csv", "data": CSV}, "capacity": 8},
        {"kind": "tflm", "model": "ds_cnn"},
    ],
    ids=lambda request: "-".join([request["kind"], *map(str, request.get("options", {}))]),
)
def test_an_answer_is_what_its_type_says(request_: dict[str, Any]) -> None:
    checked(request_)


def test_descriptions_are_what_their_type_says() -> None:
    needs_tool("clang")
    for more in ({}, {"model": "ds_cnn"}):
        checked({"kind": "describe", "board": "host", **more})
    assert checked({"kind": "describe", "board": "hifive1"})["script"] is not None


@pytest.mark.slow
def test_answers_about_what_was_built_are_what_their_types_say() -> None:
    needs_tool("clang")
    checked({"kind": "sizes", "board": "host", "elf": image()["elf"]})
    checked({"kind": "validate", **NET, **image()})
    checked({"kind": "profile", **NET, **image()})
    data = io.BytesIO()
    np.savez(data, x=np.zeros((2, 49, 10, 1), np.int8), y=np.array([0, 3]))
    set_ = {"data": {"name": "set.npz", "data": data.getvalue()}}
    checked({"kind": "validate", **NET, **image(), **set_})
    checked({"kind": "validate", **NET, **set_, "reference_only": True})


def test_an_error_is_what_its_type_says() -> None:
    with pytest.raises(UsageError) as caught:
        handle({"kind": "plan", **NET, "options": {"strategy": "layerwise", "hand_off": 4}})
    assert wrong(to_data(caught.value), ErrorData) == []
    assert caught.value.hints


def test_what_is_missing_added_or_of_another_type_is_found() -> None:
    answer = {key: value for key, value in handle({"kind": "plan", **NET}).items() if key != "schema"}
    assert wrong(answer, PlanAnswer) == []
    assert wrong({**answer, "arena": 3}, PlanAnswer) == ["answer: arena"]
    assert wrong({k: v for k, v in answer.items() if k != "f"}, PlanAnswer) == ["answer: f"]
    assert wrong({**answer, "arena_bytes": "3"}, PlanAnswer)
    buffers = [{**answer["buffers"][0], "size": None}, *answer["buffers"][1:]]
    assert wrong({**answer, "buffers": buffers}, PlanAnswer)


def test_the_page_is_current() -> None:
    hint = "run: python -m benchmarks.answers_page > docs/reference/answers.md"
    assert (ROOT / "docs/reference/answers.md").read_text(encoding="utf-8") == page(), hint
