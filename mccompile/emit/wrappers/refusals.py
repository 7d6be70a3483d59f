"""What a language cannot hold."""

from __future__ import annotations

from ...base.errors import Problem, UnsupportedModel


def refuse(language: str, model: str, *reasons: tuple[object, str, str]) -> None:
    """Raises for the first of the reasons that holds: whether it does, why that is in the way, and a fix."""
    for holds, why, fix in reasons:
        if holds:
            raise UnsupportedModel(Problem(f"there is no wrapper in {language} for this model", model, why, fix))
