"""tokenizer.json, as the library `tokenizers` writes it, as a description; what would be another tokenizer is refused.

Invariant: a part of the file that changes tokens is either taken over or refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.errors import BadFile, MccError, Problem
from . import characters, steps
from .description import Added, Spacing, Tokenizer, damaged, unsupported

FILE = "tokenizer.json"
_LARGEST = 1e30  # of scores
_SPARSE = 1 << 16  # numbers that may lack tokens
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_NAME = f"name the folder that has {FILE}; tokenizer.save_pretrained(FOLDER) writes it"


def read(path: Path) -> Tokenizer:
    """Of a file, or of the folder that it is in."""
    path = path / FILE if path.is_dir() else path
    try:
        return _tokenizer(_parsed(path.read_bytes()))
    except OSError as error:
        raise BadFile(Problem("there is no tokenizer", str(path), error.strerror or str(error), _NAME)) from None
    except (ValueError, RecursionError):
        if path.suffix != ".json":
            raise BadFile(Problem(f"{path.name} is not a tokenizer", str(path), "it is not JSON", _NAME)) from None
        raise placed(path, damaged("it is not JSON")) from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise placed(path, damaged(f"it does not have the expected parts ({error})"[:200])) from None
    except MccError as error:
        raise placed(path, error) from None


def _parsed(data: bytes) -> Any:
    found = json.loads(data)
    if _SURROGATE.search(data):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise damaged("it has a half of a character (a surrogate) without the other half") from None
    return found


def placed(path: Path, error: MccError) -> MccError:
    return type(error)(*(Problem(p.what, p.where or str(path), p.why, p.fix) for p in error.problems))


def _tokenizer(told: Mapping[str, Any]) -> Tokenizer:
    for name in ("truncation", "padding"):
        if told.get(name):
            raise unsupported(
                f"it has {name}", "tokens of long or short texts would be others", f'set "{name}" to null in it'
            )
    cut = steps.pre_tokenizer(told.get("pre_tokenizer"))
    before, behind = steps.post_processor(told.get("post_processor"))
    nfc, spacing = steps.normalizer(told.get("normalizer"), cut)
    model = told["model"]
    kind = model.get("type", "BPE" if "merges" in model else "?")
    if kind == "BPE":
        vocabulary, made = _by_merges(model, cut.of_bytes, spacing)
    elif kind == "Unigram" and not cut.of_bytes:
        vocabulary, made = _by_scores(model, spacing)
    else:
        fix = "take a model whose tokenizer is byte pair encoding (BPE), or unigram over characters"
        raise unsupported(f"its model is {kind}", "it splits words in a way that is not supported", fix)
    strips = steps.decoder(told.get("decoder"), cut.of_bytes, spacing.space)
    added = _added(told.get("added_tokens") or [], vocabulary, nfc, spacing != Spacing(), cut.of_bytes)
    texts = {**made.texts, **{each.token: each.text.encode() for each in added}}
    if max(texts) > 2 * len(texts) + _SPARSE:
        raise damaged(f"it has {len(texts)} tokens, and numbers of them up to {max(texts)}")
    said, around = (spacing.prefix, spacing.space, *cut.splits), before + behind
    if not all(isinstance(text, str) for text in said) or not all(_is_number(n) and n in texts for n in around):
        raise damaged("what stands for spaces, or cuts words, or stands around a text is none")
    made = replace(made, texts=texts, added=added, spacing=spacing, nfc=nfc, splits=tuple(cut.splits))
    made = replace(made, before=before, behind=behind, strips=strips)
    more = max(texts) + 1 - len(made.scores)  # added tokens, which are in no word
    return replace(made, scores=[*made.scores, *[*made.scores[:1]] * more])


def _by_merges(model: Mapping[str, Any], of_bytes_: bool, spacing: Spacing) -> tuple[dict[str, int], Tokenizer]:
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise unsupported(f"its model has {name}", f"{name} is {model[name]!r}")
    vocabulary: dict[str, int] = model["vocab"]
    if not vocabulary or not all(map(_is_number, vocabulary.values())):
        raise damaged("its vocabulary has no numbers")
    if len(set(vocabulary.values())) != len(vocabulary):
        raise damaged("two tokens have one number")
    texts, words, bytes_ = of_bytes(vocabulary) if of_bytes_ else _of_characters(vocabulary, model, spacing.space)
    merges = merges_of(model["merges"], vocabulary)
    return vocabulary, Tokenizer(texts, words, merges, bytes_, of_bytes_, bool(model.get("ignore_merges")))


def _by_scores(model: Mapping[str, Any], spacing: Spacing) -> tuple[dict[str, int], Tokenizer]:
    pieces = [(text, score) for text, score in model["vocab"]]
    if not all(isinstance(t, str) and type(s) in (int, float) and abs(s) < _LARGEST for t, s in pieces):
        raise damaged("its vocabulary has no scores")
    vocabulary, unknown = {text: n for n, (text, _) in enumerate(pieces)}, model.get("unk_id")
    if not isinstance(unknown, int) or not 0 <= unknown < len(pieces):
        raise unsupported("it has no token for what is unknown", f"unk_id is {unknown!r}")
    bytes_: list[int] = []
    if model.get("byte_fallback"):
        _, _, bytes_ = _of_characters(vocabulary, model, spacing.space)
    words = [token for text, token in vocabulary.items() if text]
    texts, scores = {n: text.encode() for n, (text, _) in enumerate(pieces)}, [float(score) for _, score in pieces]
    return vocabulary, Tokenizer(texts, words, {}, bytes_, False, False, scores=scores, unknown=unknown)


def _is_number(found: object) -> bool:
    return type(found) is int and 0 <= found < 1 << 24


def merges_of(told: list[Any], vocabulary: Mapping[str, int]) -> dict[tuple[int, int], tuple[int, int]]:
    found = {}
    for rank, merge in enumerate(told):
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        found[vocabulary[left], vocabulary[right]] = rank, vocabulary[left + right]
    return found


def byte_characters() -> dict[str, int]:
    """The character that stands for each byte in vocabularies of bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + number): byte for number, byte in enumerate(others)}


