"""Folders of language models as Hugging Face's libraries save them: config.json and weights in safetensors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx import ModelProto

from .api import Importer, Reading, Source
from .decoders import safetensors
from .decoders.config import Config, damaged, errors_named, unsupported
from .decoders.families import FAMILIES
from .decoders.family import Family, described
from .decoders.weights import Weight

_WITH_TEXT = ("gemma3", "llava", "mistral3")  # that read images beside text, by a decoder of a known family
_INDEX, _WHOLE = "model.safetensors.index.json", "model.safetensors"


class HuggingFace(Importer):
    what = "a folder of a language model of Hugging Face"
    extra = ""
    needs = ()
    has_sizes = True

    def opens(self, source: Source) -> bool:
        return source.path.is_dir() and (source.path / "config.json").is_file() and _has_weights(source.path)

    def read(self, source: Source, reading: Reading) -> ModelProto:
        with errors_named(source.path):
            return _read(source.path, reading)


def _has_weights(folder: Path) -> bool:
    return any(folder.glob("*.safetensors")) or (folder / _INDEX).is_file() or any(folder.glob("pytorch_model*.bin"))


def _read(folder: Path, reading: Reading) -> ModelProto:
    values = safetensors.parsed((folder / "config.json").read_bytes(), "config.json")
    config, tensors = Config(values), _tensors(folder)
    if config.values.get("model_type") in _WITH_TEXT and config.has("text_config"):
        whole = {name: value for name, value in values.items() if name == "tie_word_embeddings" and value is not None}
        config, tensors = Config({**config.part("text_config").values, **whole}), _of_text(tensors)
    family = _family(config)
    if config.has("quantization_config"):
        way = str(config.part("quantization_config").values.get("quant_method"))[:40]
        raise unsupported(f"its weights were quantized by {way}", "take the float weights, or a GGUF file")
    return described(family, config, tensors, folder.resolve().name or "model", reading.dims)


def _family(config: Config) -> Family:
    kind = config.text("model_type")
    for family in FAMILIES:
        if kind in family.types and family.applies(config):
            return family
    known = ", ".join(sorted({kind for family in FAMILIES for kind in family.types}))
    raise unsupported(f"model_type is {kind[:60]!r}; what is known: {known}")


def _of_text(tensors: dict[str, Weight]) -> dict[str, Weight]:
    """Those of the decoder, by the names that they have where it is alone."""
    found: dict[str, Weight] = {}
    for name, weight in tensors.items():
        own = name.removeprefix("language_model.").replace("model.language_model.", "model.", 1)
        if own != name or name.startswith("lm_head."):
            found[own] = replace(weight, name=own)
    return found


def _tensors(folder: Path) -> dict[str, Weight]:
    if (folder / _INDEX).is_file():
        index: Any = safetensors.parsed((folder / _INDEX).read_bytes(), _INDEX).get("weight_map")
        if not isinstance(index, dict) or not all(isinstance(name, str) for name in index.values()):
            raise damaged(f"{_INDEX} has no weight_map")
        files = sorted({Path(name).name for name in index.values()})  # of this folder
    else:
        files = sorted(path.name for path in folder.glob("*.safetensors"))
        if _WHOLE in files:
            files = [_WHOLE]
    if not files:
        fix = "save it anew: model.save_pretrained(FOLDER) writes model.safetensors"
        raise unsupported("its weights are pickled (pytorch_model.bin), which is not read", fix)
    found: dict[str, Weight] = {}
    for name in files:
        for tensor, weight in safetensors.tensors(folder / name).items():
            if tensor in found:
                raise damaged(f"tensor {tensor[:80]!r} lies in two files")
            found[tensor] = weight
    return found
