"""Steps of decoder_search.py, as functions of ONNX operators.

Tokens are int32 [batch, tokens], scores float [batch, vocabulary], a length is one int64.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import FunctionProto, parser

from . import beam_steps
from .growing_loops import OWN
from .scope import FunctionKey

_HEADER = f'<domain: "{OWN}", opset_import: ["" : 18, "{OWN}" : 1]>'
_FUNCTIONS = (
    # Which tokens count, where they stand, how many there are, and room for those to come.
    """SearchBegin <most, pad> (ids) => (mask, positions, count, sequences, done) {
        fill = Constant <value_int : int = @pad> ()
        filled = Cast <to = 6> (fill)
        skipped = Equal (ids, filled)
        counts = Not (skipped)
        mask = Cast <to = 6> (counts)
        one = Constant <value_int = 1> ()
        wide = Cast <to = 7> (counts)
        sums = CumSum (wide, one)
        places = Sub (sums, one)
        none = Sub (one, one)
        placed = Where (counts, places, none)
        positions = Cast <to = 6> (placed)
        axis = Constant <value_ints = [1]> ()
        count = ReduceSum <keepdims = 1> (wide, axis)
        size = Shape <start = 1> (ids)
        all = Constant <value_ints : ints = @most> ()
        more = Sub (all, size)
        begin = Constant <value_ints = [0, 0, 0]> ()
        pads = Concat <axis = 0> (begin, more)
        sequences = Pad (ids, pads, filled)
        done = Less (count, none)
    }""",
    # Where the next token stands; it counts.
    """SearchNext (count, trip, mask) => (positions, longer) {
        place = Add (count, trip)
        positions = Cast <to = 6> (place)
        counts = Equal (count, count)
        one = Cast <to = 6> (counts)
        longer = Concat <axis = 1> (mask, one)
    }""",
    # Keys and values of no token.
    """SearchPast <before, behind, type> (ids) => (past) {
        batch = Shape <end = 1> (ids)
        a = Constant <value_ints : ints = @before> ()
        b = Constant <value_ints : ints = @behind> ()
        shape = Concat <axis = 0> (a, batch, b)
        none = ConstantOfShape (shape)
        past = Cast <to : int = @type> (none)
    }""",
    # Scores behind the last token.
    "SearchScores (logits) => (scores) { last = Constant <value_int = -1> ()"
    " each = Gather <axis = 1> (logits, last) scores = Cast <to = 1> (each) }",
    # Which tokens of the vocabulary are among those that are marked.
    """SearchAmong (scores, tokens, marks) => (among) {
        size = Shape (scores)
        one = Constant <value_int = 1> ()
        spare = Gather (size, one)
        index = Where (marks, tokens, spare)
        row = Constant <value_ints = [0, 1]> ()
        room = Add (size, row)
        unseen = ConstantOfShape (room)
        shape = Shape (tokens)
        floats = Cast <to = 1> (marks)
        full = Expand (floats, shape)
        touched = ScatterElements <axis = 1> (unseen, index, full)
        begin = Constant <value_ints = [0]> ()
        axis = Constant <value_ints = [1]> ()
        spares = Unsqueeze (spare, begin)
        cut = Slice (touched, begin, spares, axis)
        among = Cast <to = 9> (cut)
    }""",
    # Which tokens of the vocabulary occur already.
    f"""SearchSeen (scores, sequences, length) => (seen) {{
        shape = Shape (sequences)
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        most = Gather (shape, one)
        places = Range (zero, most, one)
        there = Less (places, length)
        tokens = Cast <to = 7> (sequences)
        seen = {OWN}.SearchAmong (scores, tokens, there)
    }}""",
    # Tokens that occur already become less likely.
    f"""SearchPenalty (scores, sequences, length, penalty) => (changed) {{
        seen = {OWN}.SearchSeen (scores, sequences, length)
        worse = Mul (scores, penalty)
        less = Div (scores, penalty)
        zero = Constant <value_int = 0> ()
        nothing = CastLike (zero, scores)
        below = Less (scores, nothing)
        punished = Where (below, worse, less)
        changed = Where (seen, punished, scores)
    }}""",
    # Tokens that occur already are not chosen.
    f"""SearchOnce (scores, sequences, length, lowest) => (changed) {{
        seen = {OWN}.SearchSeen (scores, sequences, length)
        changed = Where (seen, lowest, scores)
    }}""",
    # Tokens that would repeat a window of the sequence are not chosen.
    f"""SearchWindows <before> (scores, sequences, length, lowest) => (changed) {{
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        axis = Constant <value_ints = [1]> ()
        offsets = Constant <value_ints : ints = @before> ()
        count = Size (offsets)
        shape = Shape (sequences)
        most = Gather (shape, one)
        ends = Range (count, most, one)
        column = Unsqueeze (ends, axis)
        starts = Sub (column, count)
        places = Add (starts, offsets)
        tokens = Cast <to = 7> (sequences)
        windows = Gather <axis = 1> (tokens, places)
        first = Sub (length, count)
        now = Add (first, offsets)
        held = Max (now, zero)
        recent = Gather <axis = 1> (tokens, held)
        latest = Unsqueeze (recent, axis)
        same = Equal (windows, latest)
        alike = Cast <to = 7> (same)
        behind = Constant <value_ints = [2]> ()
        matches = ReduceMin <keepdims = 0> (alike, behind)
        matched = Cast <to = 9> (matches)
        there = Less (ends, length)
        long = GreaterOrEqual (first, zero)
        possible = And (there, long)
        repeats = And (matched, possible)
        followers = Gather <axis = 1> (tokens, ends)
        banned = {OWN}.SearchAmong (scores, followers, repeats)
        changed = Where (banned, lowest, scores)
    }}""",
    "SearchMask (scores, kept, lowest) => (changed) {"
    " keeps = Cast <to = 9> (kept) changed = Where (keeps, scores, lowest) }",
    # The sequence does not end before it is long enough.
    """SearchLonger <eos> (scores, length, least, lowest) => (changed) {
        size = Shape (scores)
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        number = Gather (size, one)
        tokens = Range (zero, number, one)
        end = Constant <value_int : int = @eos> ()
        is_end = Equal (tokens, end)
        wide = Cast <to = 7> (least)
        short = Less (length, wide)
        banned = And (is_end, short)
        changed = Where (banned, lowest, scores)
    }""",
    # The likeliest token; sequences that have ended are filled.
    """SearchChoice <eos, pad> (scores, sequences, length, done) => (token, longer, ended, going) {
        best = ArgMax <axis = 1, keepdims = 1> (scores)
        end = Constant <value_int : int = @eos> ()
        ends = Equal (best, end)
        ended = Or (ends, done)
        fill = Constant <value_int : int = @pad> ()
        chosen = Where (ended, fill, best)
        token = Cast <to = 6> (chosen)
        shape = Shape (sequences)
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        most = Gather (shape, one)
        places = Range (zero, most, one)
        here = Equal (places, length)
        longer = Where (here, token, sequences)
        counted = Cast <to = 7> (ended)
        all = ReduceMin <keepdims = 0> (counted)
        over = Cast <to = 9> (all)
        going = Not (over)
    }""",
)


def functions() -> Mapping[FunctionKey, FunctionProto]:
    made = [parser.parse_function(f"{_HEADER} {text}") for text in (*_FUNCTIONS, *beam_steps.FUNCTIONS)]
    return {(OWN, each.name, ""): each for each in made}
