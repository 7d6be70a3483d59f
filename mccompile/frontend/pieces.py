"""A model with operators that only its user knows, run in pieces: what lies between these by a runtime, they themselves
by the user's Python.

Invariant: a piece is what the operands of one such node, or the outputs, need of what is not known yet; each becomes a
session once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, ValueInfoProto, helper

from ..base.own_functions import OwnFunction
from .ordering import names_read
from .own_functions import runs

Arrays = dict[str, Any]


class Pieces:
    """Of a file's model, whose nodes are in order. Runs as a session of the runtime does."""

    def __init__(self, model: bytes, own: Sequence[OwnFunction], session: Callable[[bytes], Any]) -> None:
        self.model, self.session = ModelProto.FromString(model), session
        self.nodes = [(node, runs(own, node)) for node in self.model.graph.node]
        self.makers = {name: node for node, _ in self.nodes for name in node.output if name}
        self.sessions: dict[tuple[str, ...], Any] = {}

    @property
    def has_own(self) -> bool:
        return any(own is not None for _, own in self.nodes)

    def run(self, names: Sequence[str], inputs: Mapping[str, Any]) -> list[Any]:
        known: Arrays = dict(inputs)
        for node, own in self.nodes:
            if own is None:
                continue
            self._find([name for name in node.input if name], known)
            attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
            try:
                made = own([known.get(name) for name in node.input], attributes)
            except Exception as error:  # whatever a user's Python raises
                raise RuntimeError(f"{node.op_type}: {type(error).__name__}: {error}") from error
            known |= dict(zip(node.output, made, strict=False))
        self._find(names, known)
        return [known[name] for name in names]

    def _find(self, names: Iterable[str], known: Arrays) -> None:
        """Adds what is missing."""
        missing = tuple(dict.fromkeys(name for name in names if name not in known))
        if not missing:
            return
        nodes, given = self._behind(missing, known)
        if missing not in self.sessions:
            self.sessions[missing] = self.session(self._piece(nodes, {name: known[name] for name in given}, missing))
        if self.sessions[missing] is None:
            raise RuntimeError(f"the runtime does not take what makes {missing[0]}")
        found = self.sessions[missing].run(list(missing), {name: known[name] for name in given})
        known |= dict(zip(missing, found, strict=True))

    def _behind(self, names: Iterable[str], known: Arrays) -> tuple[list[NodeProto], list[str]]:
        """The nodes that make tensors, in order, and what these are given of what is known."""
        asked, needed, given = list(names), set[str](), dict[str, None]()
        while asked:
            name = asked.pop()
            if name in known:
                given[name] = None
            elif name in self.makers and name not in needed:
                node = self.makers[name]
                needed |= {*node.output}
                asked += names_read(node)
        return [node for node, _ in self.nodes if needed & {*node.output} - {""}], list(given)

    def _piece(self, nodes: Sequence[NodeProto], given: Mapping[str, Any], names: Sequence[str]) -> bytes:
        piece = ModelProto()
        piece.CopyFrom(self.model)
        graph = piece.graph
        del graph.node[:], graph.input[:], graph.output[:]
        graph.node.extend(nodes)
        for name, array in given.items():
            kind = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
            graph.input.append(helper.make_tensor_value_info(name, kind, None))
        graph.output.extend(ValueInfoProto(name=name) for name in names)
        return bytes(piece.SerializeToString())
