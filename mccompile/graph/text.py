"""Prints and reads graphs.

    graph net {
      dim batch in 1..8
      input %x: f32[batch,16]
      const %w: f32[16,4] = #9f86d081884c7d65
      %y: f32[batch,4] = MatMul(%x, %w) from "dense/MatMul"
      output %y
    }

Constants appear as content hashes; the contents go to a side file (`constants_of`, `Constants`). Reading gives a graph
that prints the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from ..base import dims
from ..base.constant import Constant
from ..base.tensor import TensorType
from ..base.text import Reader, write, write_fields
from .ir import Fact, Graph, Node, Op, Value, constant_fact

Constants = Mapping[str, Constant]  # by digest


def show(graph: Graph) -> str:
    """The graph as text."""
    return "\n".join(_lines(graph, "graph ", set())) + "\n"


def constants_of(graph: Graph) -> dict[str, Constant]:
    """What `show` refers to by hash."""
    held = (*graph.constants(), *(value for value in graph.initial.values() if value is not None))
    return {value.constant.digest: value.constant for value in held if value.constant is not None}


def name_text(name: str) -> str:
    return f"%{name}" if re.fullmatch(r"[A-Za-z_][\w.]*", name) else f"%{json.dumps(name)}"


def _lines(graph: Graph, head: str, known: set[Value]) -> list[str]:
    lines = [f"{head}{json.dumps(graph.name)} {{"]
    if not known:
        found = {s for v in graph.values() for dim in v.type.shape for s in dims.symbols(dim)}
        lines += [f"  dim {s.name} in {s.low}..{s.high}" for s in sorted(found)]
    lines += [f"  fact {json.dumps(fact)}" for fact in graph.assumptions]
    lines += [f"  state {name_text(before)} = {name_text(after)}" for before, after in graph.states.items()]
    for name, value in graph.initial.items():
        begins = "zeros"
        if value is not None and value.constant is not None:
            begins = f"{name_text(value.name)}: {value.type} = #{value.constant.digest}"
        lines.append(f"  initial {name_text(name)} = {begins}")
    lines += [f"  length {name_text(name)} = {symbol}" for name, symbol in graph.lengths.items()]
    lines += [f"  input {name_text(v.name)}: {v.type}" for v in graph.inputs]
    known = known | set(graph.inputs)
    for value in graph.constants():
        if value not in known and value.constant is not None:
            lines.append(f"  const {name_text(value.name)}: {value.type} = #{value.constant.digest}")
            known.add(value)
    for node in graph.nodes:
        lines += _node_lines(node, known)
        known.update(node.present_outputs)
    lines += [f"  output {name_text(v.name)}" for v in graph.outputs]
    return [*lines, "}"]


def _node_lines(node: Node, known: set[Value]) -> list[str]:
    results = ", ".join(f"{name_text(v.name)}: {v.type}" if v else "none" for v in node.outputs)
    operands = ", ".join(name_text(v.name) if v else "none" for v in node.inputs)
    attributes = write_fields(node.op)
    line = f"  {results} = {node.op.qualified_name.replace('::', '.')}({operands})"
    if attributes:
        line += f" {{{attributes}}}"
    if node.provenance:
        line += f" from {', '.join(map(write, node.provenance))}"
    lines = [line]
    for region in node.regions:
        inner = _lines(region, "region ", known)
        lines += [f"    {text}" for text in inner]
    return lines


def read(text: str, resolve: Callable[[str, str], type[Op]], constants: Constants, name: str = "graph text") -> Graph:
    """The graph that `show` printed; `resolve(domain, name)` finds the operator class (KeyError: there is none)."""
    return _GraphReader(text, resolve, constants, name).graph("graph", {})


class _GraphReader:
    def __init__(self, text: str, resolve: Callable[[str, str], type[Op]], constants: Constants, name: str) -> None:
        # `1..8` would be read as the number `1.` and more
        text = re.sub(r"(?m)^(\s*dim \w+ in -?\d+)\.\.(-?\d+)$", r"\1 , \2", text)
        self.reader = Reader(text, name)
        self.resolve, self.constants = resolve, constants

    def graph(self, head: str, outer: dict[str, Value]) -> Graph:
        reader = self.reader
        reader.expect(head)
        graph = Graph(reader.string())
        reader.expect("{")
        values = dict(outer)
        while not reader.take("}"):
            if reader.take("dim"):
                reader.bounded_symbol()
            elif reader.take("fact"):
                graph.assumptions[reader.string()] = None
            elif reader.take("state"):
                before = self.reader.value_name()
                reader.expect("=")
                graph.states[before] = self.reader.value_name()
            elif reader.take("initial"):
                name = self.reader.value_name()
                reader.expect("=")
                graph.initial[name] = None if reader.take("zeros") else self._constant()
            elif reader.take("length"):
                name = self.reader.value_name()
                reader.expect("=")
                (graph.lengths[name],) = dims.symbols(reader.symbols[reader.word()])
            elif reader.take("input"):
                value = self._declared()
                graph.inputs.append(value)
                values[value.name] = value
            elif reader.take("const"):
                value = self._constant()
                values[value.name] = value
            elif reader.take("output"):
                graph.outputs.append(self._known(values))
            else:
                self._node(graph, values)
        return graph

    def _constant(self) -> Value:
        value = self._declared()
        self.reader.expect("=")
        digest = self.reader.advance().removeprefix("#")
        if digest not in self.constants:
            raise self.reader.error(f"constant #{digest} is not in the side file")
        value.constant = self.constants[digest]
        value.fact = constant_fact(value.constant)
        return value

    def _declared(self) -> Value:
        name = self.reader.value_name()
        self.reader.expect(":")
        text = self.reader.through("]")
        try:
            return Value(name, Fact(TensorType.parse(text, self.reader.symbols)))
        except (KeyError, ValueError, SyntaxError):
            raise self.reader.error(f"{text!r} is not a type") from None

    def _known(self, values: dict[str, Value]) -> Value:
        name = self.reader.value_name()
        if name not in values:
            raise self.reader.error(f"%{name} is not made above this line")
        return values[name]

    def _node(self, graph: Graph, values: dict[str, Value]) -> None:
        reader = self.reader
        outputs: list[Value | None] = []
        while not reader.take("="):
            outputs.append(None if reader.take("none") else self._declared())
            reader.take(",")
        domain, _, op_name = reader.word().rpartition(".")
        try:
            cls = self.resolve(domain, op_name)
        except KeyError:
            raise reader.error(f"there is no operator {op_name!r}") from None
        reader.expect("(")
        inputs: list[Value | None] = []
        while not reader.take(")"):
            inputs.append(None if reader.take("none") else self._known(values))
            reader.take(",")
        op = reader.record(cls, "}") if reader.take("{") else cls()
        provenance: list[str] = []
        if reader.take("from"):
            provenance.append(reader.string())
            while reader.take(","):
                provenance.append(reader.string())
        regions = []
        while reader.at("region"):
            regions.append(self.graph("region", values))
        node = graph.add(Node(op, inputs, outputs, tuple(provenance), regions))
        for value, fact in zip(outputs, op.infer(node.site()), strict=False):
            if value is not None:
                value.fact = Fact(value.type, fact.value)
                values[value.name] = value
