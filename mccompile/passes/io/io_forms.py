"""io_forms: inputs in the form that sensors deliver and outputs in the form that programs need, for `--input` and
`--output`.

Camera formats, normalisation and the search for the largest score become operators at the edge of the graph, so that
the passes fold them into what is there. Each form also says in numpy what it does, which is what checks compare with.
Numbers of a form are constants of the model like any other: they lie in the blob.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...base.constant import Constant
from ...base.dtypes import DTYPES, DType, f32, f64, i32, u8
from ...base.errors import Problem, WrongUse
from ...base.names import new_name
from ...base.near import meant
from ...base.records import dataclass
from ...base.tensor import TensorType
from ...graph.ir import Fact, Graph, Node, Op, Refused, Value, is_input
from ...ops.argmax_cumsum import ArgMax
from ...ops.binary import Mul, Sub
from ...ops.camera import FORMATS
from ...ops.cast import Cast
from ...ops.choose import Clip
from ...ops.quantize import DequantizeLinear, QuantizeLinear
from ...ops.slice import Slice
from ...ops.transpose import Transpose
from ...ops.unary import Round
from ..graph.assign_layout import last_order
from .camera_frames import any_frame, camera_of, read_camera, seen_picture

Numbers = tuple[float, ...]
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class InputForm:
    """What is handed over; the model gets (that - mean) * scale, with numbers for all channels or for each."""

    dtype: DType | None = None  # None: the model's own
    nhwc: bool = False
    bgr: bool = False  # the first and the last channel change places
    raw: bool = False  # what the model would quantize first is handed over quantized
    mean: Numbers = ()
    scale: Numbers = ()
    camera: str = ""  # frames of a sensor, in this format: converted and resized to what the model takes
    resize: str = ""  # "bilinear", "nearest" or "area"
    frame: tuple[int, ...] = ()  # width and height of the sensor's; none: those of the model's pictures
    crop: tuple[int, ...] = ()  # x, y, width and height of what is used of them
    letterbox: int | None = None  # keep the ratio of sides; what there is around it
    rows: bool = False  # a function of the program's gives it row by row

    @property
    def changes(self) -> bool:
        """Are elements others than the model's?"""
        return bool(self.dtype or self.bgr or self.raw or self.mean or self.scale or self.camera)


@dataclass(frozen=True)
class OutputForm:
    """What is handed out: (the model's - zero) * scale, or where the largest of the classes is."""

    dtype: DType | None = None
    nhwc: bool = False
    raw: bool = False  # what the model dequantizes last is handed out quantized
    argmax: bool = False
    zero: Numbers = ()
    scale: Numbers = ()

    @property
    def changes(self) -> bool:
        """Are elements others than the model's?"""
        return bool(self.dtype or self.raw or self.argmax or self.zero or self.scale)


_FORM_WORDS = {*FORMATS, *DTYPES, "nhwc", "bgr", "raw", "rows", "mean", "scale", "std", "argmax", "zero"}
_FORM_WORDS |= {"resize", "crop", "letterbox"}


def parse_input(text: str) -> tuple[str, InputForm]:
    """`NAME=u8,nhwc,mean=123.7:116.3:103.5,scale=1/58`; `std` divides."""
    name, words = _split(text, "input")
    form: dict[str, Any] = {}
    for word in words:
        what, _, numbers = word.partition("=")
        if word in FORMATS:
            form["camera"] = word
        elif what in ("resize", "crop", "letterbox"):
            form |= read_camera(what, numbers)
        elif what in ("nhwc", "bgr", "raw", "rows") and not numbers:
            form[what] = True
        elif what == "mean":
            form[what] = _said(_numbers, numbers, f"--input {text.replace(word, 'mean=127.5')}")
        elif what == "scale":
            form[what] = _said(_factors, numbers, f"--input {text.replace(word, 'scale=1/255')}")
        elif what == "std":
            divisors = _said(_factors, numbers, f"--input {text.replace(word, 'std=127.5')}")
            form["scale"] = tuple(1 / number for number in divisors)
        else:
            known = ("nhwc", "bgr", "raw", "rows", "mean=", "scale=", "std=", "resize=", "crop=", "letterbox", *FORMATS)
            form["dtype"] = _dtype(word, ", ".join(known))
    if form.keys() & {"resize", "crop", "letterbox"}:
        form.setdefault("camera", "rgb")
    return name, InputForm(**form)


