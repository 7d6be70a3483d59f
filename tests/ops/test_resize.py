"""Resize: what follows from scales and sizes is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'


def test_tables_of_positions_are_bounded() -> None:
    text = 'g (float[1,2] x) => (float[1,n] y) { y = Resize <mode = "linear"> (x, , s) }'
    model = parser.parse_model(HEAD + text)
    with pytest.raises(UnsupportedModel, match="axis 1 is resized to 20000000 elements"):
        load_proto(model, fixed={"s": np.array([1, 1e7], np.float32)})
