"""The fuzzer of language models finds what is wrong, and a few of its subjects are right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from mccompile.frontend.load import read_proto
from mccompile.importers.decoders import safetensors
from mccompile.importers.decoders.family import LLAMA_NAMES
from tests.fuzz.languages import damage, decoders, families
from tests.importers.decoders.files import LLAMA, SIZES, folder, named
from tests.importers.decoders.reference import logits, random_weights
from tests.thorough import some
from tests.tokenizer.built import Built

COMPILER = shutil.which("tcc") or "cc"


@pytest.mark.parametrize("seed", [1, 2])
def test_random_decoders_are_right(seed: int, tmp_path: Path) -> None:
    chance = np.random.default_rng(seed)
    decoder = decoders.drawn(chance, tmp_path)
    chosen = {**decoders.options(chance, COMPILER), "target": "generic", "cc": COMPILER}
    assert not decoders.differs(decoder, chosen, chance)


@some(1, "way", ["optimum", "genai", "experts", "integers"])
def test_exports_to_onnx_are_right(way: str, tmp_path: Path) -> None:
    for seed in range(30):
        chance = np.random.default_rng(seed)
        sizes = {"groups": 2, "heads": 4, "head": 6, "layers": 2, "vocabulary": 30}
        decoder = decoders._export(chance, tmp_path, sizes)
        mixed = "integers" if "'bits': 4" in decoder.text else "experts"
        if way == (mixed if "0.router" in decoder.weights else decoder.text.partition(" ")[0]):
            break
    else:
        raise AssertionError(way)
    chosen = {"dims": {"past": (0, 20), "tokens": (1, 4)}, "target": "generic", "cc": COMPILER}
    assert not decoders.differs(decoder, chosen, chance)


@pytest.mark.parametrize("form", families.DRAWN)
def test_each_form_is_what_the_reference_is_told(form: Callable[..., families.Form], tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    sizes = {"groups": 2, "heads": 4, "head": 6, "layers": 2, "vocabulary": 30, "width": 20, "hidden": 26}
    config, tensors, weights, how = form(chance, sizes)
    model = read_proto(folder(tmp_path / "model", config, tensors))
    tokens = chance.integers(0, 30, 10)
    caches = {entry.name: np.zeros((1, sizes["groups"], 0, 6), np.float32) for entry in model.graph.input[1:]}
    found = ReferenceEvaluator(model).run(["logits"], {"input_ids": tokens[None], **caches})[0]
    wanted = logits(tokens, weights, 2, 4, sizes["groups"], **how)[-1]
    np.testing.assert_allclose(found.reshape(-1), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", decoders.ELEMENTS)
def test_files_of_each_type_are_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "ELEMENTS", [name])
    seed = next(seed for seed in range(20) if np.random.default_rng(seed).random() < 0.4)  # which draws the type
    decoder = decoders._gguf(np.random.default_rng(seed), tmp_path, {"layers": 1, "vocabulary": 8})
    assert name in decoder.text
    read_proto(decoder.path)


def test_a_wrong_weight_is_seen(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    decoder = decoders.drawn(chance, tmp_path)
    chosen = {"target": "generic", "cc": COMPILER, "dims": {"past": (0, 20), "tokens": (1, 4)}}
    decoder.weights["0.o"] = decoder.weights["0.o"] * np.float32(1.01)
    assert "differ by" in decoders.differs(decoder, chosen, chance)


def test_a_traceback_is_a_fault_and_a_refusal_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = random_weights(SIZES, np.random.default_rng(3))
    path = folder(tmp_path / "llama", LLAMA, named(weights, LLAMA_NAMES))
    assert not damage.fault(path)
    (path / "config.json").write_text("{")
    assert not damage.fault(path)
    monkeypatch.setattr(safetensors, "parsed", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in damage.fault(path)


def test_files_are_damaged_as_the_seed_says() -> None:
    data = b'{"a": [1, 2, {"b": "c"}]}'
    made = [damage.damaged(data, "config.json", np.random.default_rng(seed)) for seed in range(30)]
    assert made == [damage.damaged(data, "config.json", np.random.default_rng(seed)) for seed in range(30)]
    assert len(set(made)) > 20 and sum(each != data for each in made) > 25


@pytest.mark.thorough
def test_a_text_over_the_end_of_its_context_is_right_and_another_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers")
    from . import shifts

    assert not shifts.differs(np.random.default_rng(4), tmp_path / "tiny", COMPILER)
    monkeypatch.setattr(shifts.Text, "shift", lambda text: bool(text.tokens) and text.tokens.pop(0) >= 0)
    assert "got and wanted" in shifts.differs(np.random.default_rng(4), tmp_path / "other", COMPILER)


def test_a_tokenizer_is_right_on_odd_texts_and_another_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers")
    from . import __main__ as fuzzer

    seed = (1, fuzzer.FAMILIES.index("llama2"))
    monkeypatch.setattr(fuzzer, "STRINGS", 200)
    assert not fuzzer.some_strings(seed)
    made, built = fuzzer._tokenizer("llama2")
    monkeypatch.setattr(fuzzer, "_tokenizer", lambda family: (made, _Without(built)))
    assert "llama2" in fuzzer.some_strings(seed)


class _Without:
    """A tokenizer that forgets the last token of one text."""

    def __init__(self, built: Built) -> None:
        self.built = built

    def many(self, texts: list[bytes]) -> list[tuple[list[int], str]]:
        tokens, text = (found := self.built.many(texts))[-1]
        return [*found[:-1], (tokens[:-1], text)]
