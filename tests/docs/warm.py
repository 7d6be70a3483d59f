"""`mccompile` as a process that has imported everything already: a command is a fork of it, which saves half a second.

What a command gets is its own: arguments, folder, environment, standard streams; what it gives is an exit code.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as to:
    to.connect("{address}")
    said = json.dumps([os.getcwd(), sys.argv[1:], dict(os.environ)]).encode()
    socket.send_fds(to, [len(said).to_bytes(4, "big")], [0, 1, 2])
    to.sendall(said)
    sys.exit(int(to.recv(16) or 70))
"""


class Warm:
    """The process that waits; `client` is the text of a command that asks it."""

    def __init__(self, folder: Path) -> None:
        address = folder / "warm"
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(address))
        self.listening.listen()
        self.client = CLIENT.format(python=sys.executable, address=address)
        command = [sys.executable, "-m", "tests.docs.warm", str(self.listening.fileno())]
        self.process = subprocess.Popen(command, cwd=TOP, pass_fds=[self.listening.fileno()])

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.listening.close()


def serve(listening: socket.socket) -> None:
    import mccompile.cli.reports
    import mccompile.driver
    import mccompile.measure.correctness
    import mccompile.measure.cost
    import mccompile.quantize.quantize  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    listening.settimeout(5)
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            to, _ = listening.accept()
        except TimeoutError:
            continue
        size, streams, _, _ = socket.recv_fds(to, 4, 3)
        said = b""
        while len(said) < int.from_bytes(size, "big"):
            said += to.recv(1 << 16)
        if os.fork() == 0:
            to.sendall(str(answer(json.loads(said), streams)).encode())
            sys.exit(0)  # not at once: processes that a command has begun are still to be told that they may end
        for stream in streams:
            os.close(stream)
        to.close()


def answer(said: tuple[str, list[str], dict[str, str]], streams: list[int]) -> int:
    """The exit code of a command, in the process that is its own."""
    from mccompile.cli import run

    folder, arguments, environment = said
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    code = run(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
