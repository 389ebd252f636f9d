"""The token: where it comes from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from smith import process
from smith.errors import Unavailable
from smith.mine.github.address import API, web_host
from smith.secret import Token

VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN")

_GH_LIMIT_S = 15.0


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