def of_bytes(vocabulary: Mapping[str, int]) -> tuple[dict[int, bytes], list[int], list[int]]:
    letters = byte_characters()
    missing = [byte for letter, byte in letters.items() if letter not in vocabulary]
    if missing:
        why = f"byte 0x{missing[0]:02X} is not a token, so text that has it would lose it"
        raise unsupported("its vocabulary lacks bytes", why)
    words = {text: token for text, token in vocabulary.items() if all(letter in letters for letter in text)}
    texts = {token: text.encode() for text, token in vocabulary.items()}
    texts |= {token: bytes(letters[letter] for letter in text) for text, token in words.items()}
    by_byte = {byte: vocabulary[letter] for letter, byte in letters.items()}
    return texts, list(words.values()), [by_byte[byte] for byte in range(256)]


def _of_characters(
    vocabulary: Mapping[str, int], model: Mapping[str, Any], space: str
) -> tuple[dict[int, bytes], list[int], list[int]]:
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    if not model.get("byte_fallback") or any(name not in vocabulary for name in names):
        why = "characters that it does not have become unknown, which only tokens of bytes (byte_fallback) avoid"
        raise unsupported("its vocabulary lacks bytes", why)
    if space and space not in vocabulary:
        raise unsupported("its vocabulary has no space", f"{space!r}, which stands for a space, is not a token")
    texts = {token: text.encode() for text, token in vocabulary.items()}
    return texts, list(vocabulary.values()), [vocabulary[name] for name in names]


def _added(told: list[Any], vocabulary: Mapping[str, int], nfc: bool, spaced: bool, of_bytes: bool) -> list[Added]:
    found = []
    letters = byte_characters()
    for each in told:
        flags = [bool(each.get(name)) for name in ("special", "normalized", "lstrip", "rstrip", "single_word")]
        one = Added(each["id"], each["content"], *flags)
        if (
            not isinstance(one.text, str)
            or not one.text
            or not _is_number(one.token)
            or vocabulary.get(one.text, one.token) != one.token
        ):
            raise damaged(f"the added token {one.text!r} has no text, or not the number that the vocabulary says")
        stays = not spaced and (not nfc or (characters.stays_in_nfc(one.text) and not one.alone))
        if one.normalized and not stays:
            why, fix = "it is looked for in text that was changed", 'set its "normalized" to false in tokenizer.json'
            raise unsupported(f"its token {one.text!r} is normalized", why, fix)
        if of_bytes and not one.text.isascii() and all(letter in letters for letter in one.text):
            raise unsupported(f"its token {one.text!r} is bytes", "its letters are those that stand for bytes")
        found.append(one)
    if any(one.right for one in found) and any(one.text[0].isspace() for one in found):
        why = "one of its tokens takes the spaces behind it, and another one begins with a space"
        raise unsupported("its added tokens meet", why)
    return sorted(found, key=lambda one: one.normalized)
