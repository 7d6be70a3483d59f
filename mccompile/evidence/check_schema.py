"""Checks the form of each certificate: `python check_schema.py FOLDER`. Needs Python 3.10 and nothing else.

A file of FOLDER is accepted if it is what its schema in FOLDER/schemas says. Schemas are JSON Schema of the keywords
below; a schema with others is refused. The programs for what a certificate claims may rely on its form.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
NOTES = ("$schema", "$defs", "title", "description", "additionalProperties", "items")  # or read with another keyword
SIMPLE: dict[str, Callable[[Any, Any], bool]] = {
    "type": lambda value, names: any(is_type(value, name) for name in [names] * isinstance(names, str) or names),
    "const": lambda value, one: bool(value == one),
    "enum": lambda value, some: value in some,
    "minimum": lambda value, least: not is_type(value, "number") or value >= least,
    "pattern": lambda value, pattern: not isinstance(value, str) or re.search(pattern, value) is not None,
    "required": lambda value, names: not isinstance(value, dict) or value.keys() >= {*names},
    "minItems": lambda value, count: not isinstance(value, list) or len(value) >= count,
    "maxItems": lambda value, count: not isinstance(value, list) or len(value) <= count,
    "minProperties": lambda value, count: not isinstance(value, dict) or len(value) >= count,
    "maxProperties": lambda value, count: not isinstance(value, dict) or len(value) <= count,
}


def is_type(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def check(value: Any, schema: dict[str, Any]) -> list[str]:
    """All problems."""
    try:
        return [*_differs(value, schema, schema, "")]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        return [f"the schema is malformed: {type(error).__name__}: {error}"]


def _differs(value: Any, schema: Any, whole: dict[str, Any], where: str) -> Iterator[str]:
    if isinstance(schema, bool):
        if not schema:
            yield f"{where or 'the file'} is more than there should be"
        return
    for word, wanted in schema.items():
        if word in SIMPLE:
            if not SIMPLE[word](value, wanted):
                yield f"{where or 'the file'} is {json.dumps(value)[:60]}, and its {word} {json.dumps(wanted)[:60]}"
        elif word == "$ref":
            yield from _differs(value, whole["$defs"][wanted.removeprefix("#/$defs/")], whole, where)
        elif word in ("anyOf", "oneOf"):
            fit = sum(not any(_differs(value, each, whole, where)) for each in wanted)
            if not fit or (word == "oneOf" and fit > 1):
                yield f"{where or 'the file'} is {json.dumps(value)[:60]}, which fits {fit} forms"
        elif word not in (*NOTES, "properties", "prefixItems"):
            raise ValueError(f"nothing is known of {word}")
    if isinstance(value, dict):
        named = schema.get("properties", {})
        for key, each in value.items():
            yield from _differs(each, named.get(key, schema.get("additionalProperties", True)), whole, f"{where}.{key}")
    elif isinstance(value, list):
        first = schema.get("prefixItems", [])
        for at, each in enumerate(value):
            inner = first[at] if at < len(first) else schema.get("items", True)
            yield from _differs(each, inner, whole, f"{where}.{at}")


def main(folder: Path) -> int:
    problems, names = [], []
    for path in sorted((folder / "schemas").glob("*.schema.json")):
        names.append(path.name.removesuffix(".schema.json"))
        if (folder / f"{names[-1]}.json").is_file():
            value, schema = (json.loads(p.read_text(encoding="utf-8")) for p in (folder / f"{names[-1]}.json", path))
            problems += [f"{names[-1]}.json: {problem}" for problem in check(value, schema)]
    for problem in problems[:20] or [f"{len(names)} forms: accepted"]:
        print("schema: " + problem)
    return int(bool(problems) or not names)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
