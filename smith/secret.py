"""A token or key that opens a service: it goes to one host and shows nowhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from pydantic import SecretStr

from smith.errors import BadInput

_PLAIN = re.compile(r"[\x21-\x7e]+\Z")


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
        """``text`` without the token: servers and proxies quote what they were sent."""
        return text.replace(self.secret.get_secret_value(), "***")

    def hide_bytes(self, data: bytes) -> bytes:
        """:meth:`hide` for bytes."""
        return data.replace(self.secret.get_secret_value().encode(), b"***")
