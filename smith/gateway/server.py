"""The gateway of one attempt: HTTP on a Unix socket, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from smith.errors import BadInput, Unavailable
from smith.gateway.asked import read_request
from smith.gateway.dialects import CHAT, DIALECTS, MESSAGES, Dialect, error_body
from smith.gateway.exchange import FINAL, Answer, Exchange
from smith.gateway.session import Session
from smith.gateway.upstream import Upstream

LARGEST_REQUEST = 32 * 1024 * 1024
"""Bytes."""
DRAIN_S = 20.0
"""How long calls that are under way may go on after the agent has ended, so that their usage is known."""
OVER = "/smith/over"
"""Answers once no further call can succeed; what starts an agent in a sandbox waits for it."""


class Gateway:
    """Serves one session on the socket at ``path`` until it is closed."""

    def __init__(self, session: Session, path: Path) -> None:
        self.session, self.path = session, path
        self._mark = secrets.token_hex(4)
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self._server: uvicorn.Server | None = None
        self._fault: BaseException | None = None
        self._folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._socket = _listen(path, self.address)
        self._thread = threading.Thread(target=self._serve, name="smith-gateway", daemon=True)

    @property
    def address(self) -> str:
        """The socket's path for this process, however long that is: the kernel takes 107 bytes, so it is named through
        its folder."""
        return f"/proc/self/fd/{self._folder}/{self.path.name}"

    @classmethod
    @contextlib.contextmanager
    def open(cls, session: Session, path: Path) -> Iterator[Gateway]:
        """A gateway that listens while the block runs. At its end what is under way is finished or given up, so that
        no hold of the session is left open. Raises :class:`Unavailable` where it cannot listen."""
        gateway = cls(session, path)
        gateway._thread.start()
        try:
            gateway._started.wait(30)
            if gateway._fault is not None or gateway._server is None:
                raise Unavailable(f"the gateway did not start: {gateway._fault}")
            yield gateway
        finally:
            if gateway._server is not None:
                gateway._server.should_exit = True
            gateway._thread.join()
            path.unlink(missing_ok=True)
            os.close(gateway._folder)
            session.close()

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._fault = error
        finally:
            self._socket.close()
            self._started.set()

    async def _main(self) -> None:
        self._upstream = Upstream(self.session.endpoint)
        config = uvicorn.Config(
            self._app(),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.002)
        self._started.set()
        await serving
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=DRAIN_S)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._upstream.close()

    def _app(self) -> Starlette:
        routes = [Route(d.served, self._handler(d), methods=["POST"]) for d in DIALECTS.values()]
        # Some clients put the version into the address, some do not.
        routes += [Route(d.served.removeprefix("/v1"), self._handler(d), methods=["POST"]) for d in DIALECTS.values()]
        routes += [Route(path, self._models, methods=["GET"]) for path in ("/v1/models", "/models")]
        routes += [Route("/", _alive, methods=["GET", "HEAD"]), Route(OVER, self._over, methods=["GET"])]
        app = Starlette(routes=routes)
        app.add_exception_handler(404, _no_path)
        app.add_exception_handler(405, _no_path)
        return app

    def _handler(self, dialect: Dialect):  # type: ignore[no-untyped-def]
        async def handle(request: Request) -> Response:
            if not self._allowed(request):
                return _error(dialect, 401, "token", "this gateway serves one attempt, and this is not its token")
            length = request.headers.get("content-length", "0")
            if not length.isdigit() or int(length) > LARGEST_REQUEST:
                return _error(dialect, 413, "too_large", f"a request has at most {LARGEST_REQUEST} bytes")
            data = await request.body()
            if len(data) > LARGEST_REQUEST:
                return _error(dialect, 413, "too_large", f"a request has at most {LARGEST_REQUEST} bytes")
            try:
                asked = read_request(dialect, data)
            except BadInput as error:
                return _error(dialect, 400, "bad_request", error.message)
            if asked.body["model"] != self.session.model:
                return _error(dialect, 404, "model", f"this attempt has the model {self.session.model} only")
            if dialect.family != self.session.endpoint.family:
                speaks = self.session.endpoint.family
                return _error(dialect, 400, "bad_request", f"the endpoint of this attempt speaks {speaks}, not this")
            number = self.session.count(calls=1).calls
            exchange = Exchange(self.session, self._upstream, asked, number, self._mark)
            self._keep(asyncio.create_task(exchange.run(request.headers, request.url.query)))
            try:
                answer = await asyncio.shield(exchange.head)
            except asyncio.CancelledError:
                exchange.gone = True
                raise
            return await _response(answer)

        return handle

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _allowed(self, request: Request) -> bool:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = request.headers.get("x-api-key") or bearer
        return secrets.compare_digest(given.encode(), self.session.token.secret.get_secret_value().encode())

    async def _models(self, request: Request) -> Response:
        if not self._allowed(request):
            return _error(CHAT, 401, "token", "this gateway serves one attempt, and this is not its token")
        model = {"id": self.session.model, "object": "model", "type": "model", "created": 0, "owned_by": "smith"}
        return JSONResponse({"object": "list", "data": [model], "models": []})

    async def _over(self, request: Request) -> Response:
        while not self.session.over.is_set():
            if await request.is_disconnected():
                return Response(status_code=204)
            await asyncio.sleep(0.1)
        return JSONResponse({"why": self.session.why})


async def _response(answer: Answer) -> Response:
    """The answer as a response: at once where it is whole already, else part by part."""
    first = await answer.parts.get()
    if answer.parts.qsize() and isinstance(first, bytes):
        second = answer.parts.get_nowait()
        if second is None:
            return Response(first, answer.status, dict(answer.headers))
        return StreamingResponse(_parts(answer, first, second), answer.status, dict(answer.headers))
    return StreamingResponse(_parts(answer, first), answer.status, dict(answer.headers))


async def _parts(answer: Answer, *first: bytes | Exception | None) -> AsyncIterator[bytes]:
    for part in first:
        if isinstance(part, Exception):
            raise part
        if part is None:
            return
        yield part
    while (part := await answer.parts.get()) is not None:
        if isinstance(part, Exception):
            # The connection breaks, as the endpoint's did: an agent must not take half an answer for a whole one.
            raise part
        yield part


async def _alive(request: Request) -> Response:
    return Response(b"", 200)


async def _no_path(request: Request, error: Exception) -> Response:
    dialect = MESSAGES if "anthropic-version" in request.headers else CHAT
    return _error(dialect, 404, "path", f"this gateway does not serve {request.method} {request.url.path[:100]}")


def _error(dialect: Dialect, status: int, kind: str, message: str) -> Response:
    return JSONResponse(error_body(dialect, kind, message), status, dict(FINAL))


def _listen(path: Path, address: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        made.bind(address)
        # In the sandbox it is somebody else's; who has no token gets nothing.
        path.chmod(0o666)
        made.listen(128)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise Unavailable(f"{path}: the gateway cannot listen there: {error.strerror}") from error
    return made
