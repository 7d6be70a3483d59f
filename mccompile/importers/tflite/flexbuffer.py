"""Attributes of custom operators: a map of names to numbers, as a flexbuffer.

Invariant: every place that is read is checked; maps that hold anything but numbers are read without that.
"""

from __future__ import annotations

import struct

from ...graph.ir import Invalid

_INT, _UINT, _FLOAT, _MAP, _BOOL = 1, 2, 3, 9, 26
_FORMATS = {_INT: "bhiq", _UINT: "BHIQ", _BOOL: "BHIQ"}
_MOST_KEYS = 1000


def read_map(data: bytes) -> dict[str, float]:
    """Raises Invalid."""
    try:
        return _Flexbuffer(data).numbers()
    except (struct.error, IndexError, KeyError, ValueError):
        raise Invalid("its attributes are damaged") from None


class _Flexbuffer:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def unsigned(self, place: int, width: int) -> int:
        if place < 0:
            raise IndexError(place)
        return int(struct.unpack_from({1: "<B", 2: "<H", 4: "<I", 8: "<Q"}[width], self.data, place)[0])

    def numbers(self) -> dict[str, float]:
        """Of the root, which is a map: keys and values, both in the order of names."""
        width, packed = self.data[-1], self.data[-2]
        root = len(self.data) - 2 - width
        if packed >> 2 != _MAP:
            raise ValueError
        place, width = root - self.unsigned(root, width), 1 << (packed & 3)
        count = self.unsigned(place - width, width)
        if count > _MOST_KEYS:
            raise ValueError
        keys = place - 3 * width - self.unsigned(place - 3 * width, width)
        key_width = self.unsigned(place - 2 * width, width)
        found = {}
        for number in range(count):
            at = keys + number * key_width
            start = at - self.unsigned(at, key_width)
            name = self.data[start : self.data.index(b"\0", start)].decode()
            value = self.number(place + number * width, width, self.data[place + count * width + number])
            if value is not None:
                found[name] = value
        return found

    def number(self, place: int, width: int, packed: int) -> float | None:
        kind = packed >> 2
        if kind == _FLOAT:
            return float(struct.unpack_from({2: "<e", 4: "<f", 8: "<d"}[width], self.data, place)[0])
        if kind not in _FORMATS:
            return None
        return float(struct.unpack_from("<" + _FORMATS[kind][width.bit_length() - 1], self.data, place)[0])