def parse_output(text: str) -> tuple[str, OutputForm]:
    """`NAME=argmax,u8`, `NAME=raw` or `NAME=scale=0.004,zero=-128`."""
    name, words = _split(text, "output")
    form: dict[str, Any] = {}
    for word in words:
        what, _, numbers = word.partition("=")
        if what in ("nhwc", "raw", "argmax") and not numbers:
            form[what] = True
        elif what == "zero":
            form[what] = _said(_numbers, numbers, f"--output {text.replace(word, 'zero=-128')}")
        elif what == "scale":
            form[what] = _said(_factors, numbers, f"--output {text.replace(word, 'scale=1/255')}")
        else:
            form["dtype"] = _dtype(word, "nhwc, raw, argmax, zero=, scale=")
    return name, OutputForm(**form)


def _split(text: str, option: str) -> tuple[str, list[str]]:
    """A name may have = of its own: it ends where a form begins."""
    parts = text.split("=")
    ends = (at for at in range(1, len(parts)) if parts[at].partition(",")[0] in _FORM_WORDS)
    end = next(ends, 1)
    name, equals, words = "=".join(parts[:end]), "=" * (len(parts) > 1), "=".join(parts[end:])
    if re.fullmatch(r"\d+([x,]\d+)+", words):
        raise ValueError(f"{words!r} is a shape; did you mean --shape {name}={words.replace('x', ',')}?")
    if not equals and ":" in text:
        raise ValueError(f"{text!r} has no =; did you mean --{option} {text.replace(':', '=', 1)}?")
    if not name or not equals or not words:
        given = words or name if name != text or "." not in text else "u8"
        raise ValueError(f"{text!r} is not NAME=FORM,FORM,...; did you mean --{option} {option.upper()}={given}?")
    return name, words.split(",")


def _said(read: Callable[[str], Numbers], text: str, such: str) -> Numbers:
    """Numbers, or what they could be."""
    try:
        return read(text)
    except ValueError as error:
        raise ValueError(f"{error}; did you mean {such}?") from None


def _numbers(text: str) -> Numbers:
    try:
        numbers = tuple(_number(part) for part in text.split(":"))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is not a number such as 0.5 or 1/255, or one for each channel: 1:2:3") from None
    if not all(abs(number) <= _LARGEST for number in numbers):
        raise ValueError(f"{text!r} is beyond the range of f32, in which the model computes")
    return numbers


def _number(text: str) -> float:
    """No Fraction: of 1e999999999 that takes all memory."""
    over, slash, under = text.partition("/")
    return float(over) / float(under) if slash else float(over)


def _factors(text: str) -> Numbers:
    """Numbers that are multiplied or divided by."""
    numbers = _numbers(text)
    if not all(abs(number) >= 1 / _LARGEST for number in numbers):
        raise ValueError(f"{text!r} has a 0, or what is 0 in f32: all elements would become 0")
    return numbers


def _dtype(word: str, others: str) -> DType:
    numbers = {name: each for name, each in DTYPES.items() if (each.is_integer or each.is_float) and not each.is_packed}
    found = numbers.get(word)
    if found is None:
        close = meant(word, [*(other.strip() for other in others.split(",")), *numbers])
        hint = f"; {close}" if close else ""
        raise ValueError(f"{word!r} is neither an element type, such as u8 or f32, nor one of {others}{hint}")
    return found


