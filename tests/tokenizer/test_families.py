"""Compiled tokenizers give the tokens and texts that `tokenizers` gives."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.thorough import some

from .built import EXPRESSIONS, Built, of_bytes, of_characters, of_scores, texts

pytest.importorskip("tokenizers")


@some(3, "family", [*EXPRESSIONS, "llama2", "gemma", "mistral"])
def test_tokens_and_texts_are_those_of_tokenizers(family: str) -> None:
    made = of_bytes(family) if family in EXPRESSIONS else of_characters(family)
    built = Built(made)
    for text in texts(5, 1500):
        wanted = made.encode(text).ids
        assert built.encode(text.encode()) == wanted, text
        assert built.encode(text.encode(), whole=0) == made.encode(text, add_special_tokens=False).ids, text
        assert built.decode(wanted) == made.decode(wanted), text


@pytest.mark.parametrize("family", ["llama3", "mistral"])
def test_added_tokens_take_spaces_and_stand_alone_as_they_are_told(family: str) -> None:
    from tokenizers import AddedToken

    made = of_bytes(family) if family in EXPRESSIONS else of_characters(family)
    left, right = AddedToken("<|l|>", lstrip=True, normalized=False), AddedToken("<|r|>", rstrip=True, normalized=False)
    alone = AddedToken("on\ud55c", single_word=True, lstrip=True, normalized=False)
    made.add_special_tokens([left, right])
    made.add_tokens([alone, AddedToken("<|r|>x", normalized=False)])
    built, chance = Built(made), random.Random(3)
    letters = " \n\u3000\xa0\x1c\u180ea\u00e9_1\u24b6\u200d\u0301!\u00bd\u2167x"
    parts = ["<|l|>", "<|r|>", "on\ud55c", "<s>", "  ", *letters]
    for _ in range(3000):
        text = "".join(chance.choice(parts) for _ in range(chance.randint(1, 8)))
        assert built.encode(text.encode()) == made.encode(text).ids, text


def test_tokens_of_spaces_are_found_where_text_is_normalized() -> None:
    """As the tokenizer of GPT-NeoX has them, and Pythia, Mamba, MPT and OLMo with it."""
    built, made, chance = Built(of_bytes("neox")), of_bytes("neox"), random.Random(4)
    parts = [*" \u2000\u0301\u0338\u0327ae=<|\n", "  ", "   ", "e\u0301", "\u212b", "\u1112\u1161", "<|tool|>"]
    for _ in range(3000):
        text = "".join(chance.choice(parts) for _ in range(chance.randint(1, 9)))
        assert built.encode(text.encode()) == made.encode(text).ids, text


@pytest.mark.parametrize("family", ["llama2", "mistral"])
def test_what_goes_on_with_a_text_has_no_space_in_front(family: str) -> None:
    made = of_characters(family)
    built = Built(made)
    for text in ("time", "the time", "\u65e5"):
        alone = made.encode(text, add_special_tokens=False).ids
        assert built.encode(f" {text}".encode(), whole=2) == alone != built.encode(text.encode(), whole=2)


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_words_are_cut_as_is_likeliest(byte_fallback: bool) -> None:
    made = of_scores(byte_fallback)
    built = Built(made)
    for text in texts(6, 1500):
        wanted = made.encode(text).ids
        assert built.encode(text.encode()) == wanted, text
        assert built.decode(wanted) == made.decode(wanted), text
    assert {tuple(built.encode(b"the time", words=words)) for words in range(60)} <= {
        (-2,),
        tuple(made.encode("the time").ids),
    }


def test_marks_are_ordered_as_the_library_knows_them() -> None:
    made, marks = of_bytes("qwen2"), "\u0301\u0327\u08cb\u1dfc\u0897\U0001e08f\U00011938"
    built, chance = Built(made), random.Random(4)
    for _ in range(500):
        text = "e" + "".join(chance.choice(marks) for _ in range(4))
        assert built.encode(text.encode()) == made.encode(text).ids, text


@pytest.fixture(scope="module")
def gpt2() -> Iterator[Built]:
    yield Built(of_bytes("gpt2"))


def test_tokens_that_are_no_text_are_decoded_as_python_does(gpt2: Built) -> None:
    made = of_bytes("gpt2")
    for number in range(300):
        tokens = [(number * 7919 + place * 104729) % 256 for place in range(12)]
        assert gpt2.decode(tokens) == made.decode(tokens)


def test_memory_that_is_too_small_is_told_and_not_written_behind(gpt2: Built) -> None:
    text = b"the time is short, and the words are long"
    tokens = gpt2.encode(text)
    for room in range(len(tokens)):
        assert gpt2.encode(text, room=room) == [-1]
    assert gpt2.encode(text, room=len(tokens)) == tokens
    assert {tuple(gpt2.encode(text, words=words)) for words in range(80)} <= {(-2,), tuple(tokens)}
    assert gpt2.encode(text, words=3) == [-2]


@some(2, "data", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"])
def test_what_is_no_utf8_is_refused(gpt2: Built, data: bytes) -> None:
    assert gpt2.encode(data) == [-3]


def test_many_texts_in_one_call_have_the_tokens_of_each(gpt2: Built) -> None:
    given = [b"once upon", b"", "\u00e9<|end|> it's".encode(), b"\n\n 12"]
    alone = [(tokens, gpt2.decode(tokens)) for tokens in map(gpt2.encode, given)]
    assert gpt2.many(given) == alone and len(alone[0][0]) > 1
