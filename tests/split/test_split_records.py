"""The file of records: what was put is there, whatever else writes to it, and no other file is touched."""

import json
import multiprocessing
from pathlib import Path

import pytest

from buildtool.base import outfiles
from buildtool.base.errors import UsageError
from buildtool.split.records import Records, key_of


def test_what_was_put_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "records.json"
    records = Records(path)
    assert records.get("a") is None
    given = {"accuracy": 0.5, "factors": [2, 4]}
    records.put("a", given)
    given["accuracy"] = 0.0
    assert records.get("a") == Records(path).get("a") == {"accuracy": 0.5, "factors": [2, 4]}
    assert json.loads(path.read_text())["schema"] == 1
    assert [one.name for one in path.parent.iterdir() if not one.name.startswith(".")] == ["records.json"]


def put(path: Path, name: str) -> None:
    records = Records(path)
    for index in range(20):
        records.put(f"{name}{index}", {"index": index})


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=put, args=(path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert len(Records(path)) == 40


def test_a_write_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.json"
    Records(path).put("a", {"x": 1})
    before = path.read_bytes()

    def full(files: object, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outfiles, "write", full)
    with pytest.raises(OSError, match="No space left"):
        Records(path).put("b", {"x": 2})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"schema": 2, "records": {}}', '{"schema": 1}', '{"schema": 1, "records": {"a": 1}}'],
)
def test_another_file_is_refused_and_left(tmp_path: Path, content: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="records") as caught:
        Records(path)
    assert str(path) in str(caught.value)
    assert path.read_text() == content


def test_keys_are_of_values_and_not_of_their_order() -> None:
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    assert key_of({"a": 1}) != key_of({"a": 2})


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file/below", Path("/proc/nothing")):
        with pytest.raises(UsageError, match="the folder for records and results cannot be used") as caught:
            Records(folder / "records.json").writable()
        assert caught.value.option == "out"
    assert (tmp_path / "file").read_text() == "mine"
    Records(tmp_path / "new/records.json").writable()
    assert list((tmp_path / "new").iterdir()) == []
