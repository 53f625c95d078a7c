"""Short names of layers for texts that people read. Answers and files contain the whole names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence


def short_names(names: Sequence[str]) -> list[str]:
    """Returns a short name for each operator: net/blocks/3/conv/depth/Relu6 becomes 3/depth.

    Of names that a converter joined with ';', only the first counts. Folders of more than half of the names
    are removed, and so are last words whose folder contains nothing else. Different names stay different.
    """
    paths = [[word for word in _first(name).split("/") if word] or [name] for name in names]
    sizes = Counter("/".join(words[:n]) for words in paths for n in range(1, len(words) + 1))
    for words in paths:
        while len(words) > 1 and sizes["/".join(words[:-1])] == 1:
            words.pop()
    folders = Counter(word for words in paths for word in set(words[:-1]))
    common = {word for word, times in folders.items() if 2 * times > len(names)}
    short = ["/".join([*(w for w in words[:-1] if w not in common), words[-1]]) for words in paths]
    for longer in ["/".join(words) for words in paths], names:
        times = Counter(short)
        short = [s if times[s] == 1 else whole for s, whole in zip(short, longer, strict=True)]
    return short


def _first(name: str) -> str:
    """Returns the first of several names that ';' joins. The rows of a moving window stay: "a;b/c [0-3]"
    becomes "a [0-3]".
    """
    first, _, others = name.partition(";")
    rows = re.search(r" [\[(].*", others)
    return first + rows[0] if rows else first
