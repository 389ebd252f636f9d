"""A token or key that opens a service: it goes to one host and shows nowhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from pydantic import SecretStr

from smith.errors import BadInput

_PLAIN = re.compile(r"[\x21-\x7e]+\Z")
_LEAST_SECRET = 8


@dataclass(frozen=True)
class Token:
    """A token, and the name of its source for messages."""

    secret: SecretStr
    source: str

    @classmethod
    def parse(cls, text: str, source: str) -> Self:
        """Raises :class:`BadInput`, without its content, for what cannot be a token."""
        # Libraries quote a header that they refuse, so nothing that they would refuse may reach them.
        if not _PLAIN.match(text.strip()):
            raise BadInput(f"the token of {source} is empty or holds characters that no token has")
        return cls(SecretStr(text.strip()), source)

    def hide(self, text: str) -> str:
        """``text`` without the token: servers and proxies quote what they were sent.

        A word that is no secret (``EMPTY``, as local servers are given) stays: it may stand anywhere.
        """
        secret = self.secret.get_secret_value()
        return text.replace(secret, "***") if len(secret) >= _LEAST_SECRET else text

    def hide_bytes(self, data: bytes) -> bytes:
        """:meth:`hide` for bytes."""
        secret = self.secret.get_secret_value()
        return data.replace(secret.encode(), b"***") if len(secret) >= _LEAST_SECRET else data
