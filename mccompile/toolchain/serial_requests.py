"""Requests over a serial line, and their answers: frames of runtime_c/include/mcc_frame.h.

Invariant: bytes that are lost, doubled or broken on the way cost time and never change an answer. A board that says
nothing is given up within seconds; while it works on a long request, as soon as it takes longer than it is given.
"""

from __future__ import annotations

import secrets
import struct
import time
import zlib
from collections.abc import Iterator, Mapping

from mccompile.base.errors import CheckFailed, Problem

from ..base.records import dataclass
from .serial_line import BAUD, Line

HEAD, CRC = struct.Struct("<IB"), struct.Struct("<I")
DONE, REFUSED, BUSY, STOPPED = range(4)  # first bytes of answers
_GROUP = 254  # bytes without a zero that COBS tells of at once
_KEPT = 1 << 17  # bytes, while no frame ends
_AGAIN = 0.25  # seconds without an answer until a request is sent again, besides what the line takes
_SILENT = 4.0  # seconds without any whole frame until a board is given up
_AT_ONCE = 4  # requests that are on the line, of those that may be
_SHORTEST = 64  # bytes of a body on a line that breaks longer ones
_LOOK_AGAIN = 8.0  # the most until a request is sent again that the board works on


@dataclass(frozen=True)
class Piece:
    """A request among several that do not depend on each other."""

    place: int
    body: bytes
    answer_bytes: int = 0


