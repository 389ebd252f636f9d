"""Mining: merged kernel pull requests of an upstream, from git alone."""

from smith.mine.explain import explain
from smith.mine.funnel import Sampling, mine

__all__ = ["Sampling", "explain", "mine"]
