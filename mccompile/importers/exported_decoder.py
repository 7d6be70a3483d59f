"""Folders of language models that were exported to ONNX: those of optimum, which have the network beside config.json,
and those of the builder of onnxruntime-genai, beside genai_config.json.

Invariant: which file is read does not depend on what else lies in the folder than these names.
"""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto, load_external_data_for_model

from ..base.errors import BadFile, Problem, UnsupportedModel
from . import ranges, states
from .api import Importer, Reading, Source
from .decoders import safetensors
from .decoders.as_onnx import PAST, TOKENS, most_sizes
from .decoders.caches import pairs
from .decoders.config import Config, errors_named
from .decoders.exported import as_decoder, open_inputs
from .decoders.family import check_positions

_CONFIG, _GENAI = "config.json", "genai_config.json"
_NETWORKS = ("model.onnx", "decoder_with_past_model.onnx", "decoder_model_merged.onnx", "decoder_model.onnx")
_FOLDERS = (".", "onnx")
_CONTEXTS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "max_seq_len", "seq_length")


class ExportedDecoder(Importer):
    what = "a folder of a language model exported to ONNX"
    extra = ""
    needs = ()
    has_sizes = True

    def opens(self, source: Source) -> bool:
        told = any((source.path / name).is_file() for name in (_CONFIG, _GENAI))
        return told and bool(_networks(source.path) or (source.path / _GENAI).is_file())

    def read(self, source: Source, reading: Reading) -> ModelProto:
        with errors_named(source.path):
            return _read(source.path, reading)


def _networks(folder: Path) -> list[Path]:
    return [path for part in _FOLDERS for name in _NETWORKS if (path := folder / part / name).is_file()]


def _read(folder: Path, reading: Reading) -> ModelProto:
    if (folder / _GENAI).is_file():
        told = Config(safetensors.parsed((folder / _GENAI).read_bytes(), _GENAI)).part("model")
        name = told.part("decoder").text("filename", _NETWORKS[0])
        network, context = folder / Path(name).name, told.count("context_length", 2048)
    else:
        network = _networks(folder)[0]
        context = _context(Config(safetensors.parsed((folder / _CONFIG).read_bytes(), _CONFIG)))
    model = as_decoder(_whole(network), network.name)
    model.graph.name = folder.resolve().name or "model"
    return _sized(model, context, reading)


def alone(model: ModelProto, path: Path, reading: Reading) -> ModelProto:
    """A decoder with its caches as states, if the file is one, and if nobody says of its own inputs what they are."""
    said = reading.shapes or reading.prepend or reading.has_states or not reading.dims.keys() <= {PAST, TOKENS}
    if said or states.declared(model) or not pairs(model.graph, open_inputs(model.graph)):
        return model
    made = ModelProto.FromString(model.SerializeToString())
    try:
        made = as_decoder(made, path.name)
    except UnsupportedModel:  # as any network
        return model
    with errors_named(path):
        beside = path.with_name(_CONFIG)
        told = Config(safetensors.parsed(beside.read_bytes(), _CONFIG)) if beside.is_file() else Config({})
        return _sized(made, _context(told), reading)


def _sized(model: ModelProto, context: int, reading: Reading) -> ModelProto:
    is_free = bool(model.graph.input[0].type.tensor_type.shape.dim[1].dim_param)  # may a run take several tokens?
    sizes = most_sizes(context) if is_free else {PAST: most_sizes(context)[PAST]}
    ranges.declare(model, sizes)
    check_positions(context, reading.dims if is_free else {**reading.dims, TOKENS: (1, 1)})
    return model


def _context(config: Config) -> int:
    return next((config.count(name) for name in _CONTEXTS if config.has(name)), 2048)


def _whole(path: Path) -> ModelProto:
    """With the data that lies in other files."""
    try:
        model: ModelProto = ModelProto.FromString(path.read_bytes())
        load_external_data_for_model(model, str(path.parent))
    except Exception as error:  # protobuf and onnx raise what they like
        raise BadFile(Problem(f"{path.name} cannot be read", "", str(error), "export the model again")) from None
    return model
