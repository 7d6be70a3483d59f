"""Writes mccompile/frontend/onnxruntime.toml from the schemas of the installed onnxruntime:
`python -m tests.frontend.onnxruntime_forms`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mccompile.frontend.onnxruntime_forms as forms
from mccompile.frontend import composed, searches
from mccompile.frontend.composed_body import CONTRIB

TOP = 1 << 30  # operands of an operator that takes any number


def written() -> str:
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    known = {name for domain, name in {*composed.names(), *searches.NAMES} if domain == CONTRIB}
    schemas = {s.name: s for s in get_all_operator_schema() if s.domain == CONTRIB and s.name in known}
    head = (
        f"# com.microsoft as onnxruntime {onnxruntime.__version__} has it: python -m tests.frontend.onnxruntime_forms\n"
    )
    return head + "".join(_table(schemas[name]) for name in sorted(schemas))


def _table(schema: Any) -> str:
    needed = [n for n, formal in enumerate(schema.inputs) if str(formal.option).endswith("Single")]
    inputs, outputs = (
        f"[{least}, {most if most < TOP else TOP}]"
        for least, most in ((schema.min_input, schema.max_input), (schema.min_output, schema.max_output))
    )
    lines = [f"\n[{schema.name}]", f"operands = {inputs}", f"needed = {needed}", f"results = {outputs}"]
    for name, attribute in sorted(schema.attributes.items()):
        kind = str(attribute.type).rpartition(".")[2]
        lines.append(f'attributes.{name} = "{kind}{forms.REQUIRED if attribute.required else ""}"')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(forms.FILE).write_text(written(), encoding="utf-8")
