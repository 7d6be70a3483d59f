"""An accelerator that takes about half of all there is, and computes it with the stand-in. It fails where its constants
are not there."""

from __future__ import annotations

import zlib

import numpy as np

from mccompile.accelerators.api import Accelerator, Built, No, Region, Unit

ONE = """
static int NAME(const mcc_external *call)
{
    const void *inputs[INS];
    void *results[OUTS];
    for (int i = 0; i < INS; ++i) { inputs[i] = call->operands[i].data; }
    for (int i = 0; i < OUTS; ++i) { results[i] = call->results[i].data; }
    const uint8_t *table = (const uint8_t *)call->operands[INS].data;
    if ((uintptr_t)table % 16 != 0) { return 1; }
    for (int i = 0; i < COUNT; ++i) { if (table[i] != 7 * i % 256) { return 1; } }
    (void)memset(call->workspace, 0x5a, call->workspace_bytes);
    return NAME_stand_in(inputs, results);
}
"""


class Half(Accelerator):
    def takes(self, unit: Unit) -> No | None:
        values = [value for node in unit.nodes for value in (*node.present_inputs, *node.present_outputs)]
        if any(value.type.dtype.kind in ("string", "complex") or not value.type.count for value in values):
            return No("it has numbers only")
        if not unit.reads or any("Random" in node.op.name or node.op.domain == "mccompile" for node in unit.nodes):
            return No("it does not know the operator")
        return No("it takes the other half") if zlib.crc32("".join(unit.provenance).encode()) % 2 else None

    def build(self, region: Region) -> No | Built:
        code = ONE.replace("NAME", region.name).replace("INS", str(len(region.inputs)))
        table = (np.arange(40 + 16 * len(region.units)) * 7).astype(np.uint8)
        code = code.replace("OUTS", str(len(region.results))).replace("COUNT", str(table.size))
        turned = {value: tuple(reversed(range(value.type.rank))) for value in (*region.inputs[:1], *region.results[:1])}
        return Built(code, 0, [table], workspace=64, align=16, orders=turned if len(region.units) % 2 else {})
