"""Start a program beside a door to the gateway: ``python -m smith.inside.forward SOCKET PORT GRACE -- COMMAND...``.

Programs that speak to models want an address, and the sandbox's own loopback is all the network there is. What comes
to 127.0.0.1:PORT goes to the Unix socket SOCKET and back. Once the gateway says that no further call can succeed, the
program has GRACE seconds to end by itself. The exit status is the program's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

CHUNK = 65536


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    for one, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            one.shutdown(how)


def _carry(client: socket.socket, path: str) -> None:
    with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gateway:
        try:
            gateway.connect(path)
        except OSError:
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_pump, args=(gateway, client), daemon=True)
        back.start()
        _pump(client, gateway)
        back.join()


def _serve(listener: socket.socket, path: str) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_carry, args=(client, path), daemon=True).start()


def _end_when_over(program: subprocess.Popen[bytes], path: str, grace_s: float) -> None:
    """Wait for the gateway's word that it is over, then for the program, then kill what is left of it."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gateway:
        gateway.connect(path)
        gateway.sendall(b"GET /smith/over HTTP/1.1\r\nHost: gateway\r\n\r\n")
        if not gateway.recv(CHUNK).startswith(b"HTTP/1.1 200"):
            return
        time.sleep(grace_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


def main(words: list[str]) -> int:
    """Listen, start, wait."""
    path, port, grace_s = words[0], int(words[1]), float(words[2])
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
    program = subprocess.Popen(words[words.index("--") + 1 :], stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_end_when_over, args=(program, path, grace_s), daemon=True).start()
    status = program.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
