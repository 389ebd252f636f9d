"""Small pieces of what an exchange does: threads beside a loop, bodies as they come, whole events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

import httpx

from smith.gateway.upstream import Broken

T = TypeVar("T")


async def in_thread(pool: Executor, work: Callable[[], T], lost: Callable[[T], object] = lambda made: None) -> T:
    """Run what may block in a thread. If this task is cancelled meanwhile, what it made is given to ``lost``."""
    running = asyncio.get_running_loop().run_in_executor(pool, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        lost(await running)
        raise


async def chunks(response: httpx.Response, timeout_s: float, began: float) -> AsyncIterator[bytes]:
    """The body as it comes. Raises :class:`Broken` where it breaks off or takes too long, however steadily it comes."""
    try:
        async for chunk in response.aiter_bytes():
            if time.monotonic() - began > timeout_s:
                raise Broken(f"no whole answer within {timeout_s:g} s")
            yield chunk
    except httpx.TimeoutException:
        raise Broken(f"no whole answer within {timeout_s:g} s") from None
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise Broken(f"the answer broke off: {type(error).__name__}") from None


def whole_events(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole events, each with the empty line behind it, and what is left."""
    found: list[bytes] = []
    while True:
        ends = [at + len(mark) for mark in (b"\n\n", b"\r\n\r\n") if (at := data.find(mark)) >= 0]
        if not ends:
            return found, data
        end = min(ends)
        found.append(data[:end])
        data = data[end:]


def json_of(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
