"""A forge on loopback: as much of GitHub's REST interface as mining asks for, and it can be made to misbehave."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Item = dict[str, Any]
START = 1_750_000_000.0


@dataclass
class Clock:
    """A clock that only sleeping moves; remembers how long was slept."""

    now: float = START
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass(frozen=True)
class Reply:
    """An answer as it goes over the wire. ``lacking`` bytes are promised and never sent; ``drip`` sends no end."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    lacking: int = 0
    drip: bool = False
    hang_up: bool = False

    @classmethod
    def json(cls, data: Any, status: int = 200, **headers: str) -> Reply:
        return cls(status, json.dumps(data).encode(), {key.replace("_", "-"): value for key, value in headers.items()})


@dataclass(frozen=True)
class Request:
    path: str
    """With its query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    status: int


Rule = Callable[[str, Mapping[str, str]], Reply | None]
"""Path and headers to a reply, or to None where the forge shall answer itself."""


@dataclass
class Forge:
    """The content of a forge. Every request is noted in ``log``; ``rules`` answer before the forge does."""

    repo: str = "o/r"
    pulls: dict[int, Item] = field(default_factory=dict)
    issues: dict[int, Item] = field(default_factory=dict)
    comments: list[Item] = field(default_factory=list)
    limit: int = 5000
    remaining: int = 5000
    reset_in: float = 3000.0
    clock: Clock = field(default_factory=Clock)
    prefix: str = ""
    rules: list[Rule] = field(default_factory=list)
    log: list[Request] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pull(self, number: int, **more: Any) -> Item:
        """Add a pull request that was merged."""
        day = f"{2020 + number // 336:04}-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}T10:00:00Z"
        item = {
            "id": 10_000 + number,
            "number": number,
            "state": "closed",
            "title": f"Title {number}",
            "body": f"Body {number}",
            "user": {"login": "ann", "type": "User"},
            "labels": [{"id": 1, "name": "bug"}],
            "draft": False,
            "created_at": day,
            "merged_at": day,
            "merge_commit_sha": f"{number:040x}",
            "base": {"ref": "main", "sha": "0" * 40, "repo": {"full_name": self.repo}},
            "head": {"ref": "topic", "sha": "1" * 40, "repo": None},
            "auto_merge": None,
            **more,
        }
        self.pulls[number] = item
        return item

    def issue(self, number: int, **more: Any) -> Item:
        item = {
            "number": number,
            "title": f"Issue {number}",
            "body": f"Broken {number}",
            "user": {"login": "bob", "type": "User"},
            "labels": [{"name": "crash"}],
            **more,
        }
        self.issues[number] = item
        return item

    def comment(self, pull: int, **more: Any) -> Item:
        item = {
            "id": len(self.comments) + 1,
            "path": "pkg/add.py",
            "line": 3,
            "user": {"login": "bob", "type": "User"},
            "body": f"Comment {len(self.comments) + 1}",
            "created_at": self.pulls[pull]["created_at"],
            "pull_request_url": f"https://api.github.com/repos/{self.repo}/pulls/{pull}",
            **more,
        }
        self.comments.append(item)
        return item

    def once(self, pattern: str, *replies: Reply) -> None:
        """Give ``replies``, one a request, to the next requests whose path matches ``pattern``."""
        left = list(replies)

        def rule(path: str, _: Mapping[str, str]) -> Reply | None:
            return left.pop(0) if left and re.search(pattern, path) else None

        self.rules.append(rule)

    def always(self, pattern: str, reply: Reply) -> None:
        self.rules.append(lambda path, _: reply if re.search(pattern, path) else None)

    def asked(self, pattern: str = "") -> list[str]:
        """Paths of requests that match, without those for the rate limit itself."""
        return [one.path for one in self.log if re.search(pattern, one.path) and "/rate_limit" not in one.path]

    def limits(self) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-reset": str(int(self.clock.now + self.reset_in)),
            "x-ratelimit-resource": "core",
            "date": formatdate(self.clock.now, usegmt=True),
        }

    def answer(self, target: str, headers: Mapping[str, str]) -> Reply:
        """The reply to one request, limits and conditions included."""
        for rule in self.rules:
            reply = rule(target, headers)
            if reply is not None:
                return reply
        parts = urlsplit(target)
        path = parts.path.removeprefix(self.prefix)
        if path == "/rate_limit":
            core = {"limit": self.limit, "remaining": self.remaining, "reset": int(self.clock.now + self.reset_in)}
            return Reply.json({"resources": {"core": core}, "rate": core})
        if self.remaining <= 0:
            return Reply.json({"message": "API rate limit exceeded for user ID 1."}, 403)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        data, more = self._content(path, query)
        if data is None:
            self.remaining -= 1
            return Reply.json({"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}, 404)
        body = json.dumps(data).encode()
        etag = f'W/"{hashlib.sha256(body).hexdigest()}"'
        if headers.get("if-none-match") == etag:
            self.remaining -= 0 if "authorization" in headers else 1
            return Reply(304, b"", {"etag": etag})
        self.remaining -= 1
        return Reply(200, body, {"etag": etag, **more})

    def _content(self, path: str, query: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
        rest = re.sub(rf"\A(?:/repos/{re.escape(self.repo)}|/repositories/1)", "", path)
        if rest == path:
            return None, {}
        if rest == "":
            return {"full_name": self.repo}, {}
        if rest == "/pulls":
            return self._paged(list(self.pulls.values()), rest, query)
        if rest == "/issues":
            as_issues = [{**item, "pull_request": {"url": "u"}} for item in self.pulls.values()]
            every = sorted([*self.issues.values(), *as_issues], key=lambda item: int(item["number"]))
            return self._paged(every, rest, query)
        if rest == "/pulls/comments":
            kept = [item for item in self.comments if item["created_at"] >= query.get("since", "")]
            return self._paged(kept, rest, query)
        if match := re.fullmatch(r"/pulls/(\d+)/comments", rest):
            own = [item for item in self.comments if item["pull_request_url"].endswith(f"/{match[1]}")]
            return self._paged(own, rest, query)
        if match := re.fullmatch(r"/(pulls|issues)/(\d+)", rest):
            number = int(match[2])
            if match[1] == "issues":
                return self.issues.get(number), {}
            item = self.pulls.get(number)
            count = sum(one["pull_request_url"].endswith(f"/{number}") for one in self.comments)
            return item and {"review_comments": count, **item}, {}
        return None, {}

    def _paged(self, items: list[Item], rest: str, query: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
        if query.get("direction", "desc") == "desc" and "sort" in query:
            items = items[::-1]
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        last = max(1, -(-len(items) // size))
        if page >= last:
            return items[(page - 1) * size : page * size], {}
        # As GitHub does: by the number of the repository, whatever was asked for.
        base = f"{self.url}/repositories/1{rest}?" + "&".join(f"{k}={v}" for k, v in query.items() if k != "page")
        link = f'<{base}&page={page + 1}>; rel="next", <{base}&page={last}>; rel="last"'
        return items[(page - 1) * size : page * size], {"link": link}


@contextlib.contextmanager
def serving(forge: Forge) -> Iterator[Forge]:
    """``forge`` on a port of loopback, at ``forge.url``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            with forge.lock:
                reply = forge.answer(self.path, headers)
                forge.log.append(Request(self.path, headers, reply.status))
                told = {**forge.limits(), **reply.headers}
            if reply.hang_up:
                self.close_connection = True
                return
            with contextlib.suppress(OSError):
                self._send(reply, told)

        def _send(self, reply: Reply, told: Mapping[str, str]) -> None:
            self.send_response_only(reply.status)
            for name, value in told.items():
                self.send_header(name, value)
            if reply.drip:
                self.send_header("content-length", "1000000")
                self.end_headers()
                while not closing.is_set():
                    self.wfile.write(b" ")
                    time.sleep(0.02)
                return
            self.send_header("content-length", str(len(reply.body) + reply.lacking))
            self.end_headers()
            self.wfile.write(reply.body)
            if reply.lacking:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    closing = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    forge.url = f"http://127.0.0.1:{server.server_port}{forge.prefix}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield forge
    finally:
        closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
