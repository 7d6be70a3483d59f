"""What ends a text, as the files of a model say it: tokens, and strings in front of which it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import BadFile, Problem
from ..base.records import dataclass

STOP_STRINGS = "it is a text, or several, none of them empty, without characters of number 0 and halves of surrogates"
_GENERATION = "generation_config.json"


@dataclass(frozen=True)
class Stops:
    tokens: Sequence[int]
    strings: Sequence[str] = ()


def is_stop_string(text: object) -> bool:
    """Can a text end in front of it?"""
    return isinstance(text, str) and text != "" and not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)


def stops_of(folder: Path) -> Stops:
    """Those of a folder of Hugging Face, or one of an export to ONNX."""
    return Stops(sorted(set(_tokens(folder))), _strings(folder / _GENERATION))


def _tokens(folder: Path) -> list[int]:
    """As generation_config.json says it, or else config.json or genai_config.json."""
    for name in (_GENERATION, "config.json", "genai_config.json"):
        try:
            said = json.loads((folder / name).read_bytes())
            said = (said["model"] if name.startswith("genai") else said)["eos_token_id"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        found = said if isinstance(said, list) else [said]
        if found and all(type(each) is int and 0 <= each < 1 << 31 for each in found):
            return found
    return []


def _strings(path: Path) -> list[str]:
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    found = said.get("stop_strings") if isinstance(said, dict) else None
    texts = [] if found is None else found if isinstance(found, list) else [found]
    if all(map(is_stop_string, texts)):
        return list(dict.fromkeys(texts))
    why = f"{json.dumps(found):.60} is in the file, where {STOP_STRINGS}"
    raise BadFile(Problem("stop_strings cannot be read", str(path), why, "take stop_strings out of the file"))
