"""The page of a folder of evidence: for people, printable, without a script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..emit.render import render_html
from .check_memory import calls_in
from .coverage import total
from .ranges import inexact

_PAGE = Path(__file__).parent / "page.html.j2"


def page(
    about: Mapping[str, Any],
    memory: Mapping[str, Any],
    trace: Mapping[str, Any],
    bill: Mapping[str, Any],
    stack: Mapping[str, Any],
    time: Mapping[str, Any],
    ranges: Mapping[str, Any],
    coverage: Mapping[str, Any],
    requirements: Mapping[str, Any],
) -> str:
    buffers = [b for b in memory["buffers"] if b["life"]]
    tools = [package for package in bill["packages"] if package.get("versionInfo")]
    context = {"about": about, "memory": memory, "buffers": buffers, "bill": bill, "tools": tools, "trace": trace}
    exact = sum(node["exact"] is True for step in ranges["steps"] for node in step["nodes"])
    context |= {"stack": stack, "time": time, "ranges": ranges, "inexact": inexact(ranges)}
    context |= {
        "requirements": requirements,
        "coverage": coverage,
        "covered": {} if "not_measured" in coverage else total(coverage),
    }
    bounds = stack.get("bounds", {})
    context["unseen"] = sorted({name for bound in bounds.values() for name in bound["without"]})
    context["unbounded"] = [name for name, bound in bounds.items() if bound["bytes"] is None]
    return render_html(_PAGE, {**context, "exact": exact, "calls": [*calls_in(memory["program"])]})
