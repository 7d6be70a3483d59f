"""Labels are short, and tell names apart that differ."""

from __future__ import annotations

import pytest

from mccompile.emit.studio.short_names import LONGEST, label, labels


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("relu", "relu"),
        ("model/activation/Relu;model/bn/FusedBatchNormV3;model/conv2d/Conv2D_dequant", "model/activation/Relu"),
        ("scratch_model/activation/Relu/last", "model/activation/Relu"),
        ("conv1/Conv_output_0_QuantizeLinear_Output", "conv1/Conv"),
        ("/", "/"),
        ("_dequant", "_dequant"),
        ("a/b" * 20 + "/block_3/conv_2/Relu", "…ba/ba/ba/ba/ba/b/block_3/conv_2/Relu"),
        ("x" * 60, "…" + "x" * (LONGEST - 1)),
    ],
)
def test_a_label_is_the_telling_end_of_a_name(name: str, wanted: str) -> None:
    found = label(name)
    assert len(found) <= LONGEST and (found == wanted or (wanted[0] == "…" and name.endswith(found[1:])))


def test_what_all_names_begin_with_is_left_out() -> None:
    assert labels(["net/a/Relu", "net/a/Conv", "net/b"]) == ["a/Relu", "a/Conv", "b"]


def test_other_names_have_other_labels() -> None:
    names = ["x/Relu;a", "x/Relu;b", "x/Relu;a"]
    assert labels(names) == ["Relu", "Relu (2)", "Relu"]
