"""A serial line, or what stands for one: a device, a pseudo-terminal, or a TCP connection."""

from __future__ import annotations

import socket
import time
from typing import Any, Protocol

from mccompile.base.errors import Problem, WrongUse
from mccompile.base.extras import install
from mccompile.base.records import dataclass

BAUD = 115200
_WAIT = 0.02  # seconds that a read waits for a byte
_TCP = "tcp:"


class Line(Protocol):
    def send(self, contents: bytes) -> None: ...

    def close(self) -> None: ...

    def receive(self) -> bytes:
        """What has come; nothing, where none comes for a short while."""


@dataclass(frozen=True)
class Port:
    """As a user names it: /dev/ttyACM0, COM3, tcp:HOST:PORT."""

    name: str
    baud: int = BAUD
    flash: str = ""  # a command of the user's that brings a build onto the board; "": the board has it

    def open(self, comes_back: float = 0.0) -> Line:
        """`comes_back`: seconds that a board which was flashed may be away."""
        until = time.monotonic() + comes_back
        while True:
            try:
                return _tcp(self.name) if self.name.startswith(_TCP) else _device(self)
            except WrongUse:
                if time.monotonic() >= until:
                    raise
            time.sleep(_WAIT)


class _Socket:
    def __init__(self, name: str, connection: socket.socket) -> None:
        self._name, self._connection = name, connection

    def send(self, contents: bytes) -> None:
        try:
            self._connection.sendall(contents)
        except OSError as error:
            raise _gone(self._name, str(error)) from error

    def receive(self) -> bytes:
        try:
            contents = self._connection.recv(4096)
        except TimeoutError:
            return b""
        except OSError as error:
            raise _gone(self._name, str(error)) from error
        if not contents:
            raise _gone(self._name, "the other end has closed it")
        return contents

    def close(self) -> None:
        self._connection.close()


class _Device:
    def __init__(self, name: str, device: Any, errors: type[Exception]) -> None:
        self._name, self._device, self._errors = name, device, errors

    def send(self, contents: bytes) -> None:
        try:
            self._device.write(contents)
        except self._errors as error:
            raise _gone(self._name, str(error)) from error

    def receive(self) -> bytes:
        try:
            return bytes(self._device.read(max(1, self._device.in_waiting)))
        except (self._errors, OSError) as error:
            raise _gone(self._name, str(error)) from error

    def close(self) -> None:
        self._device.close()


def _tcp(name: str) -> Line:
    host, _, port = name.removeprefix(_TCP).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise WrongUse(Problem(f"{name!r} names no port", "--serial", "", "write it as tcp:localhost:5000"))
    try:
        connection = socket.create_connection((host, int(port)), timeout=5)
    except OSError as error:
        fix = "start what listens there, and give its port"
        raise WrongUse(Problem(f"cannot connect to {name}", "--serial", str(error), fix)) from error
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # requests are short and wait for answers
    connection.settimeout(_WAIT)
    return _Socket(name, connection)


def _device(port: Port) -> Line:
    try:
        import serial
    except ImportError:
        fix = f"{install('serial')}, or give tcp:HOST:PORT"
        raise WrongUse(Problem(f"cannot open {port.name}", "--serial", "pyserial is not installed", fix)) from None
    try:
        device = serial.Serial(port.name, port.baud, timeout=_WAIT)
    except (serial.SerialException, ValueError) as error:
        fix = "give the board's port, such as /dev/ttyACM0 or COM3, that no other program has open"
        raise WrongUse(Problem(f"cannot open {port.name}", "--serial", str(error), fix)) from error
    return _Device(port.name, device, serial.SerialException)


def _gone(name: str, why: str) -> WrongUse:
    return WrongUse(Problem(f"{name} is gone", "--serial", why, "connect the board again, and start again"))
