"""Language models write from Python what their programs of C write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import mccompile
from mccompile.base.errors import MccError, UnsupportedModel, WrongUse
from mccompile.toolchain.session import aligned_bytes

pytest.importorskip("tokenizers")

from tests.llm import models

_COMPILER = shutil.which("tcc") or "cc"
_DIMS = {"past": (0, 60), "tokens": (1, 4)}


def loaded(path: Path) -> mccompile.Network:
    return mccompile.load(path, target="generic", dims=_DIMS, cc=_COMPILER)


def test_a_text_goes_on_and_begins_again(tmp_path: Path) -> None:
    made, weights = models.llama(tmp_path / "tiny", "llama3", max_position_embeddings=128)
    net = loaded(tmp_path / "tiny")
    wanted = models.continued(made.encode("the time").ids, weights, 12)
    before = made.encode("x", add_special_tokens=False).ids
    pieces: list[str] = []
    first = net.generate("the time", most=12, told=pieces.append)
    assert first == "".join(pieces) == made.decode([*before, *wanted]).removeprefix("x").rstrip("\ufffd")
    assert (first.ended, first.tokens) == ("most", 12)
    net.reset()
    parts = net.generate("the time", most=5), net.generate(most=7)
    assert [part.tokens for part in parts] == [5, 7]
    net.reset()
    assert net.generate("the time", most=12) == first
    net.reset()
    assert "".join(net.generate("" if n else "the time", most=1) for n in range(12)) == first
    for stop in (first[5:8], ["not there", first[5:8]]):
        net.reset()
        ended = net.generate("the time", most=12, stop=stop)
        assert (ended, ended.ended) == (first[: first.index(first[5:8])], "stop")
    net.reset()
    assert net.generate("the time", most=12) == first
    stopped = net.generate("the time", most=12, told=lambda piece: False)
    assert (stopped.ended, stopped.tokens < 12) == ("caller", True)
    assert net.generate(most=1000).ended == "context"
    assert net.generate(most=70, keep=2).tokens == 70
    net.reset()
    chance = net.generate("a", most=9, temperature=1.5, top_k=90, seed=3)
    net.reset()
    assert net.generate("a", most=9, temperature=1.5, top_k=90, seed=3) == chance


def test_stop_strings_of_the_folder_count_where_none_are_given(tmp_path: Path) -> None:
    models.llama(tmp_path / "tiny", "llama3")
    text = str(loaded(tmp_path / "tiny").generate("the time", most=12))
    (tmp_path / "tiny" / "generation_config.json").write_text(json.dumps({"stop_strings": [text[5:8]]}))
    net = loaded(tmp_path / "tiny")
    for given, wanted in (({}, text[: text.index(text[5:8])]), ({"stop": []}, text), ({"stop": "none"}, text)):
        net.reset()
        assert net.generate("the time", most=12, **given) == wanted


def test_what_a_caller_raises_ends_the_text(tmp_path: Path) -> None:
    models.llama(tmp_path / "tiny", "llama3")
    net = loaded(tmp_path / "tiny")

    def told(piece: str) -> None:
        raise KeyError(piece)

    with pytest.raises(KeyError):
        net.generate("the time", told=told)
    with pytest.raises(WrongUse, match="the prompt is too long"):
        net.generate("x" * 9000)
    for wrong, why in (
        ({"temperature": -1}, "temperature cannot be -1"),
        ({"temperature": float("nan")}, "temperature cannot be nan"),
        ({"top_p": 1.5}, "it is a number from 0 to 1"),
        ({"top_k": 2.5}, "it is a whole number"),
        ({"seed": -1}, "seed cannot be -1"),
        ({"keep": -1}, "such as keep=4"),
        ({"stop": ""}, "stop cannot be ''"),
        ({"stop": ["a", 3]}, "such as stop="),
        ({"stop": 3}, "stop cannot be 3"),
        ({"stops": "a"}, "did you mean stop"),
        ({"most": 1 << 40}, "most cannot be"),
        ({"temprature": 1}, "did you mean temperature"),
        ({"prompt": b"once"}, "it is text"),
    ):
        with pytest.raises(WrongUse, match=why):
            net.generate(**{"prompt": "once", **wrong})
    with pytest.raises(WrongUse, match="not UTF-8"):
        net.generate("\ud800")
    with pytest.raises(WrongUse, match="no argument heat"):
        net.generate("a", heat=2)


def test_a_chat_has_the_template_of_the_model(tmp_path: Path) -> None:
    made, weights = models.llama(tmp_path / "tiny", "llama3", max_position_embeddings=128)
    with pytest.raises(WrongUse, match="no chat template"):
        loaded(tmp_path / "tiny").ask("why?")
    template = "{% for m in messages %}<s>{{ m.role }}:{{ m.content }}{% endfor %}"
    (tmp_path / "tiny" / "tokenizer_config.json").write_text(json.dumps({"chat_template": template + "<s>model:"}))
    with pytest.raises(UnsupportedModel, match="the template opens an answer with"):
        loaded(tmp_path / "tiny").ask("why?")
    assert loaded(tmp_path / "tiny").generate("why?", most=2).tokens == 2
    right = template + "{% if add_generation_prompt %}<s>assistant:{% endif %}"
    (tmp_path / "tiny" / "tokenizer_config.json").write_text(json.dumps({"chat_template": right}))
    tokens = made.encode("<s>system:be brief<s>user:why?<s>assistant:", add_special_tokens=False).ids
    before = made.encode("x", add_special_tokens=False).ids
    net = loaded(tmp_path / "tiny")
    answer = net.ask("why?", "be brief", most=6)
    assert answer == made.decode([*before, *models.continued(tokens, weights, 6)]).removeprefix("x").rstrip("\ufffd")
    with pytest.raises(WrongUse, match="a chat has begun"):
        net.ask("why?", "be brief")


def test_a_network_without_tokenizer_writes_nothing(tmp_path: Path) -> None:
    models.llama(tmp_path / "tiny", "llama3")
    (tmp_path / "tiny" / "tokenizer.json").unlink()
    with pytest.raises(MccError, match="there is no tokenizer"):
        loaded(tmp_path / "tiny").generate("a")


def test_weights_and_arena_lie_where_the_c_wants_them() -> None:
    """Wherever the allocator puts arrays."""
    assert {aligned_bytes(count).ctypes.data % 64 for count in range(1, 4000, 97)} == {0}
