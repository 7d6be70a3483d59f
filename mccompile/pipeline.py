"""THE ordered lists of passes, and nothing else. Each pass is one file; its place in the order is decided here."""

from __future__ import annotations

from .passes.api import GraphPass, ProgramPass
from .passes.graph.assign_layout import assign_layout
from .passes.graph.block_products import block_products
from .passes.graph.clean_up import clean_up
from .passes.graph.cut_regions import cut_regions
from .passes.graph.drop_channels.drop_channels import drop_channels
from .passes.graph.eliminate_common_subexpressions import eliminate_common_subexpressions
from .passes.graph.eliminate_dead import eliminate_dead
from .passes.graph.fold_constants import fold_constants, fold_dequantized
from .passes.graph.fuse_batchnorm import fuse_batchnorm
from .passes.graph.fuse_pad import fuse_pad
from .passes.graph.gather_onehot_products import gather_onehot_products
from .passes.graph.gather_quantized import gather_quantized
from .passes.graph.lower_qdq.lower_qdq import lower_qdq
from .passes.graph.merge_parallel.merge_parallel import merge_parallel
from .passes.graph.move_factors import move_factors
from .passes.graph.move_gather.move_gather import move_gather
from .passes.graph.move_reshape import move_reshape
from .passes.graph.move_resize import move_resize
from .passes.graph.recognise_idioms.recognise_idioms import recognise_idioms
from .passes.graph.simplify_algebra import simplify_algebra
from .passes.graph.tile_columns.tile_columns import tile_columns
from .passes.graph.widen_floats import widen_floats
from .passes.graph.write_gradients import write_gradients
from .passes.program.band_products import band_products
from .passes.program.block_channels import block_channels
from .passes.program.bring_tensors import bring_tensors
from .passes.program.bring_weights import bring_weights
from .passes.program.bufferize import bufferize
from .passes.program.cap_weights import cap_weights
from .passes.program.choose_kernels.choose_kernels import choose_kernels
from .passes.program.copy_column_tiles import copy_column_tiles
from .passes.program.copy_partial_states import copy_partial_states
from .passes.program.cut_slices import cut_slices
from .passes.program.eliminate_dead_calls import eliminate_dead_calls
from .passes.program.fetch_input_rows import fetch_input_rows
from .passes.program.fuse import fuse
from .passes.program.fuse_attention import fuse_attention
from .passes.program.fuse_bottlenecks import fuse_bottlenecks
from .passes.program.fuse_line_buffers import fuse_line_buffers
from .passes.program.fuse_recurrent_inputs import fuse_recurrent_inputs
from .passes.program.global_pool_to_reduce import global_pool_to_reduce
from .passes.program.keep_int8_weights import keep_int8_weights
from .passes.program.known_numbers import known_numbers
from .passes.program.known_ranges import known_ranges
from .passes.program.lay_channels_last import lay_channels_last
from .passes.program.lay_over_operands import lay_over_operands
from .passes.program.limit_errors.limit_errors import limit_errors
from .passes.program.narrow_weights import narrow_weights
from .passes.program.order_calls import order_calls
from .passes.program.pack_constants import pack_constants
from .passes.program.pack_low_bit_weights import pack_low_bit_weights
from .passes.program.place_outside import place_outside
from .passes.program.planar_windows import planar_windows
from .passes.program.recast_convolutions import recast_convolutions
from .passes.program.recompute_activations import recompute_activations
from .passes.program.select_kernels import select_kernels
from .passes.program.share_tables import share_tables
from .passes.program.share_work import share_work
from .passes.program.split_dilations import split_dilations
from .passes.program.split_groups import split_groups
from .passes.program.split_phases import split_phases
from .passes.program.split_reductions import split_reductions
from .passes.program.split_weights import split_weights
from .passes.program.tile_product_rows import tile_product_rows
from .passes.program.top_one import top_one
from .passes.program.trim_windows import trim_windows
from .passes.program.turn_groups import turn_groups
from .passes.program.window_transforms import window_transforms