class Requests:
    """One conversation.

    Pieces go one behind the other without waiting for each answer, so the line is not idle while an answer is on its
    way. A board that cannot listen while it speaks loses some: then fewer are on the line, and shorter ones."""

    def __init__(self, line: Line, name: str, baud: int = BAUD) -> None:
        self.name = name
        self.sent = self.came = self.again = 0  # bytes, and requests that were sent again
        self._line, self._byte = line, 10 / baud  # seconds: eight bits, begin and end
        self._number = secrets.randbits(32)
        self._got = bytearray()
        self._whole = 0  # frames that came
        self._at_once = _AT_ONCE
        self.most = self.length = _SHORTEST  # bytes of a body: as the board takes them, and as suits the line now

    def ask(self, code: int, body: bytes = b"", answer_bytes: int = 0, patience: float = 0.0) -> tuple[int, bytes]:
        """How the board answers, and the rest of its answer, of so many bytes. `patience`: seconds that it may work on
        it in silence."""
        asked, frame = self._asked(code, body)
        wait = _AGAIN + 2 * (len(frame) + answer_bytes) * self._byte
        given_up = time.monotonic() + _SILENT + wait
        is_working = False
        while True:
            self._send(frame)
            end = min(time.monotonic() + wait, given_up)
            while time.monotonic() < end:
                for answer in self._frames():
                    given_up = max(given_up, time.monotonic() + _SILENT + wait)
                    if not answer.startswith(asked) or len(answer) == HEAD.size:
                        continue
                    if answer[HEAD.size] != BUSY:
                        return answer[HEAD.size], answer[HEAD.size + 1 :]
                    is_working = True
                    given_up = time.monotonic() + max(patience, _SILENT)
                    end = min(time.monotonic() + wait, given_up)
            if time.monotonic() >= given_up:
                raise self._silent(code, is_working, patience)
            self.again += 1
            wait = min(2 * wait, max(wait, _LOOK_AGAIN)) if is_working else wait

    def pieces(self, code: int, pieces: Iterator[Piece]) -> Iterator[tuple[int, int, bytes]]:
        """Of each piece its place, and how the board answers, in the order of answers. `pieces` are asked for as late
        as they can be: `length` is how long their bodies should be."""
        waiting: dict[bytes, tuple[Piece, bytes]] = {}
        sent: set[bytes] = set()  # of these, since the last time that none was answered
        given_up = time.monotonic() + _SILENT
        while True:
            self._fill(code, pieces, waiting, sent)
            if not waiting:
                return
            wait = _AGAIN + 2 * self._byte * sum(len(waiting[a][1]) + waiting[a][0].answer_bytes for a in sent)
            answers = self._answers(waiting, time.monotonic() + wait)
            for asked, answer in answers:
                piece, _ = waiting.pop(asked)
                sent.discard(asked)
                yield piece.place, answer[0], answer[1:]
            if answers:
                given_up = time.monotonic() + _SILENT + wait
                self.length = min(self.most, self.length + self.length // 8)
                continue
            if time.monotonic() >= given_up:
                raise self._silent(code, False, 0.0)
            self.again += len(sent)
            self._at_once, self.length = max(1, self._at_once // 2), max(_SHORTEST, self.length // 2)
            sent.clear()

    def _fill(
        self, code: int, pieces: Iterator[Piece], waiting: dict[bytes, tuple[Piece, bytes]], sent: set[bytes]
    ) -> None:
        """Sends as many as may be on the line; first those that were lost."""
        for asked, (_, frame) in waiting.items():
            if asked not in sent and len(sent) < self._at_once:
                self._send(frame)
                sent.add(asked)
        while len(waiting) < self._at_once and (piece := next(pieces, None)) is not None:
            asked, frame = self._asked(code, piece.body)
            waiting[asked] = piece, frame
            self._send(frame)
            sent.add(asked)

    def _answers(self, waiting: Mapping[bytes, object], end: float) -> list[tuple[bytes, bytes]]:
        """The next to come before the end: to which requests, and what."""
        while time.monotonic() < end:
            came = [(answer[: HEAD.size], answer[HEAD.size :]) for answer in self._frames()]
            found = {asked: answer for asked, answer in came if answer and asked in waiting}
            if found:
                return list(found.items())
        return []

    def _asked(self, code: int, body: bytes) -> tuple[bytes, bytes]:
        """What an answer begins with, and the frame of the request."""
        self._number = (self._number + 1) & 0xFFFFFFFF
        asked = HEAD.pack(self._number, code)
        return asked, b"\0" + encoded(_checked(asked + body)) + b"\0"  # the first zero ends what noise has begun

    def close(self) -> None:
        self._line.close()

    def failed(self, what: str, why: str, fix: str) -> CheckFailed:
        return CheckFailed(Problem(what, self.name, why, fix))

    def _send(self, frame: bytes) -> None:
        self.sent += len(frame)
        self._line.send(frame)

    def _frames(self) -> Iterator[bytes]:
        """Those that have come, without checksum; broken ones are left out."""
        came = self._line.receive()
        self.came += len(came)
        self._got += came
        if b"\0" not in came:
            del self._got[:-_KEPT]
            return
        *ended, rest = bytes(self._got).split(b"\0")
        self._got[:] = rest
        for each in ended:
            frame = decoded(each)
            if len(frame) >= HEAD.size + CRC.size and _checked(frame[: -CRC.size]) == frame:
                self._whole += 1
                yield frame[: -CRC.size]

    def _silent(self, code: int, is_working: bool, patience: float) -> CheckFailed:
        if is_working:
            why = f"it began, and has not said a word for {max(patience, _SILENT):.0f} s"
            fix = "reset it: it took a fault. Or a run takes longer: compile with --slices, and each step is told"
            return self.failed("the board does not come back from a run", why, fix)
        if self.came and not self._whole:
            why = f"{self.came} bytes came, and no whole frame"
            return self.failed("the board is not understood", why, "give the board's baud rate: --baud 9600")
        why = "it stopped answering" if self._whole else "nothing came"
        fix = "flash a program that calls what `mccompile serve` wrote, and see that port and --baud are its own"
        return self.failed("the board does not answer", f"{why}, at request {code}", fix)


def _checked(contents: bytes) -> bytes:
    return contents + CRC.pack(zlib.crc32(contents))


def encoded(contents: bytes) -> bytes:
    """By COBS: without zeros."""
    groups = bytearray()
    for piece in contents.split(b"\0"):
        while len(piece) >= _GROUP:
            groups += b"\xff" + piece[:_GROUP]
            piece = piece[_GROUP:]
        groups += bytes([len(piece) + 1]) + piece
    return bytes(groups)


def decoded(contents: bytes) -> bytes:
    """The opposite; nothing, where that is not a frame."""
    found, at = bytearray(), 0
    while at < len(contents):
        size = contents[at]
        found += contents[at + 1 : at + size]
        at += size
        if size <= _GROUP and at < len(contents):
            found.append(0)
    return bytes(found) if at == len(contents) else b""
