"""The chat template of a model as pieces of text around what is said, which C puts together.

Invariant: what the pieces make is what the template makes, tried on many conversations; a template of which that is not
true is refused.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ..base.errors import Problem, UnsupportedModel
from ..base.records import dataclass
from ..importers.decoders import gguf_file
from .jinja import Message, Refused, Render, renderer
from .pieces import DATE_FORMAT, Chat, Trims, has_marks, parts

_KEY = "tokenizer.ggml."
_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")
_SAID = [
    "",
    "yes",
    "Why so?",
    "two\nlines",
    "a <b> & \"c\" 'd' `e`",
    "{{ x }} {% y %}",
    "über 한국 🙂",
    "1 + 1 = 2",
    "a  b\t c",
    "a\r\nb\rc\n\n\nd",
    "much to say, " * 200 + "so",
]
_PADS = (" \n", "\t \n", "\n", "\n\n ", " ", "\t", "\r\n", "\u3000")
_ROUNDS = 90
_MOST_PAIRS = 400
_DAY = datetime(2024, 7, 4, 15, 6, 9)
_LONGEST = 4000  # bytes of a piece: what every C compiler takes as a string


@dataclass(frozen=True)
class Template:
    text: str
    tokens: Mapping[str, str]


def found(path: Path) -> Template | None:
    """The template of a folder or a GGUF file."""
    if not path.is_dir():
        said = gguf_file.read(path.read_bytes())[0]
        listed = said.get(f"{_KEY}tokens")
        texts: list[Any] = listed if isinstance(listed, list) else []
        numbers = {f"{name}_token": said.get(f"{_KEY}{name}_token_id") for name in ("bos", "eos", "unknown", "padding")}
        names = {name: texts[n] for name, n in numbers.items() if type(n) is int and 0 <= n < len(texts)}
        template = said.get("tokenizer.chat_template")
        return Template(template, {"bos_token": "", "eos_token": "", **names}) if isinstance(template, str) else None
    told = _parsed(path / "tokenizer_config.json")
    template = told.get("chat_template")
    if isinstance(template, list):
        named = {each.get("name"): each.get("template") for each in template if isinstance(each, dict)}
        template = named.get("default")
    if (path / "chat_template.jinja").is_file():
        template = (path / "chat_template.jinja").read_text(encoding="utf-8", errors="replace")
    if not isinstance(template, str):
        return None
    tokens = {}
    for name in _TOKENS:
        value = told.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            tokens[name] = value
    return Template(template, tokens)


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def compiled(template: Template) -> Chat:
    """Without system messages where one changes more than a text in one place. Raises
    UnsupportedModel."""
    try:
        render, words, sought = renderer(template.text, template.tokens)
        try:
            return _tried(render, words, sought, has_system=True)
        except Refused:
            return _tried(render, words, sought, has_system=False)
    except Refused as error:
        fix = "use --chat none, and write prompts as the template has them"
        raise UnsupportedModel(
            Problem("a chat template that cannot be compiled", "", str(error) or "it says no", fix)
        ) from None


def conversation(system: str | None, said: Sequence[str]) -> list[Message]:
    made: list[Message] = [{"role": "system", "content": system}] if system is not None else []
    made += [{"role": "assistant" if number % 2 else "user", "content": each} for number, each in enumerate(said)]
    return made


def _tried(render: Render, words: Sequence[str], sought: Sequence[str], has_system: bool) -> Chat:
    chat = _pieces(render, has_system)
    chat = replace(chat, trims=_trims(render, chat))
    if has_system:
        chat = replace(chat, skips=_differs(render, chat, "", ["yes"]))
        commands = [word for word in words if _is_command(render, chat, word)]
        inner = [word for word in commands if not any(other != word and other in word for other in commands)]
        chat = replace(chat, words=tuple(inner))
    asked: list[tuple[str | None, list[str]]] = [(None, [""]), (None, ["yes", "so", ""])]
    asked += [("yes", [""])] if has_system else []
    chat = replace(chat, needs=any(_differs(render, chat, *each) for each in asked))
    for word in words:
        if any(_differs(render, chat, None, [said]) for said in _holding(word)):
            raise Refused(f"how it formats a question depends on {word[:60]!r} in it")
    _compare_pairs(render, chat, sought)
    _compare(render, chat)
    return chat


def _differs(render: Render, chat: Chat, system: str | None, said: Sequence[str]) -> bool:
    return render(conversation(system, said)) != chat.text(system, said)


def _holding(word: str) -> tuple[str, ...]:
    return word, f"yes {word} no"


def _compare_pairs(render: Render, chat: Chat, sought: Sequence[str]) -> None:
    """Messages that begin with one word that is looked for, and end with another."""
    pairs = [(first, last) for first in sought for last in sought]
    for first, last in random.Random(1).sample(pairs, min(len(pairs), _MOST_PAIRS)):
        both = f"{first} yes {last}"
        asked: list[tuple[str | None, list[str]]] = [(None, [both, "so", "yes"]), (None, ["yes", "so", both])]
        asked += [(both, ["yes"])] if chat.system and not any(word in both for word in chat.words) else []
        if any(_differs(render, chat, *each) for each in asked):
            raise Refused(f"what it makes of a message depends on {first[:60]!r} and {last[:60]!r} in it")


def _is_command(render: Render, chat: Chat, word: str) -> bool:
    """Does a system message that contains this word change more than its own place?"""
    return any(_differs(render, chat, system, ["yes"]) for system in _holding(word))


def _pieces(render: Render, has_system: bool) -> Chat:
    names = [f"zq{number}Xw{number}v" for number in range(6)]
    begin, shown, again, asked = _cut(render, None, names[:3])
    if asked.startswith(shown):
        answer, opened = "", asked[len(shown) :]
    elif shown.startswith(asked) and not shown[len(asked) :].strip():
        answer, opened = shown[len(asked) :], ""
    else:
        raise Refused(f"the template opens an answer with {asked[-60:]!r}, but later with {shown[-60:]!r}")
    front, between, _ = _cut(render, names[3], names[:1]) if has_system else ("", "", "")
    chat = Chat(begin, asked, again, (front, between) if has_system else None, answer, opened=opened)
    for part, is_date in (each for piece in chat.pieces for each in parts(piece)):
        if not DATE_FORMAT.fullmatch(part) if is_date else has_marks(part):
            raise Refused(f"it changes the text of a date, or has it in a form that is not known: {part[:60]!r}")
    if max(len(each.encode()) for each in chat.pieces) > _LONGEST:
        raise Refused(f"it has a text of more than {_LONGEST} bytes around a message")
    return chat


def _trims(render: Render, chat: Chat) -> Trims:
    padded, other, found = " \n zq7Xw7v\n  ", "zq8Xw8v", Trims()
    places: dict[str, tuple[str | None, list[str]]] = {"first": (None, [padded])}
    places["later"] = None, [other, other, padded]
    if chat.system:
        places |= {"told": (other, [padded]), "system": (padded, [other])}
    for place, (system, said) in places.items():
        wanted = render(conversation(system, said))
        ways = (replace(found, **{place: how}) for how in range(4))
        right = next((way for way in ways if replace(chat, trims=way).text(system, said) == wanted), None)
        if right is None:
            raise Refused(f"it changes spaces around what is said: {wanted[-80:]!r}")
        found = right
    return found


def _cut(render: Render, system: str | None, said: Sequence[str]) -> list[str]:
    """What stands around what is said."""
    text, made = render(conversation(system, said)), list[str]()
    for each in ([] if system is None else [system]) + list(said):
        if text.count(each) != 1:
            raise Refused(f"what is said stands {text.count(each)} times in the text")
        front, _, text = text.partition(each)
        made.append(front)
    return [*made, text]


def _padded(text: str, chance: random.Random) -> str:
    return chance.choice(_PADS) + text + chance.choice(_PADS) if chance.random() < 0.4 else text


def _compare(render: Render, chat: Chat) -> None:
    chance = random.Random(1)
    for number in range(_ROUNDS):
        said = [chance.choice(_SAID) for _ in range(1 + 2 * (number % 6))]
        said[::2] = [_padded(each, chance) for each in said[::2]]
        system = _padded(chance.choice(_SAID), chance) if chat.system and chance.random() < 0.5 else None
        if any(word in (system or "") for word in chat.words) or (chat.needs and not all(s.strip() for s in said[::2])):
            continue
        wanted, made = render(conversation(system, said), _DAY.strftime), chat.text(system, said, _DAY.strftime)
        if wanted != made:
            at = next((n for n, (a, b) in enumerate(zip(wanted, made, strict=False)) if a != b), len(made))
            why = "what it puts around a message depends on more than role and place"
            raise Refused(f"{why}: {wanted[max(0, at - 20) : at + 20]!r} in a text of {len(said)} messages")
