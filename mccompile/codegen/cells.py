"""What kernels of recurrent layers share: what their functions and the parameters of these are called."""

from __future__ import annotations

from ..kernels.api import Call, Kernel, elementwise_alias
from ..kinds.recurrent import Recurrent
from .loops import size_name


class Cells(Kernel):
    kind = Recurrent

    def label(self, call: Call) -> str:
        time, batch, directions, _ = call.ins[0].shape
        return f"{call.of(Recurrent).cell}_{'x'.join(map(size_name, (time, batch, directions, call.ins[1].shape[2])))}"

    def states_alias(self, call: Call) -> dict[tuple[int, int], int]:
        """A state may be written over the one that it starts from."""
        kind, alias = call.of(Recurrent), {}
        for out, start in (("h", "h0"), ("c", "c0")):
            if out in kind.gives and start in kind.uses:
                pair = kind.gives.index(out), kind.names.index(start)
                if elementwise_alias(call, pair[1], pair[0]):
                    alias[pair] = 0
        return alias

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        kind = call.of(Recurrent)
        return [f"{name}_out" for name in kind.gives], [f"{name}_in" for name in kind.names]
