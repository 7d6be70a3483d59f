"""Names as they are shown: short, told apart, and the whole name beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LONGEST = 44  # characters of a label
_ENDS = re.compile(
    r"(?:/last|/integers|/joined|_(?:dequant|quant|prequant|quantize|dequantize)\d*|_(?:De)?[qQ]uantizeLinear\w*|_quantized\w*"
    r"|_output_0|:0)$"
)
_EMPTY = ("", "/")
_SCRATCH = "scratch_"  # what names of workspaces begin with


def common_start(names: Iterable[str]) -> str:
    """The folders that all names begin with: `model/` of `model/conv1/Relu` and `model/dense`."""
    paths = [name.removeprefix(_SCRATCH).split("/")[:-1] for name in names if "/" in name]
    if len(paths) < 2:
        return ""
    start = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        start.append(parts[0])
    return "".join(f"{part}/" for part in start)


def label(name: str, start: str = "") -> str:
    """A name of a few words: the first of those that a fused layer has, without what quantizing added."""
    first = name.removeprefix(_SCRATCH).split(";")[0]
    while (ended := _ENDS.sub("", first)) not in (*_EMPTY, first):
        first = ended
    if start and first.startswith(start) and len(first) > len(start):
        first = first[len(start) :]
    first = first.strip("/") or name
    if len(first) <= LONGEST:
        return first
    tail = first[-LONGEST + 1 :]
    cut = tail.find("/")
    return "…" + (tail[cut + 1 :] if 0 <= cut < LONGEST // 2 else tail)


def labels(names: Sequence[str]) -> list[str]:
    """A label for each; names that differ have labels that do."""
    start = common_start(dict.fromkeys(names))
    found: list[str] = []
    owner: dict[str, str] = {}
    for name in names:
        short, count = label(name, start), 2
        base = short
        while owner.setdefault(short, name) != name:
            short, count = f"{base} ({count})", count + 1
        found.append(short)
    return found
