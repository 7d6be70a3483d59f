"""What the table of options says of an option besides its name, type and default, which its field has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .records import dataclass

ENTRY = "entry"  # key of an entry in the metadata of its field
NO_FLAG = "none"
ALL = "*"  # stands for every name
Has = Callable[..., bool]  # is what is said of these names for the model that is asked about?


def of_keys(named: Mapping[str, Any], has: Has) -> dict[str, Any]:
    return {name: value for name, value in named.items() if has(name)}


def of_pairs(named: Mapping[str, str], has: Has) -> dict[str, str]:
    return {name: other for name, other in named.items() if has(name, other)}


def of_names(names: tuple[str, ...], has: Has) -> tuple[str, ...]:
    return tuple(name for name in names if name == ALL or has(name))


@dataclass(frozen=True)
class Entry:
    """What is to be known of an option besides its name, type and default, which its field has."""

    help: str
    group: str
    common: bool = False  # shown by --help; others by --help-all
    flag: str = ""  # on the command line; empty: the name of the field behind two dashes
    metavar: str | None = None
    values: tuple[str, ...] = ()  # all there are
    path: bool = False  # text that begins with the path of a file
    reads: str = ""  # the function of option_texts that makes the value of what is given; empty: it is that already
    # What of the value is for one of several models; none: it names no tensors or dimensions, and is for all of them.
    part: Callable[[Any, Has], Any] | None = None
    recorded: bool = True  # in report.json; not: new weights for code that is there do not depend on it
    draws: tuple[Any, ...] = ()  # by the fuzzer; empty: `values` or the other truth, but for the default
    share: float = 0.12  # how often the fuzzer draws one of these
    undrawn: str = ""  # why the fuzzer draws none

    def drawn(self, default: Any) -> tuple[Any, ...]:
        """Values that differ from the default; empty: nothing here says which there are."""
        others = self.values or ((not default,) if isinstance(default, bool) else ())
        return () if self.undrawn else self.draws or tuple(value for value in others if value != default)
