"""Answers from the record of an earlier attempt, in the place of an endpoint: nothing is sent anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from smith.errors import RecordError


class Recorded(httpx.AsyncBaseTransport):
    """Gives the answers of ``exchanges.jsonl`` again, each once, in the order in which they were asked for.

    What is asked is not compared: outputs of commands differ from one time to the next in times and paths. Behind the
    last answer every call is refused. Raises :class:`RecordError` for a file that is no record.
    """

    def __init__(self, record: Path) -> None:
        self._answers = iter(_answers(record))
        self._given = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The next answer."""
        await request.aread()
        answer = next(self._answers, None)
        if answer is None:
            words = f"the record ends after {self._given} answers; the agent goes another way, or was cut off then"
            return httpx.Response(404, json={"error": {"message": words}})
        self._given += 1
        kind = "application/json" if answer.lstrip().startswith("{") else "text/event-stream"
        return httpx.Response(200, headers={"content-type": kind}, content=answer.encode())


def _answers(record: Path) -> list[str]:
    try:
        lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
        # Lines are written when an exchange is over; its number says when it began.
        return [str(line["answer"]) for line in sorted(lines, key=lambda one: int(one["n"])) if _whole(line)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{record}: is no record of exchanges: {error}") from error


def _whole(line: dict[str, object]) -> bool:
    return line["outcome"] == "answered"
