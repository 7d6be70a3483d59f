"""Subgraphs within others, and variables."""

from __future__ import annotations

from onnx import ValueInfoProto, helper

from ....graph.ir import Invalid, Unsupported
from ..file import Tensor
from ..onnx_nodes import Writer
from ..scope import Scope
from ..site import Site, converts, onnx_type


@converts("VAR_HANDLE")
def _var_handle(site: Site) -> None:
    options = site.options("VarHandleOptions")
    name = options.text("SharedName") or options.text("Container") or site.out().name
    site.scope.handles[site.operator.outputs[0]] = name


@converts("READ_VARIABLE")
def _read_variable(site: Site) -> None:
    site.store(site.scope.whole.variable(site.handle(0), site.out()).now)


@converts("ASSIGN_VARIABLE")
def _assign_variable(site: Site) -> None:
    tensor = site.tensor(1)
    site.assign(site.scope.whole.variable(site.handle(0), tensor), site.stored(1))


@converts("CALL_ONCE")
def _call_once(site: Site) -> None:
    """What the first run does before all others: variables begin with constants."""
    whole, number = site.scope.whole, site.options("CallOnceOptions")["InitSubgraphIndex"]
    if not 0 <= number < len(whole.model.subgraphs):
        raise Invalid(f"it calls subgraph {number}, and there are {len(whole.model.subgraphs)}")
    scope = Scope(whole, number, Writer(whole.shared))
    for operator in scope.subgraph.operators:
        inner = Site(operator, scope)
        if operator.name == "VAR_HANDLE":
            _var_handle(inner)
        elif operator.name == "ASSIGN_VARIABLE":
            key = inner.handle(0)
            whole.firsts[key] = inner.array(1)
            if key in whole.variables:
                whole.variables[key].first = inner.array(1)
        else:
            raise Unsupported(f"the subgraph that it calls has the operator {operator.name}")


@converts("IF")
def _if(site: Site) -> None:
    options = site.options("IfOptions")
    branches = {}
    for name, field in (("then_branch", "ThenSubgraphIndex"), ("else_branch", "ElseSubgraphIndex")):
        writer = Writer(site.shared)
        inside = site.scope.inside(options[field], _operands(site, 1), _handles(site, 1), writer, True)
        branches[name] = writer.graph(name, [], _results(site, inside, writer))
    made = site.ops("If", site.reshape(site.stored(0)), outs=len(site.operator.outputs), **branches)
    for index, value in enumerate(made):
        site.store(value, index)


@converts("WHILE")
def _while(site: Site) -> None:
    """Loop computes the condition of the next trip at the end of each; variables are read from outside."""
    options, handles = site.options("WhileOptions"), _handles(site, 0)
    condition, number = options["CondSubgraphIndex"], options["BodySubgraphIndex"]
    operands = _operands(site, 0)
    carried = [value for value in operands if value is not None]
    goes_on = site.scope.inside(condition, operands, handles, site, False).result(0)
    body = Writer(site.shared)
    take = site.shared.names.take
    trip, before = take("trip"), take("before")
    given = [None if value is None else take(f"{site.title}/carried") for value in operands]
    for name, value in zip(given, operands, strict=True):
        if site.scope.whole.types is not None and name is not None and value is not None:
            site.scope.whole.types.alike(name, value)
    inside = site.scope.inside(number, given, handles, body, True)
    after = [None if value is None else inside.result(place) for place, value in enumerate(operands)]
    again = site.scope.inside(condition, after, handles, body, True).result(0)
    titles = [
        helper.make_tensor_value_info(trip, onnx_type("INT64"), ()),
        helper.make_tensor_value_info(before, onnx_type("BOOL"), ()),
        *(_info(name, site.tensor(place)) for place, name in enumerate(given) if name is not None),
    ]
    results = [_passed(body, body.reshape(again), "BOOL", ())]
    results += [
        _passed(body, value, site.tensor(place).type, None) for place, value in enumerate(after) if value is not None
    ]
    graph = body.graph("body", titles, results)
    made = iter(site.ops("Loop", "", site.reshape(goes_on), *carried, outs=len(carried), body=graph))
    for index, value in enumerate(operands):
        if value is not None:
            site.store(next(made), index)
        elif site.wants(index):
            site.scope.handles[site.operator.outputs[index]] = handles[index]


@converts("STABLEHLO_COMPOSITE")
def _composite(site: Site) -> None:
    """As the file writes it out."""
    number = site.options("StableHLOCompositeOptions")["DecompositionSubgraphIndex"]
    inside = site.scope.inside(number, _operands(site, 0), _handles(site, 0), site, False)
    for index in range(len(site.operator.outputs)):
        site.store(inside.result(index), index)


def _operands(site: Site, first: int) -> list[str | None]:
    """Values that a subgraph is given, without variables."""
    inputs = range(first, site.count)
    return [None if site.operator.inputs[index] in site.scope.handles else site.stored(index) for index in inputs]


def _handles(site: Site, first: int) -> dict[int, str]:
    found = site.operator.inputs[first:]
    return {place: site.scope.handles[n] for place, n in enumerate(found) if n in site.scope.handles}


def _results(site: Site, inside: Scope, writer: Writer) -> list[ValueInfoProto]:
    count = len(site.operator.outputs)
    if len(inside.subgraph.outputs) != count:
        raise Invalid(f"subgraph {inside.number} returns {len(inside.subgraph.outputs)} values, and {count} are taken")
    return [_passed(writer, inside.result(index), site.out(index).type, None) for index in range(count)]


def _passed(writer: Writer, value: str, type: str, shape: tuple[int, ...] | None) -> ValueInfoProto:
    """A value as an output of a region, which is one of its own."""
    return helper.make_tensor_value_info(writer.op("Identity", value), onnx_type(type), shape)


def _info(name: str, tensor: Tensor) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx_type(tensor.type), tensor.dims)
