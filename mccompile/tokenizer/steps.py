"""What tokenizer.json says to do with text in front of the model and behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from ..base.records import dataclass
from .description import SPLITS, Spacing, damaged, unsupported

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_PARTS = ("normalizers", "pretokenizers", "processors", "decoders")
JsonObject = Mapping[str, Any]


@dataclass
class Cut:
    """How text becomes words."""

    of_bytes: bool = False
    splits: list[str] = field(default_factory=list)
    spacing: Spacing = field(default_factory=Spacing)


def listed(told: JsonObject | None) -> Iterator[JsonObject]:
    """The steps of a part of the file."""
    if told is None:
        return
    if told["type"] != "Sequence":
        yield told
        return
    inside = next((told[name] for name in _PARTS if name in told), None)
    if inside is None:
        raise damaged("a sequence of steps has none")
    for each in inside:
        yield from listed(each)


def _refused(what: str, told: JsonObject) -> Exception:
    return unsupported(f"its {what} is {told['type']}", f"it says {str(dict(told))[:160]}")


def pre_tokenizer(told: JsonObject | None) -> Cut:
    cut = Cut()
    for number, each in enumerate(listed(told)):
        kind = each["type"]
        if cut.of_bytes:
            raise _refused("pre_tokenizer", each)
        if kind == "Split":
            cut.splits.append(_split(each))
        elif kind == "Digits":
            cut.splits.append(r"\p{N}" if each["individual_digits"] else r"\p{N}+")
        elif kind == "ByteLevel":
            cut.of_bytes = True
            if each.get("add_prefix_space", True):
                if number:
                    raise _refused("pre_tokenizer", each)
                cut.spacing = Spacing(" ", unless_there=True)
            if each.get("use_regex", True):
                cut.splits.append(GPT2)
        elif kind == "Metaspace" and number == 0:
            _metaspace(each, cut)
        else:
            raise _refused("pre_tokenizer", each)
    if len(cut.splits) > SPLITS:
        raise unsupported(
            "its pre_tokenizer has too many steps", f"{len(cut.splits)} splits, and {SPLITS} are what is known"
        )
    return cut


def _split(told: JsonObject) -> str:
    ((kind, text),) = told["pattern"].items()
    behavior = told["behavior"]
    if kind == "String" and behavior == "MergedWithPrevious" and len(text) == 1 and not told.get("invert"):
        one = re.escape(text)
        return f"[^{one}]*{one}|[^{one}]+"
    if behavior != "Isolated" or told.get("invert") or kind not in ("Regex", "String"):
        raise _refused("pre_tokenizer", told)
    return str(text) if kind == "Regex" else re.escape(text)


def _metaspace(told: JsonObject, cut: Cut) -> None:
    scheme = told.get("prepend_scheme", "always")
    space = told["replacement"]
    if told.get("split", True):
        cut.splits.append(f"{re.escape(space)}?[^{re.escape(space)}]+|{re.escape(space)}")
    prefix = "" if scheme == "never" else space
    cut.spacing = Spacing(prefix, bool(prefix), scheme == "first", space)


def normalizer(told: JsonObject | None, cut: Cut) -> tuple[bool, Spacing]:
    """Is it NFC, and what becomes of spaces?"""
    found, nfc = cut.spacing, False
    for each in listed(told):
        kind = each["type"]
        if kind == "NFC" and found == Spacing():
            nfc = True
        elif kind == "Prepend" and found == Spacing() and not nfc and " " not in each["prepend"]:
            found = Spacing(each["prepend"])
        elif kind == "Replace" and cut.spacing == Spacing() and not found.space and not nfc:
            if each["pattern"] != {"String": " "} or not each["content"] or " " in each["content"]:
                raise _refused("normalizer", each)
            found = replace(found, space=each["content"])
        else:
            raise _refused("normalizer", each)
    return nfc, found


def post_processor(told: JsonObject | None) -> tuple[list[int], list[int]]:
    """Tokens in front of a text and behind it."""
    before: list[int] = []
    behind: list[int] = []
    for each in listed(told):
        if each["type"] == "ByteLevel":
            continue
        if each["type"] != "TemplateProcessing" or before or behind:
            raise _refused("post_processor", each)
        place = before
        for piece in each["single"]:
            if "Sequence" in piece:
                place = behind
            else:
                place += each["special_tokens"][piece["SpecialToken"]["id"]]["ids"]
    return before, behind


def decoder(told: JsonObject | None, of_bytes: bool, space: str) -> bool:
    """Is a space in front left out?"""
    steps = list(listed(told))
    if of_bytes:
        if [each["type"] for each in steps] != ["ByteLevel"]:
            raise unsupported("its decoder is not that of bytes", f"it says {str(told)[:160]}")
        return False
    replaced = {"type": "Replace", "pattern": {"String": space}, "content": " "}
    wanted = [*([replaced] if space else []), {"type": "ByteFallback"}, {"type": "Fuse"}]
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    if steps not in (wanted, [*wanted, strip]):
        why = f"it says {str(told)[:160]}"
        raise unsupported("its decoder is not that of characters with bytes", why)
    return steps[-1] == strip
