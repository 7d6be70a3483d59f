"""Ethos-U by Vela: operators on int8 or uint8 as one command stream, which Arm's driver starts.

Inputs are copied to where Vela has them in the scratch, outputs from there. No accelerator has run here: the calls are
tried with a stand-in of the driver.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ...base.errors import Problem, WrongUse
from ...base.extras import install
from ...graph.ir import Graph
from ..api import Accelerator, Built, No, Region, Unit
from .operators import orders_of, why_not, written
from .rounding import round_pools
from .vela import compiled

_MACS = {"ethos-u55": (32, 64, 128, 256), "ethos-u65": (256, 512), "ethos-u85": (128, 256, 512, 1024, 2048)}


class EthosU(Accelerator):
    names = tuple(f"{core}-{macs}" for core, sizes in _MACS.items() for macs in sizes)

    def check(self) -> None:
        if find_spec("ethosu") is None:
            why, fix = "its compiler Vela is not installed", install("ethos-u")
            raise WrongUse(Problem(f"nothing compiles for {self.name}", "--accelerator", why, fix))

    def takes(self, unit: Unit) -> No | None:
        reason = why_not(unit)
        return No(reason) if reason else None

    def build(self, region: Region) -> No | Built:
        writing, file = written(region)
        if isinstance(file, No):
            return file
        stream = compiled(file, self.name)
        if isinstance(stream, No):
            return stream
        values = (*region.inputs, *region.results)
        sizes = [value.type.max_bytes for value in values]
        driver = Path(__file__).with_name("ethosu_driver.h").read_text(encoding="utf-8")
        code = driver + _CODE.format(
            name=region.name,
            ins=len(region.inputs),
            outs=len(region.results),
            places=", ".join(f"{place}u" for place in stream.places),
            sizes=", ".join(f"{size}u" for size in sizes),
        )
        constants = [stream.commands, stream.weights]
        return Built(code, stream.cycles, constants, stream.scratch, 16, orders_of(values, writing), stream.waits)

    def round_there(self, stand_in: Graph) -> bool:
        return round_pools(stand_in)


_CODE = """
static int {name}(const mcc_external *call)
{{
    static const mcc_ethosu_region region = {{
        {ins}, {outs}, {{{places}}}, {{{sizes}}},
#ifdef MCC_STAND_IN
        {name}_stand_in
#endif
    }};
    return mcc_ethosu_run(call, &region);
}}
"""