GRAPH_PASSES: tuple[GraphPass, ...] = (
    GraphPass("write_gradients", write_gradients, optional=False),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("fold_constants", fold_constants),
    GraphPass("widen_floats", widen_floats),
    GraphPass("simplify_algebra", simplify_algebra),
    GraphPass("eliminate_common_subexpressions", eliminate_common_subexpressions),
    GraphPass("move_gather", move_gather),
    GraphPass("cut_regions", cut_regions, optional=False),
    GraphPass("lower_qdq", lower_qdq),
    GraphPass("block_products", block_products),
    GraphPass("gather_quantized", gather_quantized),
    GraphPass("fold_dequantized", fold_dequantized),
    GraphPass("recognise_idioms", recognise_idioms),
    GraphPass("gather_onehot_products", gather_onehot_products),
    GraphPass("move_factors", move_factors),
    GraphPass("move_reshape", move_reshape),
    GraphPass("move_resize", move_resize),
    GraphPass("fuse_pad", fuse_pad),
    GraphPass("fuse_batchnorm", fuse_batchnorm),
    GraphPass("drop_channels", drop_channels),
    GraphPass("merge_parallel", merge_parallel),
    GraphPass("tile_columns", tile_columns),
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
    ProgramPass("fuse_recurrent_inputs", fuse_recurrent_inputs),
    ProgramPass("band_products", band_products),
    ProgramPass("tile_product_rows", tile_product_rows),
    ProgramPass("copy_partial_states", copy_partial_states),
    ProgramPass("fetch_input_rows", fetch_input_rows, optional=False),
    ProgramPass("place_outside", place_outside, optional=False),
    ProgramPass("split_phases", split_phases),
    ProgramPass("copy_column_tiles", copy_column_tiles),
    ProgramPass("keep_int8_weights", keep_int8_weights),
    ProgramPass("pack_low_bit_weights", pack_low_bit_weights),
    ProgramPass("narrow_weights", narrow_weights, optional=False),
    ProgramPass("trim_windows", trim_windows),
    ProgramPass("recast_convolutions", recast_convolutions),
    ProgramPass("fuse_bottlenecks", fuse_bottlenecks),
    ProgramPass("block_channels", block_channels),
    ProgramPass("top_one", top_one),
    ProgramPass("global_pool_to_reduce", global_pool_to_reduce),
    ProgramPass("split_reductions", split_reductions),
    ProgramPass("turn_groups", turn_groups),
    ProgramPass("lay_channels_last", lay_channels_last),
    ProgramPass("lay_over_operands", lay_over_operands),
    ProgramPass("split_dilations", split_dilations),
    ProgramPass("split_groups", split_groups),
    ProgramPass("split_weights", split_weights),
    ProgramPass("known_ranges", known_ranges),
    ProgramPass("limit_errors", limit_errors),
    ProgramPass("cap_weights", cap_weights),
    ProgramPass("choose_kernels", choose_kernels),
    ProgramPass("share_tables", share_tables),
    ProgramPass("select_kernels", select_kernels, optional=False),
    ProgramPass("order_calls", order_calls),
    ProgramPass("recompute_activations", recompute_activations),
    ProgramPass("fuse_line_buffers", fuse_line_buffers),
    ProgramPass("bring_tensors", bring_tensors, optional=False),
    ProgramPass("share_work", share_work),
    ProgramPass("cut_slices", cut_slices, optional=False),
    ProgramPass("bufferize", bufferize),
    ProgramPass("pack_constants", pack_constants, optional=False),
    ProgramPass("bring_weights", bring_weights, optional=False),
)


def chosen(
    optimize: bool, without: frozenset[str] = frozenset()
) -> tuple[tuple[GraphPass, ...], tuple[ProgramPass, ...]]:
    """The passes to run: all, or with `optimize` off only those that compiling needs; never those named in
    `without`."""

    def wanted(step: GraphPass | ProgramPass) -> bool:
        return not step.optional or (optimize and step.name not in without)

    return tuple(p for p in GRAPH_PASSES if wanted(p)), tuple(p for p in PROGRAM_PASSES if wanted(p))
