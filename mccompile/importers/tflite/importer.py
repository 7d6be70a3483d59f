"""Files of TensorFlow Lite as an importer."""

from __future__ import annotations

from onnx import ModelProto

from ..api import Importer, Reading, Source
from .convert import is_tflite, to_onnx


class TFLite(Importer):
    what = "a TensorFlow Lite model"
    extra = "tflite"
    needs = ("tflite",)
    suffixes = (".tflite",)
    has_signatures = True
    has_sizes = True

    def opens(self, source: Source) -> bool:
        return is_tflite(source.data)

    def read(self, source: Source, reading: Reading) -> ModelProto:
        return to_onnx(source.data, source.name, reading)
