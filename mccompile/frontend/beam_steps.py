"""Steps of beam_search.py, as functions of ONNX operators.

Rows are the sequences that are followed, the beams of one batch after the other. Tokens are int32 [rows, tokens],
scores float [rows, vocabulary], sums of scores [rows, 1], a length is one int64. Who has ended is bool [batch, 1]; what
ended is int32 [batch, beams, tokens], and what it is worth [batch, beams], the best first.
"""

from __future__ import annotations

from .growing_loops import OWN

FUNCTIONS = (
    # Each row as often as there are beams.
    """SearchRows <beams> (x) => (rows) {
        count = Constant <value_int : int = @beams> ()
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        size = Shape <start = 0, end = 1> (x)
        number = Squeeze (size)
        all = Mul (number, count)
        places = Range (zero, all, one)
        from = Div (places, count)
        rows = Gather <axis = 0> (x, from)
    }""",
    # The batch of each row.
    """SearchBatches <beams> (rows) => (batches) {
        count = Constant <value_int : int = @beams> ()
        batches = Div (rows, count)
    }""",
    # The first beam of a batch is the only one to begin with; nothing has ended.
    f"""SearchBeamsBegin <beams, totals, pad> (sequences, count, mask, nothing)
        => (each, counts, masks, sums, ended, worth) {{
        each = {OWN}.SearchRows <beams : int = @beams> (sequences)
        counts = {OWN}.SearchRows <beams : int = @beams> (count)
        masks = {OWN}.SearchRows <beams : int = @beams> (mask)
        begin = Constant <value_ints = [0]> ()
        number = Constant <value_int : int = @beams> ()
        width = Unsqueeze (number, begin)
        batch = Shape <start = 0, end = 1> (sequences)
        most = Shape <start = 1> (sequences)
        pairs = Concat <axis = 0> (batch, width)
        firsts = Constant <value_floats : floats = @totals> ()
        wide = Expand (firsts, pairs)
        column = Constant <value_ints = [-1, 1]> ()
        sums = Reshape (wide, column)
        places = Concat <axis = 0> (pairs, most)
        fill = Constant <value_int : int = @pad> ()
        filled = CastLike (fill, sequences)
        ended = Expand (filled, places)
        worth = Expand (nothing, pairs)
    }}""",
    # Sums by length. What is impossible is still better than `nothing`, which stands where no sequence ended: the
    # lowest float stands for it, which no other sum has.
    """SearchWorth (sums, power, nothing) => (worth) {
        lowest = Constant <value_float = -3.4028234663852886e38> ()
        second = Constant <value_float = -3.4028232635611926e38> ()
        share = Div (sums, power)
        impossible = Equal (share, nothing)
        possible = Max (share, second)
        worth = Where (impossible, lowest, possible)
    }""",
    # The best of what had ended and of what ends now.
    """SearchBest (ended, worth, more, values) => (best, valued) {
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        axis = Constant <value_ints = [1]> ()
        width = Shape <start = 1> (worth)
        scores = Concat <axis = 1> (worth, values)
        sequences = Concat <axis = 1> (ended, more)
        valued, which = TopK (scores, width)
        batch = Shape <start = 0, end = 1> (worth)
        number = Squeeze (batch)
        numbers = Range (zero, number, one)
        column = Unsqueeze (numbers, axis)
        twice = Add (width, width)
        starts = Mul (column, twice)
        places = Add (which, starts)
        last = Shape <start = 2> (ended)
        open = Constant <value_ints = [-1]> ()
        flat = Concat <axis = 0> (open, last)
        rows = Reshape (sequences, flat)
        best = Gather <axis = 0> (rows, places)
    }""",
    # What follows each row, and which rows end.
    f"""SearchBeams <eos, pad, early, beams>
        (scores, length, sequences, done, totals, ended, worth, exponent, nothing)
        => (token, going, parents, longer, over, sums, best, valued) {{
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        begin = Constant <value_ints = [0]> ()
        axis = Constant <value_ints = [1]> ()
        open = Constant <value_ints = [-1]> ()
        column = Constant <value_ints = [-1, 1]> ()
        count = Constant <value_int : int = @beams> ()
        width = Unsqueeze (count, begin)
        twice = Add (width, width)
        pair = Add (count, count)

        added = Add (scores, totals)
        vocabulary = Shape <start = 1> (scores)
        words = Squeeze (vocabulary)
        across = Mul (width, vocabulary)
        shape = Concat <axis = 0> (open, across)
        together = Reshape (added, shape)
        likely, places = TopK (together, twice)
        beam = Div (places, words)
        tokens = Mod (places, words)
        batch = Shape <start = 0, end = 1> (done)
        number = Squeeze (batch)
        numbers = Range (zero, number, one)
        batches = Unsqueeze (numbers, axis)
        firsts = Mul (batches, count)
        owners = Add (beam, firsts)

        end = Constant <value_int : int = @eos> ()
        ends = Equal (tokens, end)
        order = Range (zero, pair, one)
        left = Sub (pair, order)
        keys = Where (ends, zero, left)
        key, chosen = TopK (keys, width)
        kept = GatherElements <axis = 1> (likely, chosen)
        word = GatherElements <axis = 1> (tokens, chosen)
        owner = GatherElements <axis = 1> (owners, chosen)
        none = CastLike (zero, kept)
        fill = Constant <value_int : int = @pad> ()
        sum = Where (done, none, kept)
        next = Where (done, fill, word)
        parent = Where (done, zero, owner)
        sums = Reshape (sum, column)
        tall = Reshape (next, column)
        token = Cast <to = 6> (tall)
        parents = Reshape (parent, open)
        before = Gather <axis = 0> (sequences, parents)
        sizes = Shape <start = 1> (sequences)
        most = Squeeze (sizes)
        slots = Range (zero, most, one)
        here = Equal (slots, length)
        longer = Where (here, token, before)

        some = Slice (ends, begin, width, axis)
        awake = Not (done)
        valid = And (some, awake)
        far = CastLike (length, scores)
        power = Pow (far, exponent)
        value = Slice (likely, begin, width, axis)
        share = {OWN}.SearchWorth (value, power, nothing)
        values = Where (valid, share, nothing)
        rows = Slice (owners, begin, width, axis)
        more = Gather <axis = 0> (sequences, rows)
        best, valued = {OWN}.SearchBest (ended, worth, more, values)

        final = Sub (width, axis)
        worst = Slice (valued, final, width, axis)
        full = Greater (worst, nothing)
        flat = Reshape (likely, open)
        window = Add (firsts, order)
        seen = Gather (flat, window)
        highest = ReduceMax <keepdims = 1> (seen, axis)
        could = {OWN}.SearchWorth (highest, power, nothing)
        beaten = GreaterOrEqual (worst, could)
        hurry = Constant <value_int : int = @early> ()
        hurried = Cast <to = 9> (hurry)
        enough = Or (beaten, hurried)
        ready = And (full, enough)
        over = Or (done, ready)
        counted = Cast <to = 7> (over)
        all = ReduceMin <keepdims = 0> (counted)
        nobody = Cast <to = 9> (all)
        going = Not (nobody)
    }}""",
    # Rows that are still followed end where there is no room for more.
    f"""SearchEnd <beams, returned> (sequences, done, totals, ended, worth, exponent, nothing, length)
        => (tokens, scores) {{
        begin = Constant <value_ints = [0]> ()
        axis = Constant <value_ints = [1]> ()
        open = Constant <value_ints = [-1]> ()
        count = Constant <value_int : int = @beams> ()
        width = Unsqueeze (count, begin)
        pairs = Concat <axis = 0> (open, width)
        sums = Reshape (totals, pairs)
        far = CastLike (length, totals)
        power = Pow (far, exponent)
        share = {OWN}.SearchWorth (sums, power, nothing)
        values = Where (done, nothing, share)
        sizes = Shape <start = 1> (sequences)
        shape = Concat <axis = 0> (pairs, sizes)
        rows = Reshape (sequences, shape)
        best, valued = {OWN}.SearchBest (ended, worth, rows, values)
        number = Constant <value_int : int = @returned> ()
        first = Unsqueeze (number, begin)
        tokens = Slice (best, begin, first, axis)
        returned = Slice (valued, begin, first, axis)
        lowest = Constant <value_float = -3.4028234663852886e38> ()
        impossible = Equal (returned, lowest)
        scores = Where (impossible, nothing, returned)
    }}""",
)
