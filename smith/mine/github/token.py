"""The token: where it comes from, and that it shows nowhere."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from smith import process
from smith.errors import BadInput, Unavailable
from smith.mine.github.address import API, web_host

VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")

_PLAIN = re.compile(r"[\x21-\x7e]+\Z")
_GH_LIMIT_S = 15.0


@dataclass(frozen=True)
class Token:
    """A token, and the name of its source for messages."""

    secret: SecretStr
    source: str

    @classmethod
    def parse(cls, text: str, source: str) -> Token:
        """Raises :class:`BadInput`, without its content, for what cannot be a token."""
        # Libraries quote a header that they refuse, so nothing that they would refuse may reach them.
        if not _PLAIN.match(text.strip()):
            raise BadInput(f"the token of {source} is empty or holds characters that no token has")
        return cls(SecretStr(text.strip()), source)

    def hide(self, text: str) -> str:
        """``text`` without the token: servers and proxies quote what they were sent."""
        return text.replace(self.secret.get_secret_value(), "***")

    def hide_bytes(self, data: bytes) -> bytes:
        """:meth:`hide` for bytes."""
        return data.replace(self.secret.get_secret_value().encode(), b"***")


def find_token(
    given: str | None = None, *, base_url: str = API, environ: Mapping[str, str] = os.environ
) -> Token | None:
    """The token to use: ``given``, GITHUB_TOKEN, GH_TOKEN, or what ``gh auth token`` says; None where there is none.

    ``gh`` is asked for the token of ``base_url``'s host only. Raises :class:`BadInput` for what cannot be a token.
    """
    if given is not None:
        return Token.parse(given, "the command line")
    for name in VARIABLES:
        if environ.get(name, "").strip():
            return Token.parse(environ[name], name)
    gh = shutil.which("gh", path=environ.get("PATH", ""))
    return _ask_gh(gh, base_url, environ) if gh else None


def _ask_gh(gh: str, base_url: str, environ: Mapping[str, str]) -> Token | None:
    try:
        done = process.run([gh, "auth", "token", "--hostname", web_host(base_url)], env=environ, timeout_s=_GH_LIMIT_S)
    except Unavailable:
        return None
    said = done.stdout.text.strip()
    return Token.parse(said, "gh auth token") if done.ok and said else None
