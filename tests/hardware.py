"""onnxruntime has kernels of some operators for some processors only."""

from __future__ import annotations

import onnxruntime
import pytest
from onnx import ModelProto, parser


def example(domain: str, text: str) -> ModelProto:
    """The model of an example in the registry of operators."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "{domain}" : 1]> {text}')


def session_here(model: ModelProto) -> onnxruntime.InferenceSession:
    """Skips the test where onnxruntime has nothing for this processor."""
    try:
        return onnxruntime.InferenceSession(model.SerializeToString())
    except Exception as error:  # its exceptions have no class in common
        if "not yet supported on this hardware platform" in str(error):
            pytest.skip(str(error))
        raise
