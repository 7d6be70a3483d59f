"""Builtin operators without a decomposition, and why.

Invariant: every builtin operator of the schema is here, or is converted.
"""

from __future__ import annotations

_STRINGS = "it works on strings, and tensors of these files are numbers"
_TABLES = "a hash table maps strings, and tensors of these files are numbers", "look it up outside of the model"
_INSIDE = "it is internal to the interpreter and should not occur in a file", "convert the model again"
_STABLEHLO = "it is an operator of StableHLO", "convert the model again to TFLite's own operators"
_WITHOUT = "change the model to do without it"

REFUSED = {
    "BITCAST": ("ONNX reads the bits of numbers as another type only since opset 26", _WITHOUT),
    "CALL": ("the interpreter has no kernel for it", "convert the model again, with functions inlined"),
    "CONCAT_EMBEDDINGS": ("the interpreter has no kernel for it", _WITHOUT),
    "CUSTOM": _INSIDE,
    "DELEGATE": _INSIDE,
    "EMBEDDING_LOOKUP_SPARSE": ("it sums rows by positions that are computed", "use EMBEDDING_LOOKUP and a sum"),
    "HASHTABLE": _TABLES,
    "HASHTABLE_FIND": _TABLES,
    "HASHTABLE_IMPORT": _TABLES,
    "HASHTABLE_LOOKUP": ("it looks rows up by keys", "use EMBEDDING_LOOKUP, with positions as input"),
    "HASHTABLE_SIZE": _TABLES,
    "LSH_PROJECTION": ("it hashes the bytes of its input", "compute the hashes outside of the model"),
    "PLACEHOLDER_FOR_GREATER_OP_CODES": _INSIDE,
    "REDUCE_WINDOW": ("ONNX has no window of its general form", "use a pooling layer"),
    "SKIP_GRAM": (_STRINGS, "make the pairs outside of the model"),
}


def reason(name: str) -> tuple[str, str]:
    """Why a builtin operator is refused, and what to do; of one that nobody knows, that."""
    if name in REFUSED:
        return REFUSED[name]
    if name.startswith("STABLEHLO_"):
        return _STABLEHLO
    return "the schema that is installed does not have it", "update it: pip install --upgrade tflite"


def is_refused(name: str) -> bool:
    return name in REFUSED or (name.startswith("STABLEHLO_") and name != "STABLEHLO_COMPOSITE")
