"""Layer names short enough for a column: what tells no layers apart is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def short_names(names: Sequence[str]) -> list[str]:
    """One name an operator: net/blocks/3/conv/depth/Relu6 becomes 3/depth.

    Of names that a converter joined with ';' the first counts. Folders that more than half of the
    names lie in go, and so do last words as long as their folder holds nothing else; but no two names
    become one.
    """
    found = [name.partition(";")[0].split("/") for name in names]
    held = Counter("/".join(words[:n]) for words in found for n in range(1, len(words) + 1))
    for words in found:
        while len(words) > 1 and held["/".join(words[:-1])] == 1:
            words.pop()
    inner = Counter(word for words in found for word in set(words[:-1]))
    common = {word for word, times in inner.items() if 2 * times > len(names)}
    short = ["/".join([*(w for w in words[:-1] if w not in common), words[-1]]) for words in found]
    times = Counter(short)
    return [s if times[s] == 1 else "/".join(words) for s, words in zip(short, found, strict=True)]
