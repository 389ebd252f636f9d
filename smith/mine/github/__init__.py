"""What GitHub knows of pull requests and git does not. Optional: mining never needs it.

The shapes, limits and conditional requests follow GitHub's documentation of its REST interface, version 2022-11-28.
"""

from smith.mine.github.address import API
from smith.mine.github.enrich import GitHub
from smith.mine.github.limits import RateLimited
from smith.mine.github.token import find_token
from smith.secret import Token

__all__ = ["API", "GitHub", "RateLimited", "Token", "find_token"]
