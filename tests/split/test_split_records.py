"""Records and arrays for later runs survive other writers; other files stay unchanged."""

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from buildtool.base.errors import UsageError
from buildtool.split.records import Records, keep_arrays, key_of, read_arrays


def test_what_was_put_is_read_again(tmp_path):
    path = tmp_path / "deep" / "records.json"
    records = Records(path)
    assert records.get("a") is None
    record = {"accuracy": 0.5, "factors": [2, 4]}
    records.put("a", record)
    record["accuracy"] = 0.0
    assert records.get("a") == Records(path).get("a") == {"accuracy": 0.5, "factors": [2, 4]}
    assert json.loads(path.read_text())["schema"] == 1
    assert sorted(one.name for one in path.parent.iterdir()) == ["networks", "records.json"]
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1}) != key_of({"a": 2, "b": [2]})


def put(path, name):
    records = Records(path)
    for index in range(20):
        records.put(f"{name}{index}", {"index": index})


def test_two_writers_lose_nothing(tmp_path):
    path = tmp_path / "records.json"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=put, args=(path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert len(json.loads(path.read_text())["records"]) == 40


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"schema": 2, "records": {}}', '{"schema": 1}', '{"schema": 1, "records": {"a": 1}}'],
)
def test_another_file_is_refused_and_left(tmp_path, content):
    path = tmp_path / "records.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="records") as caught:
        Records(path)
    assert str(path) in str(caught.value)
    assert path.read_text() == content


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_done(tmp_path):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file/below", Path("/proc/nothing")):
        with pytest.raises(UsageError, match="the folder for records and results cannot be used") as caught:
            Records(folder / "records.json").prepare()
        assert caught.value.option == "out"
    assert (tmp_path / "file").read_text() == "mine"
    Records(tmp_path / "new/records.json").prepare()
    assert list((tmp_path / "new").iterdir()) == []


def test_what_killed_processes_left_half_written_goes_and_nothing_else(tmp_path):
    half_written = tmp_path / f".buildtool-{1 << 30}-ab12-0.part"
    running, other = tmp_path / ".buildtool-1-ab12-0.part", tmp_path / ".buildtool-x-ab12-0.part"
    for path in (half_written, running, other):
        path.touch()
    Records(tmp_path / "records.json").prepare()
    assert sorted(tmp_path.iterdir()) == [running, other]


def test_damaged_arrays_are_left_aside(tmp_path):
    path = tmp_path / "kept.npz"
    arrays = {"v0": np.arange(6.0).reshape(2, 3), "v1": np.array(7)}
    keep_arrays(path, {"key": "a"}, arrays)
    about, restored = read_arrays(path) or ({}, {})
    assert about == {"key": "a"}
    assert all(np.array_equal(restored[name], one) for name, one in arrays.items())
    assert read_arrays(tmp_path / "none.npz") is None
    whole = path.read_bytes()
    for damaged in (whole[:-100], b"", whole[:200] + b"\xff\xff" + whole[202:]):
        path.write_bytes(damaged)
        assert read_arrays(path) is None
