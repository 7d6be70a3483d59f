"""BeamSearch gives the sequences that onnxruntime gives, and their scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from mccompile.base.errors import MccError
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.toolchain.run import Model
from tests.decoders import decoder, search
from tests.thorough import some

PAD = 1
IDS = np.array([[0, 3, 4], [1, 2, 7], [5, 6, 3]], np.int32)
KEPT = np.array([1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0], np.int32)
AT_FIRST = np.array([[0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1], [0, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0], [1] * 11], np.int32)


def model(most: int, beams: int, returned: int, more: dict[str, np.ndarray] | None = None, **form: Any) -> Any:
    counts = {"min_length": 0, "num_beams": beams, "num_return_sequences": returned}
    given = {name: np.array([count], np.int32) for name, count in counts.items()}
    given |= {"length_penalty": floats(1)} | (more or {})
    form = {"results": ("y", "scores"), "eos_token_id": 4, "pad_token_id": PAD} | form
    return search(**{"batch": 3, "given": 3, "most": most, "more": given, "op": "BeamSearch"} | form)


def floats(number: float) -> np.ndarray:
    return np.array([number], np.float32)


MASK = np.array([[0, 1, 1], [1, 1, 1], [1, 0, 1]], np.int32)
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "early": {"early_stopping": 1},
    "short": {"more": {"length_penalty": floats(-1.5)}},
    "scores": {
        "more": {
            "min_length": np.array([5], np.int32),
            "repetition_penalty": floats(1.7),
            "vocab_mask": KEPT,
            "length_penalty": floats(2.5),
        }
    },
    "at first": {
        "more": {"prefix_vocab_mask": AT_FIRST, "attention_mask": MASK},
        "init_decoder": decoder(4, layers=2),
        "decoder": decoder(3, layers=2),
    },
    "pairs": {"no_repeat_ngram_size": 2},
}


def same(folder: Path, made: Any, ids: np.ndarray) -> list[np.ndarray]:
    wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"ids": ids})
    compile_graph(load_proto(made), Options(), "search").write(folder / "out")
    found = [*Model.build(folder / "out").run({"ids": ids}).values()]
    np.testing.assert_array_equal(found[0], wanted[0])
    largest = np.abs(wanted[1], where=np.isfinite(wanted[1]), out=np.zeros_like(wanted[1])).max()
    np.testing.assert_allclose(found[1], wanted[1], 0, 3e-5 * largest)
    return found


@some(2, "form", FORMS)
def test_sequences(form: str, tmp_path: Path) -> None:
    found = same(tmp_path, model(9, 4, 3, **FORMS[form]), IDS)
    assert len({len(row) - int((row[::-1] != PAD).argmax()) for row in found[0].reshape(-1, 9)}) > 2  # lengths


@some(1, ("most", "beams", "returned"), [(4, 3, 1), (5, 2, 2), (9, 1, 1)])
def test_few(most: int, beams: int, returned: int, tmp_path: Path) -> None:
    assert same(tmp_path, model(most, beams, returned), IDS)[0].shape == (3, returned, most)


@pytest.mark.parametrize("early", [0, 1])
def test_sequences_stay_where_nothing_may_follow(early: int, tmp_path: Path) -> None:
    """Two words are left, each once: more are impossible, and their sums lower than all floats."""
    kept = np.array([0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0], np.int32)
    made = model(9, 3, 3, {"vocab_mask": kept}, no_repeat_ngram_size=1, early_stopping=early)
    tokens, _ = same(tmp_path, made, IDS)
    np.testing.assert_array_equal(tokens[:, :, :3], np.repeat(IDS[:, None], 3, axis=1))


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"model_type": 1}, "export encoder and decoder"),
        ({"returned": 4}, "num_return_sequences is 4, and there are 3 beams"),
        ({"eos_token_id": -1}, "it needs eos_token_id"),
        ({"results": ("y", "", "all")}, "scores of all tokens"),
        ({"more": {"logits_processor": np.array([1], np.int32)}}, "its logits_processor changes scores"),
        ({"beams": 0}, "num_beams is 0"),
    ],
)
def test_refusals(form: dict[str, Any], why: str) -> None:
    with pytest.raises(MccError, match=why):
        load_proto(model(**{"most": 9, "beams": 3, "returned": 2} | form))
