"""Mining: merged kernel pull requests of an upstream, from git alone."""

from smith.mine.funnel import explain, mine

__all__ = ["explain", "mine"]
