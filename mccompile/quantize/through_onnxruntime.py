"""onnxruntime's quantizer: calibration, QuantizeLinear and DequantizeLinear around operators, dynamic quantization.

The only module of this package that imports onnxruntime, which is an optional extra. Choices are those that
`lower_qdq` turns into integer operators: int8 weights per channel, symmetric; int8 activations; int32 biases.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..base.errors import Problem, UnsupportedModel, WrongUse
from ..base.extras import install
from ..check.oracle import session_errors
from ..frontend.caches import caches, hand_out_joined
from ..frontend.declarations import declare_again
from .samples import Feed

# What onnxruntime can quantize and has an integer form here, or only moves elements.
_OPERATORS = (
    *("Add", "AveragePool", "Clip", "Concat", "Conv", "ConvTranspose", "Flatten", "Gather", "Gemm"),
    *("GlobalAveragePool", "LeakyRelu", "MatMul", "MaxPool", "Mul", "Pad", "Relu", "Reshape", "Resize", "Sigmoid"),
    *("Slice", "Softmax", "Split", "Squeeze", "Transpose", "Unsqueeze"),
)
NORMALIZATION = "LayerNormalization"  # computes in floats either way; integers around it bring some networks closer
_ENTROPY_BINS = 512
_DYNAMIC_OPERATORS = ("Conv", "Gemm", "MatMul")


def simplified(model: Path, result: Path) -> None:
    """onnxruntime's basic optimizations, so that its quantizer sees fused operators."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    options.optimized_model_filepath = str(result)
    with _refusals():
        onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
    declare_again(model, result)


def computing(is_dynamic: bool) -> tuple[str, ...]:
    """Operators that become integers."""
    return _DYNAMIC_OPERATORS if is_dynamic else (*_OPERATORS, NORMALIZATION)


def ranges(model: Path, feeds: Sequence[Feed], method: str) -> Any:
    """What the samples make of each tensor, as onnxruntime writes it down."""
    from onnxruntime import quantization

    methods = quantization.CalibrationMethod
    known: dict[str, tuple[Any, dict[str, Any]]] = {
        "minmax": (methods.MinMax, {}),
        "percentile": (methods.Percentile, {}),
        "folded": (methods.Percentile, {"symmetric": True}),  # of magnitudes
        "clipped": (methods.Percentile, {"percentile": 99.99}),
        # with as many bins as it starts out with, entropy has nothing to choose among
        "entropy": (methods.Entropy, {"num_bins": _ENTROPY_BINS}),
    }
    chosen, finer = known[method]
    with _refusals(), TemporaryDirectory(prefix="mccompile-") as scratch:
        augmented = str(Path(scratch, "augmented.onnx"))

        def collected(parts: Sequence[Sequence[Feed]]) -> Any:
            calibrator = quantization.create_calibrator(
                model, [*_OPERATORS, NORMALIZATION], augmented, chosen, extra_options={"symmetric": False, **finer}
            )
            for part in parts:
                calibrator.collect_data(_Reader(part))
            return calibrator.compute_data()

        try:
            return collected([feeds])
        except ValueError:  # tensors of other sizes in each run cannot be stacked
            return collected([[feed] for feed in feeds])


def multiplied(ranges: Any, factors: Mapping[str, float]) -> Any:
    """`ranges`, of which some are multiplied; they hold 0, as scales take it."""
    from onnxruntime.quantization.calibrate import TensorData, TensorsData

    found = TensorsData(ranges.calibration_method, dict(ranges.items()))
    for name, factor in factors.items():
        low, high = (float(np.asarray(limit).reshape(())) for limit in ranges[name].range_value)
        limits = {"lowest": min(low, 0), "highest": max(high, 0)}
        found[name] = TensorData(**{side: np.float32(limit * factor) for side, limit in limits.items()})
    return found


def static(
    model: Path, result: Path, ranges: Any, symmetric: bool, left: Collection[str], more: Collection[str] = ()
) -> None:
    """Integers with scales from ranges, around operators of `more` too; nodes in `left` stay floats."""
    from onnxruntime import quantization
    from onnxruntime.quantization.quant_utils import load_model_with_shape_infer

    byte = quantization.QuantType.QInt8
    left = {*left, *caches(model)}
    with _refusals():
        quantizer = quantization.QDQQuantizer(
            load_model_with_shape_infer(model),
            per_channel=True,
            reduce_range=False,
            weight_qType=byte,
            activation_qType=byte,
            tensors_range=ranges,
            nodes_to_quantize=[],
            nodes_to_exclude=sorted(left),
            op_types_to_quantize=[*_OPERATORS, *more],
            extra_options={
                "ActivationSymmetric": symmetric,
                "WeightSymmetric": True,
                "QDQOpTypePerChannelSupportToAxis": {"MatMul": 1},
            },
        )
        quantizer.quantize_model()
        hand_out_joined(quantizer.model.model.graph)
        quantizer.model.save_model_to_file(str(result), False)
    declare_again(model, result)


def dynamic(model: Path, result: Path, left: Collection[str]) -> None:
    """Weights in integers; scales of activations are computed in every run."""
    from onnxruntime import quantization

    with _refusals("--dynamic"):
        quantization.quantize_dynamic(
            model,
            result,
            op_types_to_quantize=list(_DYNAMIC_OPERATORS),
            per_channel=True,
            weight_type=quantization.QuantType.QInt8,
            nodes_to_exclude=sorted(left),
        )
    declare_again(model, result)


def integer_form(name: str) -> str:
    """The name of what a tensor is after its quantization."""
    return f"{name}_DequantizeLinear_Output"


def require() -> None:
    """Raises where onnxruntime is not installed."""
    if find_spec("onnxruntime") is None:
        why = "calibration is done with onnxruntime, which is not installed"
        raise WrongUse(Problem("cannot quantize", "", why, install("quantize")))


class _Reader:
    """A `CalibrationDataReader`, which is anything with this method."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._left = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._left, None)


@contextmanager
def _refusals(where: str = "int8 activations") -> Iterator[None]:
    """What onnxruntime refuses is our error; what it has to say on the way is not shown."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(StringIO()):
            yield
    except session_errors() as error:
        fix = "weights alone can be made integers without it: --weights-only 8"
        why = str(error) or type(error).__name__
        raise UnsupportedModel(Problem("onnxruntime cannot quantize the model", where, why, fix)) from None
    finally:
        logging.disable(before)
