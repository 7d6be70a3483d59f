"""What tokenizer.json says is taken over or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mccompile.base.errors import BadFile, MccError, UnsupportedModel, WrongUse
from mccompile.tokenizer.library import library
from mccompile.tokenizer.reading import byte_characters


def small() -> dict[str, Any]:
    vocabulary = {letter: number for number, letter in enumerate([*byte_characters(), "th", "the"])}
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    model = {"type": "BPE", "vocab": vocabulary, "merges": ["t h", ["th", "e"]], "ignore_merges": False}
    return {"model": model, "pre_tokenizer": level, "decoder": {"type": "ByteLevel"}, "added_tokens": []}


def written(path: Path, told: Any) -> Path:
    path.write_text(json.dumps(told))
    return path


def test_a_small_one_is_compiled(tmp_path: Path) -> None:
    made = library(written(tmp_path / "tokenizer.json", small()))
    assert (made.report["tokens"], made.report["merges"]) == (258, 2)
    assert {"tokenizer.c", "tokenizer.h", "main.c", "Makefile", "runtime/mcc_tokens.h"} <= set(made.files)


_TOKEN = {"id": 258, "content": "<s>", "special": True, "normalized": False}
_LEVEL = {"type": "ByteLevel", "add_prefix_space": False}
_SPLIT = {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "(?<=a)b"}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": {"type": "Unigram"}}, "its model is Unigram"),
        ({"model": {"type": "BPE", "dropout": 0.1}}, "dropout is 0.1"),
        ({"normalizer": {"type": "NFKC"}}, "its normalizer is NFKC"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "its pre_tokenizer is Whitespace"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [_SPLIT, _LEVEL]}}, r"with '\(\?<=' at"),
        ({"pre_tokenizer": None}, "its vocabulary lacks bytes"),
        ({"decoder": {"type": "WordPiece"}}, "its decoder is not that of bytes"),
        ({"post_processor": {"type": "BertProcessing"}}, "its post_processor is BertProcessing"),
        ({"added_tokens": [{**_TOKEN, "rstrip": True}, {**_TOKEN, "id": 259, "content": " x"}]}, "added tokens meet"),
        ({"added_tokens": [{**_TOKEN, "normalized": True}], "normalizer": {"type": "NFC"}}, '"normalized" to false'),
        ({"truncation": {"max_length": 4}}, 'set "truncation" to null'),
    ],
)
def test_what_would_be_other_tokens_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=words) as refused:
        library(written(tmp_path / "tokenizer.json", {**small(), **change}))
    assert all(problem.where and problem.why and problem.fix for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("text", "more", "is_taken"),
    [
        ("    ", {}, True),
        ("|||EMAIL|||", {}, True),
        ("<|end|>", {}, False),  # a mark behind it makes one character of > and itself
        ("K:", {}, False),  # NFC makes a K of the sign of kelvins
        ("\u00e9:", {}, False),
        ("  ", {"single_word": True}, False),
    ],
)
def test_tokens_in_normalized_text_are_taken_where_nfc_moves_none(
    text: str, more: dict[str, Any], is_taken: bool, tmp_path: Path
) -> None:
    token = {**_TOKEN, "content": text, "normalized": True, **more}
    path = written(tmp_path / "tokenizer.json", {**small(), "normalizer": {"type": "NFC"}, "added_tokens": [token]})
    if is_taken:
        library(path)
    else:
        with pytest.raises(UnsupportedModel, match="is normalized"):
            library(path)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "tokenizer.json", small())
    whole = path.read_text()
    for end in range(0, len(whole), 97):
        path.write_text(whole[:end])
        with pytest.raises(BadFile, match=r"tokenizer\.json"):
            library(path)
    far = {**_TOKEN, "id": 1 << 23}
    spaces = {"type": "Metaspace", "replacement": ["a"], "prepend_scheme": "always", "split": False}
    level = {"type": "Sequence", "pretokenizers": [spaces, _LEVEL]}
    changes: list[dict[str, Any]] = [{"added_tokens": [far]}, {"added_tokens": [{**_TOKEN, "content": [1]}]}]
    changes += [{"pre_tokenizer": level}, {"pre_tokenizer": {"type": "Sequence"}}]
    for change in changes:
        with pytest.raises(BadFile, match="is damaged"):
            library(written(path, {**small(), **change}))
    for part in (None, [], {}, {"model": 3}, {"model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}}):
        with pytest.raises(MccError):
            library(written(path, part))
    with pytest.raises(BadFile, match="No such file"):
        library(tmp_path / "nothing")


@pytest.mark.parametrize("half", [rb"\ud800", b"\xed\xa0\x80"])
def test_half_a_character_is_refused(half: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    data = json.dumps({**small(), "added_tokens": [{**_TOKEN, "content": "<half>"}]}).encode()
    path.write_bytes(data.replace(b"<half>", rb"\ud83d\ude00"))
    library(path)
    path.write_bytes(data.replace(b"<half>", half))
    with pytest.raises(BadFile, match="surrogate"):
        library(path)


def test_names_in_c_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="did you mean --name x1st"):
        library(written(tmp_path / "tokenizer.json", small()), name="1st")