@dataclass(frozen=True)
class Handover:
    """How each named input and output of one graph is handed over: in numpy, for what is compared."""

    inputs: Mapping[str, tuple[InputForm, TensorType]]
    outputs: Mapping[str, tuple[OutputForm, TensorType]]

    def given(self, name: str, x: np.ndarray) -> np.ndarray:
        """What a program would hand over for the model's own input x, as near as its type allows."""
        form, type = self.inputs[name]
        if not form.changes:
            return x
        if form.camera:
            return any_frame(camera_of(name, form, type), x)
        dtype = form.dtype or type.dtype
        found = x.astype(np.float64) / _spread(form.scale, type, 1.0) + _spread(form.mean, type, 0.0)
        return _typed(_swapped(found, type, form.bgr), dtype)

    def seen(self, name: str, given: np.ndarray) -> np.ndarray:
        """What the model's own input is then."""
        form, type = self.inputs[name]
        if not form.changes:
            return given
        if form.camera:
            given = seen_picture(camera_of(name, form, type), given, type)
        x = _swapped(given, type, form.bgr)
        if form.mean or form.scale or type.dtype.is_float:
            x = x.astype(np.float32) - _spread(form.mean, type, 0.0).astype(np.float32)
            x = x * _spread(form.scale, type, 1.0).astype(np.float32)
        return _typed(x, type.dtype)

    def handed(self, name: str, y: np.ndarray) -> np.ndarray:
        """What a program gets for the model's own output y."""
        form, type = self.outputs[name]
        if not form.changes:
            return y
        if form.argmax:
            return np.asarray(np.argmax(y, axis=class_axis(y.ndim)), (form.dtype or i32).numpy)
        dtype = form.dtype or (f32 if form.scale or form.zero else type.dtype)
        if form.scale or form.zero:
            y = y.astype(np.float32) - _spread(form.zero, type, 0.0).astype(np.float32)
            y = y * _spread(form.scale, type, 1.0).astype(np.float32)
        return _typed(y, dtype)


def give_forms(graph: Graph, inputs: Mapping[str, InputForm], outputs: Mapping[str, OutputForm]) -> Handover:
    """Puts the operators of all forms at the edges of the graph."""
    edge = _Edge(graph)
    for what, known, asked in (
        ("input", [value.name for value in graph.inputs], inputs),
        ("output", [value.name for value in graph.outputs], outputs),
    ):
        kept = {*graph.states, *graph.states.values(), *graph.initial}
        for name in asked:
            where = f"--{what} {name}=..."
            if name in known and name in kept:
                why = "programs do not pass it: what a run leaves in it is there in the next one"
                raise WrongUse(Problem(f"{name!r} is a state", where, why, f"leave out {where}"))
            if name not in known:
                why = f"the model has {', '.join(map(repr, known))}"
                fix = meant(name, known) or f"did you mean {known[0]}?"
                raise WrongUse(Problem(f"no {what} named {name!r}", where, why, fix))
    ins = [(value, inputs[value.name]) for value in graph.inputs if value.name in inputs]
    outs = [(value, outputs[value.name]) for value in graph.outputs if value.name in outputs]
    handed_in = {value.name: edge.input(value, form) for value, form in ins}
    handed_out = {value.name: edge.output(value, form) for value, form in outs}
    graph.sort()
    return Handover(handed_in, handed_out)


