"""Text: arrays of str."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges


@judges("StringConcat")
def string_concat(at: NodeSite) -> Array:
    return np.asarray(at[0] + at[1], object)


@judges("StringSplit")
def string_split(at: NodeSite) -> tuple[Array, Array]:
    by, most = at.attr("delimiter") or None, at.attr("maxsplit", -1)
    parts = [each.split(by, most) for each in at[0].reshape(-1)]
    if any(each != each.strip(" ") and most >= 0 and by is None for each in at[0].reshape(-1)):
        raise NoWitness("ONNX does not say which white space remains after the last split")
    longest = max((len(each) for each in parts), default=0)
    rows = [each + [""] * (longest - len(each)) for each in parts]
    counts = np.array([len(each) for each in parts], np.int64)
    return np.array(rows, object).reshape(*at[0].shape, longest), counts.reshape(at[0].shape)


@judges("StringNormalizer")
def string_normalizer(at: NodeSite) -> Array:
    exact = bool(at.attr("is_case_sensitive", 0))
    stop = {each if exact else each.lower() for each in at.attr("stopwords") or ()}
    kept = [each for each in at[0].reshape(-1) if (each if exact else each.lower()) not in stop]
    how = at.attr("case_change_action", "NONE")
    kept = [each.lower() if how == "LOWER" else each.upper() if how == "UPPER" else each for each in kept] or [""]
    found = np.array(kept, object)
    return found.reshape(1, -1) if at[0].ndim == 2 else found


@judges("RegexFullMatch")
def regex_full_match(at: NodeSite) -> Array:
    pattern = at.attr("pattern", "")
    if re.search(r"\\[pPCQEz]|\(\?[^:iP]|\[\[", pattern):
        raise NoWitness("a pattern that RE2 and Python read differently")
    found = [re.fullmatch(pattern, each) is not None for each in at[0].reshape(-1)]
    return np.array(found, bool).reshape(at[0].shape)


@judges("TfIdfVectorizer")
def tf_idf(at: NodeSite) -> Array:
    pool = at.attr("pool_strings") or at.attr("pool_int64s")
    starts, places = at.attr("ngram_counts"), at.attr("ngram_indexes")
    weights = at.attr("weights") or [1.0] * len(places)
    grams: dict[tuple[Any, ...], int] = {}
    number = 0
    for length, (start, end) in enumerate(zip(starts, [*starts[1:], len(pool)], strict=True), 1):
        for first in range(start, end, length):
            grams[tuple(pool[first : first + length])] = number
            number += 1
    x = at[0]
    rows = [_counted(at, list(row), grams, places, weights) for row in np.atleast_2d(x)]
    return np.array(rows) if x.ndim == 2 else np.array(rows)[0]


def _counted(at: NodeSite, row: list[Any], grams: dict[tuple[Any, ...], int], places: list[int], weights: Any) -> Array:
    counts = np.zeros(len(places))
    shortest, longest = at.attr("min_gram_length"), at.attr("max_gram_length")
    for length in range(shortest, longest + 1):
        for skip in range(at.attr("max_skip_count") + 1 if length > 1 else 1):
            for first in range(len(row) - (length - 1) * (skip + 1)):
                gram = tuple(row[first + n * (skip + 1)] for n in range(length))
                if gram in grams:
                    counts[grams[gram]] += 1
    found = np.zeros(max(places) + 1)
    how = at.attr("mode", "TF")
    for n, place in enumerate(places):
        count = min(counts[n], 1) if how == "IDF" else counts[n]
        found[place] += count if how == "TF" else count * weights[n]
    return found


@judges("com.microsoft::Tokenizer")
def tokenizer(at: NodeSite) -> Array:
    """Only by single characters or by separators that are plain text."""
    separators = at.attr("separators") or []
    if at.attr("tokenexp") or any(re.escape(each) != each for each in separators if each):
        raise NoWitness("tokens by an expression")
    if at.attr("mincharnum", 1) > 1 and not separators:
        raise NoWitness("shortest tokens of one character")
    rows = []
    for text in at[0].reshape(-1):
        tokens = list(text)
        if any(separators):
            tokens = [text]
            for each in separators:
                tokens = [part for token in tokens for part in token.split(each)]
        tokens = [token for token in tokens if len(token) >= max(at.attr("mincharnum", 1), 1)]
        rows.append(["\x02", *tokens, "\x03"] if at.attr("mark", 0) else tokens)
    longest = max((len(row) for row in rows), default=0)
    if any(text == "" for text in at[0].reshape(-1)):
        raise NoWitness("tokens of empty text")
    pad = at.attr("pad_value", "")
    return np.array([row + [pad] * (longest - len(row)) for row in rows], object).reshape(*at[0].shape, longest)
