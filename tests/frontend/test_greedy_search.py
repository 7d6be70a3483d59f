"""GreedySearch chooses the tokens that it chooses in onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from mccompile.base.errors import MccError
from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.toolchain.run import Model
from tests.decoders import TOKENS, decoder, search
from tests.thorough import some

IDS = np.array([[0, 3, 4], [1, 2, 7]], np.int32)
KEPT = np.array([1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0], np.int32)
AT_FIRST = np.array([[0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1], [0, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0]], np.int32)


def built(most: int, **form: Any) -> Package:
    return compile_graph(load_proto(search(2, 3, most, **form)), Options(), "search")


def same_tokens(folder: Path, most: int, pad: int = 0, **form: Any) -> np.ndarray:
    """What is chosen; onnxruntime leaves open what lies behind where all sequences have ended."""
    form |= {"pad_token_id": pad}
    session = onnxruntime.InferenceSession(search(2, 3, most, **form).SerializeToString())
    (wanted,) = session.run(None, {"ids": IDS})
    built(most, **form).write(folder / "out")
    found = Model.build(folder / "out").run({"ids": IDS})["y"]
    open_ = np.flatnonzero((found != wanted).any(axis=0))
    ended = int(open_[0]) if open_.size else most
    assert np.all(found[:, ended:] == pad) and (ended == most or np.all(found[:, ended - 1] == pad))
    return found


@some(
    3,
    "form",
    [
        {},
        {"more": {"min_length": np.array([7], np.int32)}, "eos_token_id": 4},
        {"more": {"repetition_penalty": np.array([1.7], np.float32)}},
        {"more": {"vocab_mask": KEPT}},
        {"more": {"prefix_vocab_mask": AT_FIRST}},
        {"more": {"attention_mask": np.array([[0, 1, 1], [1, 1, 1]], np.int32)}},
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2},
        {"no_repeat_ngram_size": 3, "vocab_size": TOKENS},
        {"init_decoder": decoder(100, layers=2), "decoder": decoder(1, layers=2)},
    ],
    ids=["plain", "least", "penalty", "kept", "first", "mask", "once", "pairs", "triples", "init"],
)
def test_tokens(form: dict[str, Any], tmp_path: Path) -> None:
    same_tokens(tmp_path, 10, pad=1, **form)


@pytest.mark.parametrize("most", [4, 5])
def test_few_tokens(most: int, tmp_path: Path) -> None:
    assert same_tokens(tmp_path, most).shape == (2, most)


def test_sequences_that_have_ended_are_filled(tmp_path: Path) -> None:
    found = same_tokens(tmp_path, 12, eos_token_id=10)
    assert (found[:, -1] == 0).all() and (found[0] != 0).sum() != (found[1] != 0).sum()


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"model_type": 1}, "export encoder and decoder"),
        ({"vocab_size": 9}, "scores of 11 tokens, vocab_size is 9"),
        ({"given": "n"}, "--dim"),
        ({"most": 3}, "no room behind 3 tokens"),
        ({"custom": 1}, "attribute custom"),
    ],
)
def test_refusals(form: dict[str, Any], why: str) -> None:
    with pytest.raises(MccError, match=why):
        load_proto(search(2, **{"given": 3, "most": 9} | form))
