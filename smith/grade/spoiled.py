"""Hidden tests spoiled so that every one must fail at its end, and so that each tells which inputs a call has changed.

A spoiled test does all that the real one does, then raises. One that is reported as passed was never judged by us.
"""

from __future__ import annotations

import ast
import re
import secrets

from smith.syntax import parse

WATCH = """

def {watch}():
    import functools
    import os
    import sys
    import types

    import torch

    def watched(name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            given = [(key, a) for key, a in [*enumerate(args), *kwargs.items()] if type(a) is torch.Tensor]
            before = [a.detach().clone() for _, a in given]
            result = function(*args, **kwargs)
            for (key, a), old in zip(given, before):
                now = a.detach()
                differ = now.shape != old.shape or bool(((now != old) & ~((now != now) & (old != old))).any())
                if differ:
                    {changed}.append(name + "." + str(key))
            return result

        return call

    for name, value in list(globals().items()):
        module = sys.modules.get(getattr(value, "__module__", None) or "")
        file = os.path.realpath(getattr(module, "__file__", None) or "")
        inside = file.startswith({root} + os.sep) and not any(file.startswith(hidden) for hidden in {hidden})
        if isinstance(value, types.FunctionType) and inside:
            globals()[name] = watched(name, value)


{changed} = []
{watch}()
"""


class Spoiler:
    """Spoils test files for one grade: its marks are drawn, so that nothing else can have written them."""

    def __init__(self) -> None:
        self.mark = f"e{secrets.token_hex(6)}"

    def spoil(self, text: str, root: str, hidden: list[str]) -> str | None:
        """The spoiled file; None where it is not Python that this version reads.

        ``root`` is the source root as the tests see it, ``hidden`` the absolute paths below which hidden tests lie:
        functions that a test takes from there are not the submission's.
        """
        tree = parse(text.encode())
        if tree is None:
            return None
        changed, watch = f"_{self.mark}", f"_w{self.mark}"
        scopes: list[ast.Module | ast.ClassDef] = [tree]
        scopes += [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for scope in scopes:
            for node in scope.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                    words = f'raise AssertionError("{self.mark} " + " ".join(sorted(set({changed}))))'
                    node.body = [ast.Try(body=node.body, handlers=[], orelse=[], finalbody=ast.parse(words).body)]
        tail = WATCH.format(watch=watch, changed=changed, root=repr(root), hidden=repr(hidden))
        return ast.unparse(ast.fix_missing_locations(tree)) + tail

    def reached(self, message: str) -> bool:
        """Whether a failure is the one that was put in: the test has run to its end or to an error of its own."""
        return self.mark in message

    def changed(self, message: str) -> frozenset[str]:
        """The arguments (``function.position``) that the submission changed before the test failed."""
        found = re.search(rf"{self.mark} (.*)", message)
        return frozenset(found[1].split()) if found else frozenset()
