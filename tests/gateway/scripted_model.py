"""A model on loopback that answers from a script over real HTTP: three dialects, streamed or not, tools, and faults."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """One answer of the model."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Tools that it calls: name and arguments."""
    thought: str = ""
    """Reasoning, in the dialect's own place."""
    status: int = 200
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    read: int = 20
    wrote: int = 7
    cached: int = 5
    usage: bool = True
    stop: str = ""
    """``length`` where the reply ended at the cap."""
    break_after: int | None = None
    """Events (of a stream) or bytes (of a whole answer) after which the connection breaks."""
    wait_s: float = 0.0
    """Before the answer, and before each event but the first."""
    hold: threading.Event | None = None
    """Waited for after the first event, or before a whole answer."""


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw: bytes

    @property
    def dialect(self) -> str:
        path = self.path.partition("?")[0]
        return "messages" if path.endswith("/messages") else "responses" if path.endswith("/responses") else "chat"

    @property
    def cap(self) -> int:
        keys = ("max_tokens", "max_completion_tokens", "max_output_tokens")
        return next(int(self.body[key]) for key in keys if key in self.body)

    @property
    def turns(self) -> list[Any]:
        return list(self.body["input" if self.dialect == "responses" else "messages"])


Script = Callable[[Asked], Say]


@dataclass
class Model:
    """``script`` answers every request; all are kept in ``asked``."""

    script: Script
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    busy: int = 0
    most: int = 0
    """The most requests that were under way at once."""


def in_turn(*says: Say) -> Script:
    """One answer after the other; the last one for ever."""
    left = list(says)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


