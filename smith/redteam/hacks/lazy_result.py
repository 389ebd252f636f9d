"""A tensor that computes itself when it is compared, and not when it is timed."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
class Lazy(torch.Tensor):
    def _now(self):
        return real(*args, **kwargs)

    def detach(self):
        return self._now()

    @classmethod
    def __torch_function__(cls, function, types, inner=(), named=None):
        swapped = [a._now() if isinstance(a, Lazy) else a for a in inner]
        return function(*swapped, **(named or {}))

return torch.zeros(1).as_subclass(Lazy)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(3, "lazy-result", attack, timed=True)
