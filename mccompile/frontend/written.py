"""ONNX models that commands write for other programs.

Invariant: what is written passed ONNX's checker and can be read back, so nobody finds a broken file later.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from onnx import ModelProto, checker

from ..base.errors import BadFile, MccError, Problem, UnsupportedModel
from .load import load_proto

_EncodeError: type[Exception] = import_module("google.protobuf.message").EncodeError


def checked_bytes(proto: ModelProto, folder: Path) -> bytes:
    """The contents of the file; raises UnsupportedModel where it would be broken. External data lies in `folder`."""
    try:
        data: bytes = proto.SerializeToString()
        if not any(tensor.data_location for tensor in proto.graph.initializer):  # the checker looks for it elsewhere
            checker.check_model(data)
        load_proto(proto, folder)
    except BadFile as error:
        raise _broken(str(error.problems[0].why)) from None
    except MccError:  # of sizes that are still open, and of what is valid though it is not compiled
        pass
    except (checker.ValidationError, _EncodeError, ValueError) as error:
        raise _broken(" ".join(str(error).split())) from None
    return data


def _broken(why: str) -> UnsupportedModel:
    what, fix = (
        "nothing is written, since it would be no valid ONNX model",
        "please report it with the file it is made of",
    )
    return UnsupportedModel(Problem(what, "", why, fix))
