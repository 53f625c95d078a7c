"""Computes top-1 accuracy, confusion matrix, precision and recall, from predictions and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from buildtool.base.errors import UsageError, did_you_mean
from buildtool.graph.types import Graph, Tensor
from buildtool.schema.datasets import Accuracy, ClassFigures, Top1


def scores(graph: Graph, wanted: str) -> tuple[int | None, str]:
    """Returns the tensor index of the output whose largest value gives the class, and "". If it is not known
    which output that is, returns None and the reason.

    `wanted` is the name of an output ("": choose one). Raises UsageError if the network has no such output,
    or if it does not have a value for each class.
    """
    outputs = {graph.tensors[t].name: t for t in graph.outputs}
    if wanted:
        if wanted not in outputs:
            text = f"the network has no output '{wanted}'"
            raise UsageError(text, option="scores", hint=did_you_mean(wanted, outputs))
        if why := _find_mismatch(graph.tensors[outputs[wanted]]):
            raise UsageError(f"the output '{wanted}' {why}", option="scores")
        return outputs[wanted], ""
    fitting = [t for t in graph.outputs if not _find_mismatch(graph.tensors[t])]
    if len(fitting) == 1:
        return fitting[0], ""
    if fitting:
        names = ", ".join(f"'{graph.tensors[t].name}'" for t in fitting)
        return None, f"several outputs could have the classes ({names}): choose one with --scores"
    first = graph.tensors[graph.outputs[0]]
    return None, f"the output '{first.name}' {_find_mismatch(first)}"


def _find_mismatch(tensor: Tensor) -> str:
    """Returns why a tensor cannot have one value for each class; "" if it may."""
    if tensor.elements < 2:
        return "is a single value, not one for each class"
    if sum(n != 1 for n in tensor.shape) > 1:
        return f"has the shape {tensor.shape}, not a single row with a value for each class"
    return ""


def check_labels(labels: Sequence[int], classes: Sequence[str], tensor: Tensor, path: str) -> None:
    """Raises UsageError if the output `tensor` has too few values for the labels or for the names of
    classes.
    """
    if len(classes) > tensor.elements:
        text = f"there are {len(classes):,} classes, but the output '{tensor.name}' has {tensor.elements:,}"
        raise UsageError(text, path=path)
    wrong = next((label for label in labels if label >= tensor.elements), None)
    if wrong is not None:
        hint = "labels begin with 0" if wrong == tensor.elements else ""
        text = f"there is the label {wrong}, but the classes of '{tensor.name}' are 0 to"
        raise UsageError(f"{text} {tensor.elements - 1}", path=path, hint=hint)


def prediction(values: np.ndarray) -> int:
    """Returns the class with the largest value; the first one if several are equal."""
    return int(values.reshape(-1).argmax())


def accuracy(
    tensor: Tensor,
    labels: Sequence[int],
    classes: Sequence[str],
    reference: Sequence[int],
    firmware: Mapping[int, int],
) -> Accuracy:
    """Returns the accuracy of the reference's predictions and of the firmware's.

    `tensor` is the output that gives the class, and `classes` the names of the classes. `reference` has a
    prediction for each of the `labels`. `firmware` maps the position of an input to its prediction; it may
    lack some inputs.
    """
    is_complete = len(firmware) == len(labels)
    predictions = [firmware[i] for i in range(len(labels))] if is_complete else list(reference)
    pairs = Counter(zip(labels, predictions, strict=True))
    return {
        "output": tensor.name,
        "predictor": "firmware" if is_complete else "reference",
        "firmware": _count_top1([(labels[i], guess) for i, guess in firmware.items()]) if firmware else None,
        "reference": _count_top1(list(zip(labels, reference, strict=True))),
        "classes": _count_classes(pairs, classes),
        "confusion": [
            {"label": label, "predicted": guess, "inputs": n} for (label, guess), n in sorted(pairs.items())
        ],
    }


def _count_top1(pairs: Sequence[tuple[int, int]]) -> Top1:
    correct = sum(label == guess for label, guess in pairs)
    return {"inputs": len(pairs), "correct": correct, "top1": correct / len(pairs)}


def _count_classes(pairs: Counter[tuple[int, int]], names: Sequence[str]) -> list[ClassFigures]:
    """Returns the figures of every class that occurs as a label or as a prediction.

    `pairs` has the number of inputs for each pair (label, prediction), and `names` the names of the classes.
    """
    labels = Counter(label for label, _ in pairs.elements())
    predicted = Counter(guess for _, guess in pairs.elements())
    return [
        {
            "label": label,
            "name": names[label] if label < len(names) else str(label),
            "inputs": labels[label],
            "predicted": predicted[label],
            "correct": pairs[label, label],
            "precision": pairs[label, label] / predicted[label] if predicted[label] else None,
            "recall": pairs[label, label] / labels[label] if labels[label] else None,
        }
        for label in sorted(labels.keys() | predicted.keys())
    ]