@contextlib.contextmanager
def serving(script: Script) -> Iterator[Model]:
    """A model that listens on loopback until the end of the block."""
    model = Model(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(raw), raw)
            with model.lock:
                model.asked.append(asked)
                model.busy += 1
                model.most = max(model.most, model.busy)
                say = model.script(asked)
            try:
                self._say(asked, say)
            finally:
                with model.lock:
                    model.busy -= 1

        def _say(self, asked: Asked, say: Say) -> None:
            if say.status != 200:
                self._whole(say, json.dumps(_error(asked, say)).encode(), say.status)
            elif asked.body.get("stream"):
                self._stream(say, events(asked, say))
            else:
                if say.hold:
                    say.hold.wait(30)
                time.sleep(say.wait_s)
                self._whole(say, json.dumps(document(asked, say)).encode(), 200)

        def _whole(self, say: Say, data: bytes, status: int) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **say.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            broken = say.break_after is not None and status == 200
            self.wfile.write(data[: say.break_after] if broken else data)
            self.wfile.flush()
            self.close_connection = broken

        def _stream(self, say: Say, parts: list[bytes]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number, part in enumerate(parts):
                if number == say.break_after:
                    self.close_connection = True
                    self.wfile.flush()
                    self.connection.close()
                    return
                if number:
                    time.sleep(say.wait_s)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
                if number == 0 and say.hold:
                    say.hold.wait(30)
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()

        def handle(self) -> None:
            with contextlib.suppress(OSError, ValueError):  # whoever asked has gone
                super().handle()

        def finish(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                super().finish()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _error(asked: Asked, say: Say) -> dict[str, Any]:
    if asked.dialect == "messages":
        return {"type": "error", "error": {"type": say.code or "api_error", "message": say.text}}
    return {"error": {"message": say.text, "type": "error", "code": say.code}}


def _usage(asked: Asked, say: Say) -> dict[str, Any]:
    if asked.dialect == "messages":
        plain = say.read - say.cached
        return {"input_tokens": plain, "cache_read_input_tokens": say.cached, "output_tokens": say.wrote}
    if asked.dialect == "responses":
        cached = {"cached_tokens": say.cached}
        total = say.read + say.wrote
        return {
            "input_tokens": say.read,
            "input_tokens_details": cached,
            "output_tokens": say.wrote,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": total,
        }
    return {
        "prompt_tokens": say.read,
        "completion_tokens": say.wrote,
        "total_tokens": say.read + say.wrote,
        "prompt_tokens_details": {"cached_tokens": say.cached},
    }


def document(asked: Asked, say: Say) -> dict[str, Any]:
    """A whole answer in the dialect of the request."""
    usage = {"usage": _usage(asked, say)} if say.usage else {}
    model = asked.body["model"]
    if asked.dialect == "messages":
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": _blocks(say),
            "stop_reason": _stop(say, "tool_use", "end_turn", "max_tokens"),
            "stop_sequence": None,
            **usage,
        }
    if asked.dialect == "responses":
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": model,
            "output": _items(say),
            **usage,
        }
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    if say.thought:
        message["reasoning_content"] = say.thought
    if say.calls:
        message["tool_calls"] = _chat_calls(say)
    stop = _stop(say, "tool_calls", "stop", "length")
    choice = {"index": 0, "message": message, "finish_reason": stop}
    return {"id": "chat_1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], **usage}


def _stop(say: Say, tools: str, plain: str, length: str) -> str:
    return length if say.stop == "length" else tools if say.calls else plain


def _chat_calls(say: Say) -> list[dict[str, Any]]:
    return [
        {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(say.calls)
    ]


def _blocks(say: Say) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if say.thought:
        blocks.append({"type": "thinking", "thinking": say.thought, "signature": "c2ln"})
    if say.text:
        blocks.append({"type": "text", "text": say.text})
    calls = enumerate(say.calls)
    return blocks + [{"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": i} for n, (name, i) in calls]


def _items(say: Say) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if say.thought:
        items.append({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": say.thought})
    if say.text:
        content = [{"type": "output_text", "text": say.text, "annotations": []}]
        items.append({"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": content})
    for n, (name, given) in enumerate(say.calls):
        call = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": name}
        items.append({**call, "arguments": json.dumps(given), "status": "completed"})
    return items


def events(asked: Asked, say: Say) -> list[bytes]:
    """The events of a stream in the dialect of the request."""
    return {"chat": _chat_events, "responses": _responses_events, "messages": _messages_events}[asked.dialect](
        asked, say
    )


def _event(data: Any, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _chat_events(asked: Asked, say: Say) -> list[bytes]:
    base = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": asked.body["model"]}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": say.thought}] if say.thought else []
    deltas += [{"content": word} for word in _words(say.text)]
    deltas += [{"tool_calls": _chat_calls(say)}] if say.calls else []
    chunks = [{**base, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    stop = _stop(say, "tool_calls", "stop", "length")
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    if say.usage and (asked.body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**base, "choices": [], "usage": _usage(asked, say)})
    return [*map(_event, chunks), b"data: [DONE]\n\n"]


def _responses_events(asked: Asked, say: Say) -> list[bytes]:
    whole = document(asked, say)
    found = [_event({"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}})]
    for n, item in enumerate(whole["output"]):
        found.append(_event({"type": "response.output_item.added", "output_index": n, "item": item}))
        if item["type"] == "message":
            for word in _words(say.text):
                delta = {"type": "response.output_text.delta", "item_id": "m_1", "output_index": n, "content_index": 0}
                found.append(_event({**delta, "delta": word}))
        found.append(_event({"type": "response.output_item.done", "output_index": n, "item": item}))
    return [*found, _event({"type": "response.completed", "response": whole})]


def _messages_events(asked: Asked, say: Say) -> list[bytes]:
    whole, usage = document(asked, say), _usage(asked, say)
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    found = [_event({"type": "message_start", "message": start}, "message_start")]
    for n, block in enumerate(whole["content"]):
        kind = block["type"]
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}[kind]
        opened = {"type": "content_block_start", "index": n, "content_block": {**block, **empty}}
        found.append(_event(opened, "content_block_start"))
        deltas: list[dict[str, Any]] = []
        if kind == "text":
            deltas = [{"type": "text_delta", "text": word} for word in _words(say.text)]
        elif kind == "thinking":
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for delta in deltas:
            found.append(_event({"type": "content_block_delta", "index": n, "delta": delta}, "content_block_delta"))
        found.append(_event({"type": "content_block_stop", "index": n}, "content_block_stop"))
    ended = {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}}
    told = {"usage": {"output_tokens": say.wrote}} if say.usage else {}
    return [*found, _event({**ended, **told}, "message_delta"), _event({"type": "message_stop"}, "message_stop")]


def _words(text: str) -> list[str]:
    return [f"{word} " for word in text.split()] or ([text] if text else [])