class _Edge:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.taken = {value.name for value in graph.values()}
        self.name = ""  # of the input or output whose form it is: where new nodes come from

    def input(self, value: Value, form: InputForm) -> tuple[InputForm, TensorType]:
        name, type = value.name, value.type
        self.name = name
        if value in self.graph.outputs:  # there would be two tensors of one name
            why, fix = "the model passes it on unchanged as an output", f"leave out --input {name}=..."
            raise WrongUse(Problem(f"{name!r} cannot be passed in another form", self.graph.name, why, fix))
        if not form.changes:
            return form, type
        self._check_numbers(value)
        if form.raw:
            form = self._raw_input(value, form)
        dtype = u8 if form.camera else form.dtype or type.dtype
        camera = camera_of(name, form, type) if form.camera else None
        given = Value(name, Fact(TensorType(dtype, camera.frame if camera else type.shape)))
        self.graph.inputs[next(i for i, v in enumerate(self.graph.inputs) if v is value)] = given
        value.name = self._free(f"{name}/model")
        x = given
        if camera is not None:
            x = self._node(camera, [x])
            if type.shape[1] != camera.channels:
                x = self._node(Transpose(perm=last_order(4)), [x])
        if form.bgr:
            cut = (-1, -4, _channels(3, type, name), -1)  # from the last to the first
            x = self._node(Slice(), [x, *(self._constant(np.array([n], np.int64), f"{name}/bgr") for n in cut)])
        if form.raw:
            x = self._quantized(DequantizeLinear(axis=1, block_size=0), x, form.scale[0], form.mean[0], dtype)
        elif form.mean or form.scale or type.dtype.is_float:
            x = self._scaled(self._cast(x, f32), form.mean, form.scale, name)
        last = self._cast(x, type.dtype)
        if last is given:  # only the order of axes is another one
            self.graph.replace(value, given)
        else:
            assert last.producer is not None
            self.graph.replace(value, last)
            last.name, value.name = value.name, last.name
        return form, type

    def output(self, value: Value, form: OutputForm) -> tuple[OutputForm, TensorType]:
        name, type = value.name, value.type
        self.name = name
        if value.producer is None or is_input(self.graph, value):
            what, fix = f"{name!r} is handed out as it comes in", f"leave out --output {name}=..."
            raise WrongUse(Problem(what, self.graph.name, "no operator makes it", fix))
        if not form.changes:
            return form, type
        self._check_numbers(value)
        scale, zero, dtype = self._raw_output(value) if form.raw else (1.0, 0.0, form.dtype or type.dtype)
        value.name = self._free(f"{name}/model")
        y = value
        if form.argmax:
            y = self._node(ArgMax(axis=class_axis(type.rank), keepdims=0), [y])
            y = self._cast(y, form.dtype or i32)
        elif form.raw:
            y = self._quantized(QuantizeLinear(axis=1, block_size=0), y, scale, zero, dtype)
            form = replace(form, dtype=dtype, zero=(-zero * scale,), scale=(1 / scale,))
        elif form.zero or form.scale:
            y = self._cast(self._scaled(self._cast(y, f32), form.zero, form.scale, name), form.dtype or f32)
        else:
            y = self._cast(y, dtype)
        if y is value:
            value.name = name
        else:
            y.name = name
            self.graph.outputs[next(i for i, v in enumerate(self.graph.outputs) if v is value)] = y
        return form, type

    def _check_numbers(self, value: Value) -> None:
        if value.type.dtype.kind == "string":
            why, fix = f"it is text: {value.type}", f"leave out the form of {value.name!r}"
            raise WrongUse(Problem(f"{value.name!r} cannot be passed as numbers", self.graph.name, why, fix))

    def _raw_input(self, value: Value, form: InputForm) -> InputForm:
        readers = [node for node, _ in value.uses]
        ops = [node.op for node in readers]
        if len(ops) != 1 or not isinstance(ops[0], QuantizeLinear):
            raise self._not_raw(value, "is not only read by one QuantizeLinear")
        scale, zero, dtype = self._parameters(value, readers[0], readers[0].output.type.dtype)
        return replace(form, dtype=dtype, mean=(zero,), scale=(scale,))

    def _raw_output(self, value: Value) -> tuple[float, float, DType]:
        made = value.producer
        if made is None or not isinstance(made.op, DequantizeLinear) or made.inputs[0] is None:
            raise self._not_raw(value, "is not made by DequantizeLinear")
        return self._parameters(value, made, made.inputs[0].type.dtype)

    def _parameters(self, value: Value, node: Node, dtype: DType) -> tuple[float, float, DType]:
        operands = [v.constant if v is not None else None for v in node.inputs[1:3]]
        if operands[0] is None or operands[0].array.size != 1 or (len(node.inputs) > 2 and operands[1] is None):
            raise self._not_raw(value, "is quantized with computed numbers, or with some for each channel")
        zero = float(operands[1].array.reshape(-1)[0]) if len(operands) > 1 and operands[1] is not None else 0.0
        return float(operands[0].array.reshape(-1)[0]), zero, dtype

    def _not_raw(self, value: Value, why: str) -> WrongUse:
        fix = f"leave out raw of {value.name}"
        return WrongUse(Problem(f"{value.name!r} cannot be handed over raw", self.graph.name, f"it {why}", fix))

    def _scaled(self, x: Value, less: Numbers, times: Numbers, name: str) -> Value:
        for op, numbers, what in ((Sub(), less, "mean"), (Mul(), times, "scale")):
            if numbers:
                spread = _column(numbers, x.type, name).astype(np.float32)
                x = self._node(op, [x, self._constant(spread, f"{name}/{what}")])
        return x

    def _cast(self, x: Value, dtype: DType) -> Value:
        """To integers by rounding, as quantizers do."""
        if x.type.dtype is dtype:
            return x
        if x.type.dtype.is_float and dtype.bits <= 16 and not dtype.is_float:
            return self._quantized(QuantizeLinear(axis=1, block_size=0), x, 1.0, 0.0, dtype)
        if x.type.dtype.is_float and not dtype.is_float:
            of = f64 if x.type.dtype is f64 else f32
            ends = (self._constant(end, f"{x.name}/{dtype}") for end in _ends(dtype, of))
            x = self._node(Clip(), [self._node(Round(), [self._cast(x, of)]), *ends])
        return self._node(Cast(to=dtype.onnx), [x])

    def _quantized(self, op: Op, x: Value, scale: float, zero: float, dtype: DType) -> Value:
        parameters = {"scale": np.array(scale, np.float32), "zero": np.array(zero, dtype.numpy)}
        return self._node(op, [x, *(self._constant(array, f"{x.name}/{what}") for what, array in parameters.items())])

    def _node(self, op: Op, operands: Sequence[Value]) -> Value:
        name = self._free(f"{operands[0].name}/{op.qualified_name.lower()}")
        try:
            return self.graph.compute(op, operands, [name], (self.name,))[0]
        except Refused as refused:
            what = f"no form of {operands[0].name.removesuffix('/model')!r} has {op.name}"
            raise WrongUse(Problem(what, self.graph.name, refused.why, refused.fix)) from None

    def _constant(self, array: np.ndarray, name: str) -> Value:
        return Value.of_constant(self._free(name), Constant.of(array))

    def _free(self, name: str) -> str:
        return new_name(name, self.taken)


