"""Models with one thing wrong: what editors, exporters and attackers make of a node.

Invariant: a mutation is drawn from the generator alone, so a seed names a model; it is never checked whether the model
is still valid, since most of ONNX's rules have exceptions. Whoever runs these asserts how a program ends, not that it
refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

INTS = (-(2**63), -(2**31), -1000, -7, -2, -1, 0, 1, 2, 3, 7, 1000, 2**31, 2**40, 2**63 - 1)
FLOATS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 0.5, 1e38, 1e-45)
TEXTS = (b"", b"nonsense", b"NONE", b"linear", b"constant", b"SAME_UPPER", b"VALID", b"bidirectional", b"\xff\xfe")
SIZES = (-1, 0, 1, 2, 3, 5, 17, 1000)
Mutation = Callable[[Generator, ModelProto], bool]  # whether it found something to change


def mutated(model: ModelProto, rng: Generator, most: int = 2) -> tuple[ModelProto, str]:
    """A copy with one to `most` things wrong, and which."""
    copy = ModelProto()
    copy.CopyFrom(model)
    done: list[str] = []
    wanted = int(rng.integers(1, most + 1))
    for _ in range(20):
        mutation = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
        if mutation(rng, copy):
            done.append(mutation.__name__)
        if len(done) == wanted:
            break
    return copy, "+".join(done)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


def _node(rng: Generator, model: ModelProto) -> NodeProto | None:
    nodes = list(_nodes(model.graph))
    return nodes[int(rng.integers(len(nodes)))] if nodes else None


def _attribute(rng: Generator, model: ModelProto) -> tuple[NodeProto, AttributeProto] | None:
    pairs = [(node, attribute) for node in _nodes(model.graph) for attribute in node.attribute]
    return pairs[int(rng.integers(len(pairs)))] if pairs else None


def attribute_value(rng: Generator, model: ModelProto) -> bool:
    found = _attribute(rng, model)
    if found is None:
        return False
    attribute = found[1]
    if attribute.type == AttributeProto.INT:
        attribute.i = int(rng.choice(np.array(INTS)))
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = float(rng.choice(FLOATS))
    elif attribute.type == AttributeProto.STRING:
        attribute.s = TEXTS[int(rng.integers(len(TEXTS)))]
    elif attribute.type == AttributeProto.INTS and attribute.ints:
        attribute.ints[int(rng.integers(len(attribute.ints)))] = int(rng.choice(np.array(INTS)))
    elif attribute.type == AttributeProto.FLOATS and attribute.floats:
        attribute.floats[int(rng.integers(len(attribute.floats)))] = float(rng.choice(FLOATS))
    elif attribute.type == AttributeProto.STRINGS and attribute.strings:
        attribute.strings[int(rng.integers(len(attribute.strings)))] = TEXTS[int(rng.integers(len(TEXTS)))]
    elif attribute.type == AttributeProto.TENSOR:
        _spoil(rng, attribute.t)
    else:
        return False
    return True


def attribute_length(rng: Generator, model: ModelProto) -> bool:
    found = _attribute(rng, model)
    field = found and {6: "floats", 7: "ints", 8: "strings"}.get(found[1].type)
    if not found or not field:
        return False
    values = getattr(found[1], field)
    kept = list(values)[: int(rng.integers(len(values) + 1))] if rng.random() < 0.5 else [*values, *values, *values][:9]
    del values[:]
    values.extend(kept)
    return True


def attribute_type(rng: Generator, model: ModelProto) -> bool:
    found = _attribute(rng, model)
    if found is None:
        return False
    others = (1, 2.5, "text", [1, 2], [0.5], ["a", "b"], numpy_helper.from_array(np.arange(3)))
    found[1].CopyFrom(helper.make_attribute(found[1].name, others[int(rng.integers(len(others)))]))
    return True


def attribute_gone(rng: Generator, model: ModelProto) -> bool:
    found = _attribute(rng, model)
    if found is not None:
        found[0].attribute.remove(found[1])
    return found is not None


def attribute_twice(rng: Generator, model: ModelProto) -> bool:
    found = _attribute(rng, model)
    if found is not None:
        found[0].attribute.append(found[1])
    return found is not None


def operand_gone(rng: Generator, model: ModelProto) -> bool:
    node = _node(rng, model)
    if node is None or not node.input:
        return False
    place = int(rng.integers(len(node.input)))
    if rng.random() < 0.5:
        node.input[place] = ""
    else:
        del node.input[place:]
    return True


def operand_other(rng: Generator, model: ModelProto) -> bool:
    node = _node(rng, model)
    names = [value.name for value in model.graph.input] + [tensor.name for tensor in model.graph.initializer]
    if node is None or not node.input or not names:
        return False
    name = names[int(rng.integers(len(names)))]
    if rng.random() < 0.3:
        node.input.append(name)
    else:
        node.input[int(rng.integers(len(node.input)))] = name
    return True


def result_name(rng: Generator, model: ModelProto) -> bool:
    node = _node(rng, model)
    names = [name for other in _nodes(model.graph) for name in (*other.output, *other.input)]
    if node is None or not node.output or not names:
        return False
    way = int(rng.integers(3))
    if way == 0:
        node.output[int(rng.integers(len(node.output)))] = names[int(rng.integers(len(names)))]
    elif way == 1:
        node.output.append("one_more")
    else:
        node.output[int(rng.integers(len(node.output)))] = ""
    return True


def input_shape(rng: Generator, model: ModelProto) -> bool:
    inputs = [value for value in model.graph.input if value.type.HasField("tensor_type")]
    if not inputs:
        return False
    dims = inputs[int(rng.integers(len(inputs)))].type.tensor_type.shape.dim
    way = int(rng.integers(4)) if dims else 1
    if way == 0:
        dims[int(rng.integers(len(dims)))].dim_value = int(rng.choice(SIZES))
    elif way == 1:
        dims.add().dim_value = int(rng.choice(SIZES))
    elif way == 2:
        del dims[int(rng.integers(len(dims))) :]
    else:
        dims[int(rng.integers(len(dims)))].dim_param = "n"
    return True


def input_type(rng: Generator, model: ModelProto) -> bool:
    inputs = [value for value in model.graph.input if value.type.HasField("tensor_type")]
    if inputs:
        inputs[int(rng.integers(len(inputs)))].type.tensor_type.elem_type = int(rng.integers(0, 24))
    return bool(inputs)


def input_known(rng: Generator, model: ModelProto) -> bool:
    """An operand becomes a constant, with numbers that mean nothing."""
    inputs = [v for v in model.graph.input if v.type.tensor_type.elem_type in (1, 3, 6, 7, 9)]
    if not inputs:
        return False
    value = inputs[int(rng.integers(len(inputs)))]
    shape = [min(max(dim.dim_value, 0), 20) for dim in value.type.tensor_type.shape.dim][:4]
    drawn = rng.choice(np.array(INTS), size=shape) if rng.random() < 0.5 else rng.integers(-3, 9, size=shape)
    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    tensor = numpy_helper.from_array(np.asarray(drawn).astype(dtype), value.name)
    model.graph.initializer.append(tensor)
    model.graph.input.remove(value)
    return True


def initializer(rng: Generator, model: ModelProto) -> bool:
    tensors = model.graph.initializer
    if tensors:
        _spoil(rng, tensors[int(rng.integers(len(tensors)))])
    return bool(tensors)


def _spoil(rng: Generator, tensor: TensorProto) -> None:
    way = int(rng.integers(3))
    if way == 0:
        tensor.dims.append(int(rng.choice(SIZES)))
    elif way == 1 and tensor.dims:
        tensor.dims[int(rng.integers(len(tensor.dims)))] = int(rng.choice(SIZES))
    else:
        tensor.data_type = int(rng.integers(0, 24))


def operator(rng: Generator, model: ModelProto) -> bool:
    nodes = list(_nodes(model.graph))
    if len(nodes) > 1:
        first, second = (nodes[int(rng.integers(len(nodes)))] for _ in range(2))
        first.op_type = second.op_type
    return len(nodes) > 1


def opset(rng: Generator, model: ModelProto) -> bool:
    entries = [entry for entry in model.opset_import if entry.domain == ""]
    if entries:
        entries[0].version = int(rng.integers(-1, 30))
    return bool(entries)


def output_type(rng: Generator, model: ModelProto) -> bool:
    outputs = [value for value in model.graph.output if value.type.HasField("tensor_type")]
    if not outputs:
        return False
    type = outputs[int(rng.integers(len(outputs)))].type.tensor_type
    if rng.random() < 0.5:
        type.elem_type = int(rng.integers(0, 24))
    elif type.shape.dim:
        del type.shape.dim[-1]
    else:
        type.shape.dim.add().dim_value = 3
    return True


def body(rng: Generator, model: ModelProto) -> bool:
    bodies = [a.g for node in _nodes(model.graph) for a in node.attribute if a.type == AttributeProto.GRAPH]
    if not bodies:
        return False
    graph = bodies[int(rng.integers(len(bodies)))]
    lists = [values for values in (graph.input, graph.output, graph.node) if values]
    if not lists:
        return False
    values = lists[int(rng.integers(len(lists)))]
    place = int(rng.integers(len(values)))
    if rng.random() < 0.5:
        del values[place]
    else:
        values.append(values[place])
    return True


MUTATIONS: tuple[Mutation, ...] = (
    attribute_value, attribute_value, attribute_value, attribute_length, attribute_type, attribute_gone,
    attribute_twice, operand_gone, operand_other, result_name, input_shape, input_shape, input_type, input_known,
    input_known, initializer, operator, opset, output_type, body,
)  # fmt: skip
