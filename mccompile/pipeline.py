"""THE ordered lists of passes, and nothing else. Each pass is one file; its place in the order is decided here."""

from __future__ import annotations

from .passes.api import GraphPass, ProgramPass
from .passes.graph.assign_layout import assign_layout
from .passes.graph.block_products import block_products
from .passes.graph.clean_up import clean_up
from .passes.graph.drop_channels.drop_channels import drop_channels
from .passes.graph.eliminate_dead import eliminate_dead
from .passes.graph.fold_constants import fold_constants, fold_dequantized
from .passes.graph.fuse_batchnorm import fuse_batchnorm
from .passes.graph.fuse_pad import fuse_pad
from .passes.graph.gather_quantized import gather_quantized
from .passes.graph.look_up_rows import look_up_rows
from .passes.graph.lower_qdq.lower_qdq import lower_qdq
from .passes.graph.merge_parallel.merge_parallel import merge_parallel
from .passes.graph.move_factors import move_factors
from .passes.graph.move_reshape import move_reshape
from .passes.graph.move_resize import move_resize
from .passes.graph.recognise_idioms.recognise_idioms import recognise_idioms
from .passes.graph.share_common import share_common
from .passes.graph.simplify_algebra import simplify_algebra
from .passes.graph.split_columns.split_columns import split_columns
from .passes.graph.widen_floats import widen_floats
from .passes.program.absorb_products import absorb_products
from .passes.program.band_products import band_products
from .passes.program.bind_storage import bind_storage
from .passes.program.block_channels import block_channels
from .passes.program.block_rows import block_rows
from .passes.program.byte_weights import byte_weights
from .passes.program.choose_kernels.choose_kernels import choose_kernels
from .passes.program.eliminate_dead_calls import eliminate_dead_calls
from .passes.program.fetch_rows import fetch_rows
from .passes.program.few_bits import few_bits
from .passes.program.form_rows import form_rows
from .passes.program.fuse import fuse
from .passes.program.fuse_attention import fuse_attention
from .passes.program.fuse_bottlenecks import fuse_bottlenecks
from .passes.program.known_numbers import known_numbers
from .passes.program.limit_errors.limit_errors import limit_errors
from .passes.program.narrow_weights import narrow_weights
from .passes.program.order_calls import order_calls
from .passes.program.pack_constants import pack_constants
from .passes.program.part_states import part_states
from .passes.program.place_outside import place_outside
from .passes.program.planar_windows import planar_windows
from .passes.program.select_kernels import select_kernels
from .passes.program.share_work import share_work
from .passes.program.split_phases import split_phases
from .passes.program.spread_columns import spread_columns
from .passes.program.trim_windows import trim_windows
from .passes.program.window_transforms import window_transforms

GRAPH_PASSES: tuple[GraphPass, ...] = (
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("fold_constants", fold_constants),
    GraphPass("widen_floats", widen_floats),
    GraphPass("simplify_algebra", simplify_algebra),
    GraphPass("share_common", share_common),
    GraphPass("lower_qdq", lower_qdq),
    GraphPass("block_products", block_products),
    GraphPass("gather_quantized", gather_quantized),
    GraphPass("fold_dequantized", fold_dequantized),
    GraphPass("recognise_idioms", recognise_idioms),
    GraphPass("look_up_rows", look_up_rows),
    GraphPass("move_factors", move_factors),
    GraphPass("move_reshape", move_reshape),
    GraphPass("move_resize", move_resize),
    GraphPass("fuse_pad", fuse_pad),
    GraphPass("fuse_batchnorm", fuse_batchnorm),
    GraphPass("drop_channels", drop_channels),
    GraphPass("merge_parallel", merge_parallel),
    GraphPass("split_columns", split_columns),
    GraphPass("assign_layout", assign_layout),
    GraphPass("clean_up", clean_up),
)

PROGRAM_PASSES: tuple[ProgramPass, ...] = (
    ProgramPass("eliminate_dead_calls", eliminate_dead_calls),
    ProgramPass("known_numbers", known_numbers),
    ProgramPass("fuse", fuse),
    ProgramPass("planar_windows", planar_windows),
    ProgramPass("fuse_attention", fuse_attention),
    ProgramPass("window_transforms", window_transforms),
    ProgramPass("absorb_products", absorb_products),
    ProgramPass("band_products", band_products),
    ProgramPass("block_rows", block_rows),
    ProgramPass("part_states", part_states),
    ProgramPass("fetch_rows", fetch_rows, optional=False),
    ProgramPass("place_outside", place_outside, optional=False),
    ProgramPass("split_phases", split_phases),
    ProgramPass("spread_columns", spread_columns),
    ProgramPass("byte_weights", byte_weights),
    ProgramPass("few_bits", few_bits),
    ProgramPass("narrow_weights", narrow_weights, optional=False),
    ProgramPass("trim_windows", trim_windows),
    ProgramPass("fuse_bottlenecks", fuse_bottlenecks),
    ProgramPass("block_channels", block_channels),
    ProgramPass("limit_errors", limit_errors),
    ProgramPass("choose_kernels", choose_kernels),
    ProgramPass("select_kernels", select_kernels, optional=False),
    ProgramPass("order_calls", order_calls),
    ProgramPass("form_rows", form_rows),
    ProgramPass("share_work", share_work),
    ProgramPass("bind_storage", bind_storage),
    ProgramPass("pack_constants", pack_constants, optional=False),
)


def chosen(
    optimize: bool, without: frozenset[str] = frozenset()
) -> tuple[tuple[GraphPass, ...], tuple[ProgramPass, ...]]:
    """The passes to run: all, or with `optimize` off only those that compiling needs; never those named in
    `without`."""

    def wanted(step: GraphPass | ProgramPass) -> bool:
        return not step.optional or (optimize and step.name not in without)

    return tuple(p for p in GRAPH_PASSES if wanted(p)), tuple(p for p in PROGRAM_PASSES if wanted(p))
