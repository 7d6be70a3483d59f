"""Which constants of a network are weights, and which of them learn.

A layer is a node that multiplies with a constant, or scales by one; its weights are its constants of floats, and the
constant that is added to its result. Exporters may turn, cut or join constants in front of a layer: those learn. So do
integers that DequantizeLinear makes floats of: their floats take their place. Ones and zeros that an exporter filled
in, as an operator demands scale and bias where the layer has none, are not weights.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from ...base.dtypes import f32
from ...base.errors import Problem, WrongUse
from ...base.near import meant
from ...base.provenance import show
from ...frontend.evaluate import evaluate
from ...graph.ir import Graph, Node, Value, all_nodes, reads
from ...ops.concat import Concat, Split
from ...ops.identity import Identity
from ...ops.loop import Loop
from ...ops.quantize import DequantizeLinear
from ...ops.reshape import SameElements
from ...ops.scan import Scan
from ...ops.slice import Slice
from ...ops.transpose import Transpose
from .integer_weights import learns_in_integers, stored
from .written_out import is_normalized

# Operators with weights, and the operands that are.
LAYERS = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "Gemm": (0, 1, 2),
    "MatMul": (0, 1),
    "RNN": (1, 2, 3),
    "GRU": (1, 2, 3),
    "LSTM": (1, 2, 3, 7),
    "LayerNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "RMSNormalization": (1,),
    "PRelu": (1,),
    "Gather": (0,),
    "Einsum": (0, 1, 2, 3),
}
_MOVES = (Concat, Identity, SameElements, Slice, Split, Transpose)
_COMPUTING = ("Add", "Sub", "Mul", "Div", "Expand")  # with parameters that are in no layer
Layer = tuple[Node, list[Value]]
BATCH_NORM = {"BatchNormalization": (1, 2)}  # which learns only where that is asked for


def layers(nodes: Iterable[Node], batch_norm: bool = False, filled_in: Collection[str] = ()) -> list[Layer]:
    """Layers in order, each with its weights. `filled_in`: as in `Graph`."""
    found, known = [], LAYERS | (BATCH_NORM if batch_norm else {})
    for node in _with_bodies(nodes):
        weights = [value for i in known.get(node.op.name, ()) for value in _weights(node, i)]
        behind = _scaled(node, weights) if weights else _written_out(node)
        own = _unique(behind or (weights and [*weights, *_added(node)]))
        if own := [value for value in own if value.name not in filled_in or not _is_neutral(value)]:
            found.append((node, own))
    return found


def _with_bodies(nodes: Iterable[Node]) -> Iterator[Node]:
    """Those of bodies whose trips are written out where they learn, too."""
    for node in nodes:
        if isinstance(node.op, (Loop, Scan)) and node.op.fixed_trips(node.site()):
            for body in node.regions:
                yield from _with_bodies(body.nodes)
        yield node


def _weights(node: Node, position: int) -> list[Value]:
    """The constants that an operand is, or is made of by moving elements."""
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None or value.type.dtype is not f32:
        return []
    return [value] if value.constant is not None or _is_dequantized(value) else _moved(value)


def _is_dequantized(value: Value) -> bool:
    """Is it made of integers that are constants?"""
    maker = value.producer
    if maker is None or not isinstance(maker.op, DequantizeLinear):
        return False
    return all(operand.constant is not None for operand in maker.present_inputs)


def _as_constant(graph: Graph, value: Value) -> Value:
    """The value, or the floats that take the place of one which is dequantized."""
    if value.constant is not None or value.producer is None:
        return value
    found = evaluate(value.producer, value.type.max_bytes)
    if not found or found[0] is None or graph.is_output(value):
        why = "it is made of integers, and is an output of the model, or nothing here computes its floats"
        raise WrongUse(Problem(f"{value.name!r} cannot learn", "--learn", why, "store it in f32"))
    floats = Value.of_constant(value.name, found[0])
    for node, position in list(value.uses):
        graph.set_input(node, position, floats)
    graph.remove(value.producer)
    return floats


def _moved(value: Value) -> list[Value]:
    maker = value.producer
    if maker is None or not isinstance(maker.op, _MOVES):
        return []
    parts = [_weights(maker, i) for i in range(len(maker.inputs) if isinstance(maker.op, Concat) else 1)]
    return [each for part in parts for each in part] if all(parts) else []


def _added(node: Node) -> list[Value]:
    """The bias behind a product."""
    if node.op.name != "MatMul":
        return []
    return [bias for bias in _operand(_reader(node), "Add") if bias.type.rank <= 1]


def _scaled(node: Node, weights: Sequence[Value]) -> list[Value]:
    """The scale and bias behind a normalization that scales by one: exporters write GroupNormalization so."""
    arrays = [value.constant.array for value in weights if value.constant is not None]
    if node.op.name != "InstanceNormalization" or [set(array.flat) for array in arrays] != [{1}, {0}]:
        return []
    reader = _reader(node)
    while reader is not None and isinstance(reader.op, SameElements):
        reader = _reader(reader)
    scale = _operand(reader, "Mul")
    return [*scale, *_operand(_reader(reader), "Add")] if reader is not None and scale else []


def _written_out(node: Node) -> list[Value]:
    """The scale and bias of a normalization that several nodes compute, as exporters write RMSNorm, and LayerNorm
    before opset 17."""
    if node.op.name != "Mul":
        return []
    for x, other in zip(node.inputs, range(1, -1, -1), strict=True):
        if x is not None and is_normalized(x) and (scale := _weights(node, other)):
            return [*scale, *(bias for bias in _operand(_reader(node), "Add") if bias.type == scale[0].type)]
    return []


def _reader(node: Node) -> Node | None:
    """What alone reads the result."""
    uses = list(node.output.uses)
    return uses[0][0] if len(uses) == 1 else None


def _operand(node: Node | None, name: str) -> list[Value]:
    """The constant that an operator of this name combines with what is computed."""
    if node is None or node.op.name != name:
        return []
    return next(filter(None, (_weights(node, i) for i in range(2))), [])


def learning(graph: Graph, text: str, of: Value, batch_norm: bool = False, in_integers: bool = False) -> list[Value]:
    """The constants that `all`, `last:N`, or names of constants or nodes, parted by commas, ask for: those that lead to
    `of`. Those that were dequantized are constants from now on, unless they learn in integers."""
    leading, known = _leading_layers(graph, of, batch_norm)
    found = _unique(
        [value for part in text.split(",") for value in _asked(graph, known, leading, part, of, batch_norm)]
    )
    return [v if in_integers and learns_in_integers(graph, v) else _as_constant(graph, v) for v in found]


def fewer(graph: Graph, text: str, of: Value, batch_norm: bool = False) -> list[str]:
    """Fewer layers than `all` or `last:N` asks for: half as many, and so on."""
    if text != "all" and not text.startswith("last:"):
        return []
    _, known = _leading_layers(graph, of, batch_norm)
    count = len(known) if text == "all" else _count(text, len(known))
    found = []
    while count > 1:
        count //= 2
        found.append(f"last:{count}")
    return found


def scopes(graph: Graph, of: Value, batch_norm: bool = False) -> list[str]:
    """What can be asked for, from all layers to the last one."""
    count = len(_leading_layers(graph, of, batch_norm)[1])
    return ["all", *(f"last:{number}" for number in range(count - 1, 0, -1))]


def layer_of(weight: Value) -> Node:
    """The node that reads it, where others only move its elements."""
    return next(_readers(weight))


def _leading_layers(graph: Graph, of: Value, batch_norm: bool) -> tuple[set[Node], list[Layer]]:
    """The nodes that lead to `of`, and which of them are layers."""
    leading = _leading(of)
    return leading, layers((node for node in graph.nodes if node in leading), batch_norm, graph.filled_in)


def merged(weights: Sequence[Value]) -> list[str]:
    """What learns as one where it may be meant as several: equal elements that several layers read, and all that equal
    layers read, as those of a layer that was copied."""
    read: dict[Node, list[Value]] = {}
    for weight in weights:
        for node in dict.fromkeys(_readers(weight)):
            read.setdefault(node, []).append(weight)
    doubtful = {}
    for weight in weights:
        readers = list(dict.fromkeys(_readers(weight)))
        copies = all(read[node] == read[readers[0]] and node.op == readers[0].op for node in readers)
        if len(readers) > 1 and (copies or _is_uniform(weight)):
            doubtful[weight.name] = [show(node.provenance) or node.output.name for node in readers]
    if not doubtful:
        return []
    first, readers_of = next(iter(doubtful)), _few(next(iter(doubtful.values())))
    several = f"{_few(list(doubtful))} learn as one weight each of several layers, {first} of {readers_of}"
    said = several if len(doubtful) > 1 else f"{first} learns as one weight of {readers_of}"
    why = "exporters merge initializers that are equal, as those of copied layers, which the model may not share"
    return [f"{said}: {why}; docs/learning.md says how PyTorch leaves them apart"]


def copied(graph: Graph, weights: Sequence[Value]) -> list[str]:
    """What learns apart from another constant with its elements, turned: a weight that an exporter wrote twice. Those
    that are not turned may be of copied layers, which learn apart."""
    known, found = dict[bytes, Value](), []
    for value in (*weights, *(other for other in graph.constants() if other not in weights)):
        content = value.constant.array if value.constant is not None and value.type.rank == 2 else None
        if content is None or value.type.dtype is not f32 or min(content.shape) < 2 or _is_uniform(value):
            continue
        own, turned = (each.shape[0].to_bytes(8, "big") + each.tobytes() for each in (content, content.T))
        first = known.get(turned)
        known.setdefault(own, value)
        if first is not None and first in weights:
            found.append(f"{value.name} of {first.name}")
    if not found:
        return []
    why = "PyTorch's exporter (dynamo=True) writes one weight twice where one reader turns it, as of tied embeddings"
    return [f"copies learn apart, or not at all: {_few(found)}: {why}; docs/learning.md says which export keeps it"]


def _is_neutral(weight: Value) -> bool:
    """What nothing is scaled by, or adds nothing."""
    return _is_uniform(weight) and weight.constant is not None and weight.constant.array.flat[0] in (0, 1)


def _is_uniform(weight: Value) -> bool:
    content = weight.constant.array if weight.constant is not None else None
    return content is not None and bool(content.size and (content == content.flat[0]).all())


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def left_out(graph: Graph, text: str, of: Value, learned: Iterable[Value]) -> list[str]:
    """What `all` does not name: parameters in no layer, such as positions, and weights in bodies."""
    if text != "all":
        return []
    leading = _leading(of)
    known = [value for value in graph.constants() if value not in learned and _is_parameter(value, leading)]
    rest = [value.name for value in known if value.name not in graph.filled_in or not _is_neutral(value)]
    found = []
    if rest:
        how = f"where one shall learn, name it, as in --learn all,{','.join(rest[:3])}"
        found.append(f"no layer has {_few(rest)}, so they stay as they are; {how}")
    return found + _within([node for node in graph.nodes if node in leading], learned)


def _within(leading: Iterable[Node], learned: Iterable[Value]) -> list[str]:
    """Weights of layers in bodies, through which no gradient goes."""
    found = []
    for node in leading:
        inside = layers(inner for body in node.regions for inner in all_nodes(body))
        names = [weight.name for weight in _unique([each for _, weights in inside for each in weights])
                 if weight not in learned]  # fmt: skip
        if names:
            where = f"in the body of {show(node.provenance) or node.output.name} ({node.op.name})"
            found.append(f"{_few(names)}: read {where}, where no weight learns, so they stay as they are")
    return found


def _is_parameter(value: Value, leading: set[Node]) -> bool:
    """Is it an array of floats with which elements are computed?"""
    if value.type.dtype is not f32 or value.constant is None or value.constant.array.size < 2:
        return False
    return any(node in leading and node.op.name in _COMPUTING for node in _readers(value))


def _readers(value: Value) -> Iterator[Node]:
    """Behind what only moves elements."""
    for node, _ in value.uses:
        if isinstance(node.op, _MOVES):
            yield from (reader for made in node.outputs if made is not None for reader in _readers(made))
        else:
            yield node


def _asked(
    graph: Graph, known: Sequence[Layer], leading: set[Node], text: str, of: Value, batch_norm: bool
) -> list[Value]:
    if text != "all" and not text.startswith("last:"):
        return _named(graph, known, leading, text)
    if not known:
        why = f"no Conv, Gemm, MatMul, recurrent layer or normalization in front of {of.name} has a constant of f32"
        raise WrongUse(Problem("nothing can learn", "--learn", why, _instead(graph, leading)))
    count = len(known) if text == "all" else _count(text, len(known))
    of_layers = [value for _, weights in known[-count:] for value in weights]
    return of_layers + (_in_no_layer(graph, leading, batch_norm) if text == "all" else [])


def _in_no_layer(graph: Graph, leading: set[Node], batch_norm: bool) -> list[Value]:
    """Parameters, as the file calls them, that the loss depends on, such as positions."""
    without = set() if batch_norm else BATCH_NORM.keys()
    found = [value for value in graph.constants() if value.name in graph.parameters and value.type.dtype is f32]
    return [v for v in found if any(node in leading and node.op.name not in without for node in _readers(v))]


def _leading(of: Value) -> set[Node]:
    """What a value is computed by."""
    found: set[Node] = set()
    waiting = [of]
    while waiting:
        node = waiting.pop().producer
        if node is not None and node not in found:
            found.add(node)
            waiting.extend(reads(node))
    return found


def _instead(graph: Graph, leading: set[Node]) -> str:
    if any(getattr(node.op, "quantizes", False) for node in leading):
        return "train the network of floats, and quantize what it learned"
    names = [v.name for v in graph.constants() if v.type.dtype is f32 and _is_read(v, leading)]
    return f"name constants: --learn {names[0]}" if names else "give the model weights of f32 as initializers"


def _is_read(value: Value, leading: set[Node]) -> bool:
    return any(value in reads(node) for node in leading)


def _count(text: str, most: int) -> int:
    number = text.removeprefix("last:")
    if not number.isdecimal() or not int(number):
        raise WrongUse(Problem(f"{text!r} names no layers", "--learn", "a number from 1 on follows", "--learn last:1"))
    if int(number) > most:
        why = f"there {'is' if most == 1 else 'are'} {most}"
        raise WrongUse(Problem(f"there are no {number} layers that could learn", "--learn", why, "--learn all"))
    return int(number)


def _named(graph: Graph, known: Sequence[Layer], leading: set[Node], name: str) -> list[Value]:
    constants = {value.name: value for value in graph.constants()}
    made = [node.output for node in leading if _is_dequantized(node.output)]
    constants |= {name: value for value in made for name in (value.name, stored(value).name)}
    if name in constants:
        value, why = constants[name], ""
        if value.type.dtype is not f32:
            why = f"it is {value.type}, not f32"
        elif not _is_read(value, leading):
            why = "the loss does not depend on it"
        if why:
            raise WrongUse(Problem(f"{name!r} cannot learn", "--learn", why, "--learn last:1"))
        return [value]
    for node, weights in known:
        if name in (*node.provenance, node.output.name):
            return weights
    names = [*constants, *(show(node.provenance) for node, _ in known)]
    why = f"the layers are {', '.join(show(node.provenance) for node, _ in known) or 'none'}"
    learning = [*(value.name for _, weights in known for value in weights), *names[len(constants) :]]
    parts = [one for one in learning if name.lower() in re.split(r"[/.;:]", one.lower())]  # fc of /fc/Gemm
    close = f"did you mean --learn {parts[-1]}?" if parts else meant(name, names, "--learn")
    fix = close or ("--learn all" if known else _instead(graph, leading))
    raise WrongUse(Problem(f"there is no weight or layer {name!r}", "--learn", why, fix))


def _unique(values: Sequence[Value]) -> list[Value]:
    return list(dict.fromkeys(values))
