"""The tokenizer of a GGUF file, in its metadata: byte pair encoding by merges (gpt2), or by scores (llama)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.errors import BadFile, MccError, Problem
from ..importers.decoders import gguf_file
from . import reading, steps
from .description import Added, Spacing, Tokenizer, damaged, unsupported

_UNKNOWN, _CONTROL, _OWN, _BYTE = 2, 3, 4, 6  # of tokenizer.ggml.token_type
_ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_LLAMA3_NAMES = ("llama3", "llama-bpe")
_SPLITS = {  # by tokenizer.ggml.pre
    "gpt-2": (steps.GPT2,),
    "llama3": (_LLAMA3,),
    "llama-bpe": (_LLAMA3,),
    "qwen2": (_LLAMA3.replace("{1,3}", ""),),
    "smollm": (r"\p{N}", steps.GPT2),
}
_KEY = "tokenizer.ggml."
_SPACE = "\u2581"


def read(path: Path) -> tuple[Tokenizer, list[int]]:
    """The tokenizer, and the tokens that end a text."""
    try:
        said = {k.removeprefix(_KEY): v for k, v in gguf_file.read(path.read_bytes())[0].items() if k.startswith(_KEY)}
        return _tokenizer(said), [said[n] for n in _ENDS if type(said.get(n)) is int]
    except OSError as error:
        raise BadFile(Problem("the file cannot be read", str(path), str(error.strerror), "name another")) from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise reading.placed(path, damaged(f"it lacks a part of its tokenizer ({error})"[:200])) from None
    except MccError as error:
        raise reading.placed(path, error) from None


def _tokenizer(said: Mapping[str, Any]) -> Tokenizer:
    kind, texts = said.get("model"), said.get("tokens")
    if kind not in ("gpt2", "llama"):
        raise unsupported(f"its model is {str(kind)[:40]!r}", "gpt2 and llama are known", "take another model")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise damaged("it has no list of tokens")
    types = said.get("token_type") or [1] * len(texts)
    if len(types) != len(texts):
        raise damaged(f"{len(types)} types for {len(texts)} tokens")
    added = [
        Added(n, text, types[n] != _OWN, False)
        for n, text in enumerate(texts)
        if types[n] in (_UNKNOWN, _CONTROL, _OWN) and text
    ]
    before, behind = _around(said, kind == "llama" or said.get("pre") in _LLAMA3_NAMES, len(texts))
    numbers = {text: n for n, text in enumerate(texts)}
    if kind == "gpt2":
        return _by_merges(said, numbers, added, before, behind)
    return _by_scores(said, texts, types, added, before, behind)


def _around(said: Mapping[str, Any], default: bool, count: int) -> tuple[list[int], list[int]]:
    before = [said["bos_token_id"]] if said.get("add_bos_token", default) and "bos_token_id" in said else []
    behind = [said["eos_token_id"]] if said.get("add_eos_token", False) and "eos_token_id" in said else []
    if not all(type(each) is int and 0 <= each < count for each in (*before, *behind)):
        raise damaged("a token around a text is none")
    return before, behind


def _by_merges(
    said: Mapping[str, Any], numbers: Mapping[str, int], added: list[Added], before: list[int], behind: list[int]
) -> Tokenizer:
    pre = said.get("pre")
    if pre not in _SPLITS:
        why = f"tokenizer.ggml.pre is {str(pre)[:40]!r}; what is known: {', '.join(_SPLITS)}"
        raise unsupported("its words", why, "take the folder of Hugging Face of that model, which has tokenizer.json")
    texts, words, of_byte = reading.of_bytes(numbers)
    texts |= {each.token: each.text.encode() for each in added}
    merges = reading.merges_of(said["merges"], numbers)
    whole, nfc = pre in _LLAMA3_NAMES, pre == "qwen2"
    return Tokenizer(texts, words, merges, of_byte, True, whole, added, Spacing(), nfc, _SPLITS[pre], before, behind)


def _by_scores(
    said: Mapping[str, Any],
    texts: list[str],
    types: list[int],
    added: list[Added],
    before: list[int],
    behind: list[int],
) -> Tokenizer:
    """Of two neighbours those are joined whose whole has the highest score: a rank for each pair with a whole."""
    scores = said["scores"]
    if len(scores) != len(texts):
        raise damaged(f"{len(scores)} scores for {len(texts)} tokens")
    plain = {text: n for n, text in enumerate(texts) if types[n] not in (_UNKNOWN, _CONTROL, _OWN, _BYTE)}
    of_byte = {text: n for n, text in enumerate(texts) if types[n] == _BYTE}
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    if any(name not in of_byte for name in names):
        why = "characters that it does not have become unknown, which only tokens of bytes avoid"
        raise unsupported("its vocabulary lacks bytes", why)
    order = {score: rank for rank, score in enumerate(sorted({scores[n] for n in plain.values()}, reverse=True))}
    merges = {
        (plain[text[:at]], plain[text[at:]]): (order[scores[n]], n)
        for text, n in plain.items()
        for at in range(1, len(text))
        if text[:at] in plain and text[at:] in plain
    }
    prefix = _SPACE if said.get("add_space_prefix", True) else ""
    spacing = Spacing(prefix, False, False, _SPACE)
    encoded = {n: text.encode() for n, text in enumerate(texts)}
    bytes_ = [of_byte[name] for name in names]
    strips = bool(prefix)
    return Tokenizer(
        encoded, list(plain.values()), merges, bytes_, False, False, added, spacing, False, (), before, behind, strips
    )
