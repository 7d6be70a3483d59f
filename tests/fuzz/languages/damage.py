"""Files of language models with something wrong, and how reading them ends: done, or refused with a reason."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.random import Generator

from mccompile.base.errors import MccError
from mccompile.frontend.load import read_proto
from mccompile.llm import chat
from mccompile.tokenizer import gguf, reading
from mccompile.tokenizer.library import printed
from mccompile.tokenizer.regex import NotUnderstood

NUMBERS = (-1, 0, 1, 3, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
VALUES = (None, True, -1, 0, 1, 2**31, 2**64, 0.5, 1e308, "", "nonsense", "\ud800", "(", [], {}, [[]], "x" * 5000)


def damaged(data: bytes, name: str, chance: Generator) -> bytes:
    """The same bytes with one to three things wrong."""
    for _ in range(int(chance.integers(1, 4))):
        if name.endswith(".json") and chance.random() < 0.7:
            data = _other_value(data, chance)
        else:
            data = _WAYS[int(chance.integers(len(_WAYS)))](bytearray(data), chance)
    return data


def _other_byte(data: bytearray, chance: Generator) -> bytes:
    if data:
        data[_place(data, chance)] = int(chance.integers(256))
    return bytes(data)


def _other_number(data: bytearray, chance: Generator) -> bytes:
    size = int(chance.choice([4, 8]))
    place = _place(data, chance) if data else 0
    number = NUMBERS[int(chance.integers(len(NUMBERS)))] % (1 << 8 * size)
    data[place : place + size] = number.to_bytes(size, "little")
    return bytes(data)


def _cut(data: bytearray, chance: Generator) -> bytes:
    return bytes(data[: int(chance.integers(len(data) + 1))])


def _twice(data: bytearray, chance: Generator) -> bytes:
    begin = _place(data, chance) if data else 0
    part = data[begin : begin + int(chance.integers(1, 60))]
    return bytes(data[:begin] + part + data[begin:])


def _place(data: bytearray, chance: Generator) -> int:
    """Mostly where a file says what is in it."""
    return int(chance.integers(min(len(data), int(chance.choice([64, 3000, 1 << 30])))))


_WAYS: tuple[Callable[[bytearray, Generator], bytes], ...] = (_other_byte, _other_number, _cut, _twice)


def _other_value(data: bytes, chance: Generator) -> bytes:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data
    places = list[tuple[Any, Any]]()
    _collect(value, places, chance)
    if places:
        holder, key = places[int(chance.integers(len(places)))]
        holder[key] = VALUES[int(chance.integers(len(VALUES)))]
    return json.dumps(value).encode()


def _collect(value: Any, places: list[tuple[Any, Any]], chance: Generator) -> None:
    """Where something stands; of long lists a few."""
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    for key in [keys[int(n)] for n in chance.integers(len(keys), size=8)] if len(keys) > 40 else keys:
        places.append((value, key))
        if isinstance(value[key], dict | list):
            _collect(value[key], places, chance)


def fault(path: Path, damaged: str = "") -> str:
    """What went wrong other than a refusal, of the network, the tokenizer and the template of a file or a folder, as
    far as they read the damaged file."""
    for read in _READERS.get(damaged, (read_proto, _tokenizer, _template)):
        try:
            read(path)
        except (MccError, NotUnderstood):
            continue
        except Exception as error:  # a traceback of any class is what is looked for
            frames = [f for f in traceback.extract_tb(error.__traceback__) if "mccompile" in f.filename]
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
            return f"{place} {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def _tokenizer(path: Path) -> None:
    printed(gguf.read(path)[0] if path.is_file() else reading.read(path), "tokenizer")


def _template(path: Path) -> None:
    template = chat.found(path)
    if template:
        chat.compiled(template)


_READERS = {
    "config.json": (read_proto,),
    "model.safetensors": (read_proto,),
    "tokenizer.json": (_tokenizer,),
    "tokenizer_config.json": (_tokenizer, _template),
    "chat_template.jinja": (_template,),
}
