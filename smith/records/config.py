"""``smith.toml``: marks a data repository, and says in which layout it is."""

from __future__ import annotations

from smith.records.base import Document


class Config(Document):
    """The settings of a data repository. So far there is only its layout's version."""
