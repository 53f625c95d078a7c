"""The search for a split: what is trained, kept and recorded, with accuracies from a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buildtool.split import backend, search, structure, training
from buildtool.split.data import Data
from buildtool.split.records import Records
from buildtool.split.settings import Settings, SplitSettings
from buildtool.split.types import Block, Choice, Fusion

DATA = Data(
    np.zeros((40, 2, 2, 1), np.uint8),
    np.arange(40) % 2,
    np.zeros((10, 2, 2, 1), np.uint8),
    np.arange(10) % 2,
    ("a", "b"),
)
BLOCKS = tuple(Block(index, f"block{index + 1}", (), 8, largest) for index, largest in enumerate((8, 4, 1)))


@dataclass
class Model:
    """A network that consists only of its choice."""

    choice: str
    input_shape = (None, 2, 2, 1)
    output_shape = (None, 2)


@dataclass
class Lab:
    """A replacement for training: accuracies by choice come from a table, in per cent."""

    folder: Path
    table: dict[str, float]
    trained: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    missed: Any = field(default=lambda _: "")
    figures: Any = field(default=lambda _: {})

    def train(self, model, data, settings, path, progress):
        progress("epoch 1")
        self.trained.append(f"{model.choice} x{settings.epochs}")
        return training.Trained(self.table[model.choice] / 100, 1.0, settings.epochs)

    def twice(self):
        """The factors of the trained networks, all trained for two epochs."""
        assert all(one.endswith(",slice x2") for one in self.trained)
        return [one.removesuffix(",slice x2") for one in self.trained]

    def run(self, *factors, blocks=BLOCKS, **options):
        settings: dict[str, Any] = {"settings": Settings(fine_epochs=2), "compares": False, **options}
        wanted = SplitSettings("", self.folder, "", factors=factors or (2, 4, 6, 8), **settings)
        base, prices, records = (Model("1-1-1,slice"), self, Records(self.folder / "records.json"))
        work: Any = search.Work(wanted, base, blocks, DATA, prices, records, self.said.append)
        return search.search(work, "slice")


TABLE = {"1-1-1,slice": 90.0} | {
    f"{first}-{second}-1,slice": 90.0 - loss - more
    for first, loss in ((1, 0.0), (2, 0.1), (4, 0.4), (6, 0.6), (8, 0.2))
    for second, more in ((1, 0.0), (2, 0.5), (4, 0.6))
}


class NoKeras:
    """The part of Keras that the search calls."""

    class backend:
        @staticmethod
        def backend():
            return "none"

        @staticmethod
        def clear_session():
            pass


@pytest.fixture
def lab(tmp_path, monkeypatch):
    laboratory = Lab(tmp_path, dict(TABLE))
    monkeypatch.setattr(backend, "prepare", NoKeras)
    monkeypatch.setattr(training, "train", laboratory.train)
    monkeypatch.setattr(backend, "digest", lambda model: model.choice)
    monkeypatch.setattr(
        training, "accuracy", lambda model, x, y, settings: laboratory.table[model.choice] / 100
    )
    monkeypatch.setattr(backend, "load", lambda path: Model(path.read_text()))

    def save(model, path):
        path.parent.mkdir(exist_ok=True)
        path.write_text(model.choice)

    monkeypatch.setattr(backend, "save", save)
    monkeypatch.setattr(structure, "build", lambda model, blocks, choice, *, weights: Model(choice.key()))
    return laboratory


def test_a_block_is_split_until_the_accuracy_has_dropped_by_more_than_the_threshold(lab):
    result = lab.run()
    # 6 loses 0.6 points, so it is the last one, and 8 is never tried
    assert lab.twice() == ["1-1-1", "2-1-1", "4-1-1", "6-1-1", "4-1-1", "4-2-1", "4-4-1"]
    assert [step.kept for step in result.steps] == [4, 2, 1]
    assert [round(one.drop, 6) for one in result.steps[0].tried] == [0.1, 0.4, 0.6]
    assert [one.is_kept for one in result.steps[1].tried] == [True, False]
    assert result.steps[2].baseline is None
    assert result.steps[2].why == "it allows factors up to 1"
    assert result.chosen.choice == Choice((4, 2, 1))
    assert result.drop == pytest.approx(0.9)


def test_each_network_is_trained_on_from_the_one_kept_before(lab):
    result = lab.run()
    records = Records(lab.folder / "records.json")
    first, second = result.steps[0], result.steps[1]
    assert second.baseline is not None
    before = records.get(second.baseline.key)
    assert before is not None
    assert before["before"] == first.tried[1].candidate.key
    assert all(records.get(one.candidate.key)["before"] == result.original.key for one in first.tried)


def test_a_second_run_trains_only_what_is_new(lab):
    first = lab.run(2, 4)
    lab.trained.clear()
    again = lab.run(2, 4)
    assert lab.trained == []
    assert again == first
    lab.run(2, 4, 6)
    assert lab.trained == ["6-1-1,slice x2"]
    lab.trained.clear()
    first.chosen.network.unlink()
    assert lab.run(2, 4).chosen == first.chosen
    assert lab.trained == ["4-2-1,slice x2"]
    lab.trained.clear()
    lab.run(2, 4, settings=Settings(fine_epochs=3))
    assert len(lab.trained) == 6


def test_what_cannot_meet_the_goals_is_not_trained(lab):
    """Only splitting the first block by 4 or more, and the second one by 4, meets the goals."""
    lab.table["4-4-1,slice"] = 89.5
    lab.missed = lambda choice: "" if choice.factors[0] >= 4 and choice.factors[1] == 4 else "RAM: too much"
    result = lab.run()
    assert lab.twice() == ["1-1-1", "4-1-1", "6-1-1", "4-1-1", "4-4-1"]
    refused = [one for step in result.steps for one in step.tried if one.candidate is None]
    assert [(one.factor, one.why) for one in refused] == [(2, "RAM: too much")] * 2
    assert result.chosen.choice.text == "4-4-1"
    assert result.misses == ""


def test_where_the_last_network_misses_the_goals_another_one_that_meets_them_is_chosen(lab):
    lab.missed = lambda choice: "" if choice.text == "2-1-1" else "flash: too much"
    assert lab.run().chosen.choice.text == "2-1-1"
    lab.missed = lambda _: "flash: too much"
    result = lab.run()
    assert result.chosen.choice.is_whole
    assert result.misses == "flash: too much"


def test_others_are_trained_as_long_as_the_chosen_one(lab):
    lab.table |= {"4-1-1,slice": 89.6, "2-2-2,slice,naive": 70.0, "2-2-2,slice,shared3": 80.0}
    blocks = tuple(Block(one.index, one.name, (), 8, 4) for one in BLOCKS)
    lab.table |= {"4-2-2,slice": 89.0, "4-2-4,slice": 80.0, "4-1-2,slice": 89.6}
    result = lab.run(2, 4, blocks=blocks, compares=True)
    assert result.chosen.choice.text == "4-2-2"
    assert lab.trained[-4:] == [
        "1-1-1,slice x6",
        "4-1-2,slice x6",  # the block with the largest drop has the factor before
        "2-2-2,slice,naive x6",
        "2-2-2,slice,shared3 x6",
    ]
    assert set(result.others) == {"original", "second", "naive", "shared"}
    assert result.others["naive"].choice.fusion is Fusion.NAIVE
