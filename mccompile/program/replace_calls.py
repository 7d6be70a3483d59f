"""replace_calls: the walk of passes that judge each call by itself, in the bodies of loops and branches first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .ir import Call, Item, bodies


def replace_calls(body: list[Item], replacement: Callable[[Call], Sequence[Item]]) -> None:
    """In place: every call becomes the items that `replacement` returns for it, the call itself where it stays."""
    items = list[Item]()
    for item in body:
        for inner in bodies(item):
            replace_calls(inner, replacement)
        items += replacement(item) if isinstance(item, Call) else [item]
    body[:] = items
