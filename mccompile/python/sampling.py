"""How `generate` and `ask` choose tokens and end: the arguments that they take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.near import meant
from ..llm.stops import STOP_STRINGS, is_stop_string

_LARGEST = (1 << 31) - 1
_KNOWN: Mapping[str, tuple[Any, float, str]] = {  # the number without one, the largest, and an example
    "most": (64, _LARGEST, "64"),
    "temperature": (0.0, 1e30, "0.8"),
    "top_k": (0, _LARGEST, "40"),
    "top_p": (0.0, 1, "0.9"),
    "min_p": (0.0, 1, "0.05"),
    "repetition_penalty": (0.0, 1e30, "1.1"),
    "seed": (0, (1 << 64) - 1, "1"),
    "keep": (None, _LARGEST, "4"),
}


def numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    """All numbers, of those that are given."""
    for name, value in given.items():
        if name not in _KNOWN:
            why = f"it takes {', '.join([*_KNOWN, 'stop'])}"
            raise WrongUse(
                Problem(
                    f"there is no argument {name}",
                    f"{name}=...",
                    why,
                    meant(name, [*_KNOWN, "stop"]) or f"leave out {name}",
                )
            )
        default, largest, example = _KNOWN[name]
        if value is None and default is None:
            continue
        is_whole = not isinstance(default, float)
        fits = hasattr(value, "__index__") if is_whole else isinstance(value, Real)
        if not fits or not 0 <= value <= largest:
            why = f"it is a {'whole ' if is_whole else ''}number from 0 to {largest}"
            raise WrongUse(Problem(f"{name} cannot be {value!r:.60}", f"{name}=...", why, f"such as {name}={example}"))
    return {name: given.get(name, default) for name, (default, _, _) in _KNOWN.items()}


def stop_strings(given: Any) -> list[bytes]:
    """In UTF-8: of one string, or several."""
    texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for text in texts:
        if not is_stop_string(text):
            raise WrongUse(Problem(f"stop cannot be {text!r:.60}", "stop=...", STOP_STRINGS, "such as stop=['###']"))
    return [text.encode() for text in texts]