def _typed(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Floats that become integers are rounded and clipped."""
    if x.dtype.kind == "f" and not dtype.is_float:
        of = f64 if x.dtype == np.float64 else f32
        x = np.clip(np.rint(x.astype(of.numpy)), *_ends(dtype, of))
    return x.astype(dtype.numpy)


def _ends(dtype: DType, of: DType) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest number of an integer type among floats of a type."""
    low, high = np.array(dtype.low, of.numpy), np.array(dtype.high, of.numpy)
    return low, high if int(high) <= dtype.high else np.array(np.nextafter(high, low), of.numpy)


def class_axis(rank: int) -> int:
    """The axis along which one of several is right: the channels of a picture, else the last."""
    return 1 if rank > 3 else rank - 1


def _channels(count: int, type: TensorType, name: str) -> int:
    axes = [axis for axis in (1, type.rank - 1) if 0 < axis < type.rank and type.shape[axis] == count]
    if not axes:
        raise WrongUse(Problem(f"{name!r} has no axis of {count} channels", str(type), "", "give one number for all"))
    return axes[0]


def _column(numbers: Numbers, type: TensorType, name: str) -> np.ndarray:
    array = np.array(numbers)
    if len(numbers) == 1:
        return array.reshape(())
    axis = _channels(len(numbers), type, name)
    return array.reshape([-1 if a == axis else 1 for a in range(axis, type.rank)])


def _spread(numbers: Numbers, type: TensorType, neutral: float) -> np.ndarray:
    return _column(numbers, type, "it") if numbers else np.array(neutral)


def _swapped(x: np.ndarray, type: TensorType, bgr: bool) -> np.ndarray:
    return np.flip(x, _channels(3, type, "it")) if bgr else x
