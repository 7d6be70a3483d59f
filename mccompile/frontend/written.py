"""ONNX models that commands write for other programs.

Invariant: what is written can be read back and passed the checker of ONNX, unless that does not know an operator of
the file that it is made of; so nobody finds a broken file later.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from onnx import ModelProto, checker

from ..base.errors import BadFile, MccError, Problem, UnsupportedModel
from .load import load_proto

_UNKNOWN = ("No Op registered for", "is deprecated in domain_version")
_EncodeError: type[Exception] = import_module("google.protobuf.message").EncodeError


def checked_bytes(proto: ModelProto, folder: Path, source: ModelProto | None = None) -> bytes:
    """The contents of the file; raises UnsupportedModel where it would be broken. External data lies in `folder`.
    `source`: the ONNX model that it is made of. Exporters write operators that ONNX calls deprecated, or does not know
    in its own domain, and runtimes have them: where the checker says so of the source too, nothing is broken."""
    try:
        data: bytes = proto.SerializeToString()
        objection = _objection(proto, data)
    except (_EncodeError, ValueError) as error:
        raise _broken(" ".join(str(error).split())) from None
    if objection and not (source is not None and _is_of(source, objection)):
        raise _broken(objection)
    try:
        load_proto(proto, folder)
    except BadFile as error:
        raise _broken(str(error.problems[0].why)) from None
    except MccError:  # of sizes that are still open, and of what is valid though it is not compiled
        pass
    except ValueError as error:
        raise _broken(" ".join(str(error).split())) from None
    return data


def _is_of(source: ModelProto, objection: str) -> bool:
    """Is it an operator of the source that the checker does not know?"""
    is_unknown = any(words in objection for words in _UNKNOWN)
    return is_unknown and objection == _objection(source, source.SerializeToString())


def _objection(proto: ModelProto, data: bytes) -> str:
    """What ONNX's checker says; nothing of a file with external data, for which it looks elsewhere."""
    if any(tensor.data_location for tensor in proto.graph.initializer):
        return ""
    try:
        checker.check_model(data)
    except checker.ValidationError as error:
        return " ".join(str(error).split())
    return ""


def _broken(why: str) -> UnsupportedModel:
    what, fix = (
        "nothing is written, since it would be no valid ONNX model",
        "please report it with the file it is made of",
    )
    return UnsupportedModel(Problem(what, "", why, fix))
