"""The values that an option can have, where they are known: for completion in a shell, and for suggestions.

Invariant: what is listed here is read from where it is decided, and is accepted as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click


def _targets() -> Iterable[str]:
    from ..targets.api import names

    return names()


def _layouts() -> Iterable[str]:
    from ..emit.layouts import layouts

    return layouts()


def _wrappers() -> Iterable[str]:
    from ..emit.wrappers.registry import LANGUAGES

    return LANGUAGES


def _planners() -> Iterable[str]:
    from ..memory.planners import PLANNERS

    return PLANNERS


def _passes() -> Iterable[str]:
    from ..pipeline import GRAPH_PASSES, PROGRAM_PASSES

    return [*(each.name for each in GRAPH_PASSES), *(each.name for each in PROGRAM_PASSES)]


def _budgets() -> Iterable[str]:
    from ..option_texts import BUDGETS

    return BUDGETS


_KNOWN: dict[str, Callable[[], Iterable[str]]] = {
    "--target": _targets,
    "--package": _layouts,
    "--wrapper": _wrappers,
    "--planner": _planners,
    "--without": _passes,
    "--print-after": _passes,
    "--passes": _passes,
    "--budget": _budgets,
}


def values_of(option: click.Parameter) -> list[str]:
    """The values, or none where anything can be written."""
    flag = option.opts[0]
    if isinstance(option.type, click.Choice):
        return [str(each) for each in option.type.choices]
    if flag in _KNOWN:
        return list(_KNOWN[flag]())
    words = str(option.metavar or "").split("|")
    return words if len(words) > 1 and all(word.isalnum() and word.islower() for word in words) else []


def complete(ctx: click.Context, option: click.Parameter, incomplete: str) -> list[Any]:
    """For shells: behind a comma of `--target a,b` another one begins."""
    from click.shell_completion import CompletionItem

    done, comma, begun = incomplete.rpartition(",")
    equals = "=" if option.opts[0] == "--budget" else ""
    return [CompletionItem(f"{done}{comma}{each}{equals}") for each in values_of(option) if each.startswith(begun)]


def is_known(option: click.Parameter) -> bool:
    """Are there values to complete? Asks for none of them."""
    return isinstance(option, click.Option) and (option.opts[0] in _KNOWN or bool(values_of(option)))
