"""A model on loopback: answers from a script over real HTTP, in both dialects, and can be made to misbehave."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """One answer. ``text`` is the model's reply; with ``status`` another one than 200 it is the endpoint's error."""

    text: str = ""
    status: int = 200
    cut: bool = False
    """Whether the endpoint says that the reply ended at the cap."""
    output: int | None = None
    """Tokens that it says it wrote (default: a quarter of the characters)."""
    usage: bool = True
    raw: bytes | None = None
    """The body as it is."""
    lacking: int = 0
    """Bytes that are promised and never sent."""
    hang_up: bool = False
    stall: bool = False
    """Sends half of the answer and then nothing more until the endpoint is closed."""
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def system(self) -> str:
        return str(self.body.get("system") or self.body["messages"][0]["content"])

    @property
    def turns(self) -> list[str]:
        return [m["content"] for m in self.body["messages"] if m["role"] != "system"]

    @property
    def most(self) -> int:
        return int(self.body.get("max_tokens") or self.body["max_completion_tokens"])

    @property
    def role(self) -> str:
        """Which of smith's roles is asked, told by what its prompt says."""
        first = self.turns[0]
        marks = {
            "design": "Write a better task around this change",
            "repair": "Mend exactly this",
            "review": "Review this task before agents",
            "investigate": "Say nothing that you cannot quote",
        }
        return next(role for role, mark in marks.items() if mark in first)


Script = Callable[[Asked], Say]


@dataclass
class Endpoint:
    """``script`` answers every request; all are kept in ``asked``."""

    script: Script
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def roles(self) -> list[str]:
        return [asked.role for asked in self.asked]


def in_turn(*says: Say) -> Script:
    """One answer after the other; the last one for ever."""
    left = list(says)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


@contextlib.contextmanager
def serving(script: Script) -> Iterator[Endpoint]:
    """An endpoint that listens on loopback until the end of the block."""
    endpoint = Endpoint(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length))
            asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            with endpoint.lock:
                endpoint.asked.append(asked)
                say = endpoint.script(asked)
            self._answer(asked, say)

        def _answer(self, asked: Asked, say: Say) -> None:
            self.close_connection = True
            if say.hang_up:
                return
            data = say.raw if say.raw is not None else json.dumps(document(asked, say)).encode()
            self.send_response(say.status)
            for name, value in {"Content-Type": "application/json", **say.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data) + say.lacking))
            self.end_headers()
            if say.stall:
                self.wfile.write(data[: len(data) // 2])
                self.wfile.flush()
                endpoint.closing.wait(30)
                return
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def document(asked: Asked, say: Say) -> dict[str, Any]:
    """The JSON of an answer in the dialect of the request."""
    if say.status != 200:
        return {"error": {"message": say.text, "type": "error", "code": say.code}}
    read = 20 + sum(len(turn) for turn in (asked.system, *asked.turns)) // 4
    wrote = say.output if say.output is not None else min(len(say.text) // 4 + 1, asked.most - 1)
    if asked.path.endswith("/v1/messages"):
        told: dict[str, Any] = {"input_tokens": read - 10, "cache_read_input_tokens": 10, "output_tokens": wrote}
        reply: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "..."}, {"type": "text", "text": say.text}],
            "stop_reason": "max_tokens" if say.cut else "end_turn",
        }
    else:
        told = {"prompt_tokens": read, "completion_tokens": wrote, "prompt_tokens_details": {"cached_tokens": 10}}
        message = {"role": "assistant", "content": say.text}
        reply = {"choices": [{"index": 0, "message": message, "finish_reason": "length" if say.cut else "stop"}]}
    return {**reply, **({"usage": told} if say.usage else {})}
