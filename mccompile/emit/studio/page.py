"""Puts the page together: what it is told as JSON, and beside it style and scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..render import render_html

_FOLDER = Path(__file__).parent
SCRIPTS = (
    "base.js",
    "figures.js",
    "memory.js",
    "timeline.js",
    "layers.js",
    "plans.js",
    "detail.js",
    "answers.js",
    "main.js",
)


def studio_page(builds: Sequence[Mapping[str, Any]], more: Mapping[str, Any] | None = None) -> str:
    """The page of builds as `view` gives them. `more`: `pairs`, the steps of each further build that do the work of
    those of the first one, and `since`, what changed."""
    told = {"builds": list(builds), **(more or {})}
    data = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    names = ", ".join(build["title"] for build in builds)
    context = {
        "title": names if len(names) < 90 else f"{len(builds)} builds",
        "style": _text("studio.css"),
        "data": data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),
        "script": "\n".join(_text(name) for name in SCRIPTS),
    }
    return render_html(_FOLDER / "page.html.j2", context)


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
