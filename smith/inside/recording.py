"""Calls that tests make into the package under test, told where they lead to a launch of a changed kernel.

Installed where a harness asks for it and in no other run. Functions are wrapped where test files name them (their own
imports, also those inside of functions); autograd functions and modules where they are defined. Only the outermost call
counts: what the package calls of itself is its own business.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import json
import os
import sys
import time
import types
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from smith.inside.describing import Describer, Description, Unrebuildable, fill_of

Emit = Callable[..., None]
Counts = Callable[[], dict[str, dict[str, int]]]

MOST = 200
"""Distinct calls of one process that are told."""
MOST_BYTES = 4 << 20
MOST_OF_ONE = 1 << 18
MOST_OUTPUTS = 64
MOST_STATE = 256
BUILT = "_smith_built"
FLOATING = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64")


class _Pending:
    """A call whose test has not ended."""

    def __init__(self, told: Description, entry: str) -> None:
        self.told, self.entry = told, entry
        self.launches = 0
        self.upstream: dict[int, Description] = {}


class Recorder:
    """The pytest plug-in. ``asked`` is what the harness sent: ``excluded`` places of hidden tests, changed ``kernels``
    and ``files``, and whether launches are ``counted``."""

    def __init__(self, asked: dict[str, Any], root: str, emit: Emit, counts: Counts) -> None:
        self._emit, self._counts = emit, counts
        self._root = os.path.realpath(root) + os.sep
        self._excluded = tuple(place.rstrip("/") for place in asked["excluded"])
        self._kernels, self._files = frozenset(asked["kernels"]), frozenset(asked["files"])
        self._counted = bool(asked["counted"])
        self._depth = 0
        self._test = ""
        self._running = False
        self._pending: list[_Pending] = []
        self._seen: set[str] = set()
        self._bytes = 0
        self._left: dict[tuple[str, str, str], int] = {}
        self._known_as: dict[int, tuple[str, str]] = {}
        """Module and name by which tests reach a thing: where it is defined is the package's own business."""
        self._wrapped: dict[int, Any] = {}
        self._wrappers: set[int] = set()
        self._patched = False
        self._places: dict[str, str | None] = {}
        self._mark = 0
        self._owner: _Pending | None = None
        """Whose gradient is being computed, as far as is known."""
        self._unowned = 0

    # -- pytest ---------------------------------------------------------------------------------------------------

    def pytest_collection_finish(self) -> None:
        """Test files are imported by now, and with them what they call."""
        self._patch_classes()
        for module in list(sys.modules.values()):
            if self._is_test(getattr(module, "__file__", None)):
                self._bind(module)
        original = builtins.__import__

        def importing(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
            module = original(name, globals, locals, fromlist, level)
            if globals and self._running and self._is_test(globals.get("__file__")):
                self._patch_classes()
                return self._stand_in(module)
            return module

        builtins.__import__ = importing

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, None]:
        """Record while the test's own body runs; what a test that fails did is dropped."""
        self._test, self._running, self._depth = item.nodeid, True, 0
        self._pending, self._owner, self._unowned, self._mark = [], None, 0, self._launched()
        outcome = yield
        self._running = False
        if outcome.excinfo is None:
            self._settle()
            self._commit()
        self._pending = []

    # -- wrapping -------------------------------------------------------------------------------------------------

    def _is_test(self, file: Any) -> bool:
        inside = self._relative(file)
        return inside is not None and any(inside == p or inside.startswith(f"{p}/") for p in self._excluded)

    def _is_package(self, file: Any) -> bool:
        return self._relative(file) is not None and not self._is_test(file)

    def _relative(self, file: Any) -> str | None:
        if not isinstance(file, str):
            return None
        if file not in self._places:
            path = os.path.realpath(file)
            self._places[file] = path[len(self._root) :] if path.startswith(self._root) else None
        return self._places[file]

    def _owned(self, value: Any) -> bool:
        module = sys.modules.get(getattr(value, "__module__", None) or "")
        return module is not None and self._is_package(getattr(module, "__file__", None))

    def _bind(self, module: Any) -> None:
        for name, source, original in imported_names(module.__file__):
            value, found = vars(module).get(name), sys.modules.get(source)
            if value is not None and getattr(found, original, None) is value:
                self._known_as.setdefault(id(value), (source, original))
        for name, value in list(vars(module).items()):
            replaced = self._replacement(value)
            if replaced is not value:
                setattr(module, name, replaced)

    def _replacement(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return self._stand_in(value) if self._is_package(getattr(value, "__file__", None)) else value
        plain = isinstance(value, (types.FunctionType, types.BuiltinFunctionType, functools._lru_cache_wrapper))
        if not plain or id(value) in self._wrappers or not self._owned(value):
            return value
        if id(value) not in self._wrapped:
            self._wrapped[id(value)] = wrapper = self._function(value)
            self._wrappers.add(id(wrapper))
        return self._wrapped[id(value)]

    def _stand_in(self, module: Any) -> Any:
        """A module through whose attributes a test finds the wrapped functions; writing goes to the real one."""
        recorder = self
        if not isinstance(module, types.ModuleType) or not self._is_package(getattr(module, "__file__", None)):
            return module

        class StandIn(types.ModuleType):
            def __getattribute__(self, name: str) -> Any:
                value = getattr(module, name)
                if recorder._owned(value):
                    recorder._known_as.setdefault(id(value), (module.__name__, name))
                return recorder._replacement(value)

            def __setattr__(self, name: str, value: Any) -> None:
                setattr(module, name, value)

            def __delattr__(self, name: str) -> None:
                delattr(module, name)

            def __dir__(self) -> list[str]:
                return dir(module)

        return StandIn(module.__name__)

    def _function(self, function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return self._enter("function", function, function, args, kwargs)

        return wrapper

    def _patch_classes(self) -> None:
        """Where all function classes and modules are called and made; each call looks whose it is."""
        torch = sys.modules.get("torch")
        if torch is None or self._patched:
            return
        self._patched = True
        apply, call = torch.autograd.Function.apply.__func__, torch.nn.Module.__call__

        def applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
            bound = functools.partial(apply, cls)
            if not self._owned(cls):
                return bound(*args, **kwargs)
            return self._enter("autograd", cls, bound, args, kwargs)

        def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
            instance = object.__new__(cls)
            if self._owned(cls):
                instance.__dict__[BUILT] = self._made(args, kwargs)
            return instance

        def called(instance: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._owned(type(instance)):
                return call(instance, *args, **kwargs)
            return self._enter("module", type(instance), functools.partial(call, instance), args, kwargs, instance)

        torch.autograd.Function.apply = classmethod(applied)
        torch.nn.Module.__new__ = staticmethod(new)
        torch.nn.Module.__call__ = called

    def _made(self, args: Any, kwargs: Any) -> Any:
        describer = Describer(sys.modules["torch"])
        try:
            told = [describer.describe(one) for one in args], {k: describer.describe(v) for k, v in kwargs.items()}
        except Unrebuildable as error:
            return error
        return told if not describer.tensors else Unrebuildable("made_with_tensors")

    # -- recording ------------------------------------------------------------------------------------------------

    def _launched(self) -> int:
        if not self._counted:
            return 0
        total = 0
        for key, counts in self._counts().items():
            path = key.partition("::")[0]
            if key in self._kernels or (not self._kernels and path in self._files):
                total += counts["launches"] + counts["calls"]
        return total

    def _enter(self, kind: str, owner: Any, call: Any, args: Any, kwargs: Any, instance: Any = None) -> Any:
        if not self._running or self._depth:
            return call(*args, **kwargs)
        pending: _Pending | Unrebuildable
        entry = f"{getattr(owner, '__module__', '')}.{getattr(owner, '__qualname__', '')}"
        try:
            pending = _Pending(self._describe(kind, owner, args, kwargs, instance), entry)
        except Unrebuildable as error:
            pending = error
        except Exception as error:
            pending = Unrebuildable("odd", type(error).__name__)
        self._settle()
        self._owner = None
        began = time.perf_counter()
        self._depth += 1
        try:
            result = call(*args, **kwargs)
        finally:
            self._depth -= 1
            now = self._launched()
            launches, self._mark = now - self._mark, now
        if isinstance(pending, Unrebuildable):
            if launches or not self._counted:
                self._leave_out(entry, pending.code, pending.detail)
            return result
        pending.told["seconds"] = round(time.perf_counter() - began, 4)
        pending.launches = launches
        self._watch(pending, result)
        self._pending.append(pending)
        return result

    def _describe(self, kind: str, owner: Any, args: Any, kwargs: Any, instance: Any) -> Description:
        torch = sys.modules.get("torch")
        if torch is None:
            raise Unrebuildable("no_torch")
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            raise Unrebuildable("autocast")
        call: Description = {"kind": kind, **_named(owner, self._known_as.get(id(owner)))}
        describer = Describer(torch)
        if kind == "module":
            built = instance.__dict__.get(BUILT)
            if not isinstance(built, tuple):
                raise built if isinstance(built, Unrebuildable) else Unrebuildable("not_made_here")
            call["made_with"], call["made_with_named"] = built
            if len(state_of(instance)) > MOST_STATE:
                raise Unrebuildable("too_large", f"a module of more than {MOST_STATE} tensors")
            call["state"] = [{"name": n, "tensor": describer.tensor(t)} for n, t in state_of(instance)]
            call["training"] = bool(instance.training)
            describer.tensors += [t for _, t in state_of(instance)]
        call["args"] = [describer.describe(one) for one in args]
        call["kwargs"] = {name: describer.describe(one) for name, one in sorted(kwargs.items())}
        call["no_grad"] = not torch.is_grad_enabled()
        return {"call": call}

    def _watch(self, pending: _Pending, result: Any) -> None:
        """Note which tensors of the result a gradient comes back to."""
        torch = sys.modules["torch"]
        for number, tensor in enumerate(tensors_of(torch, result)[:MOST_OUTPUTS]):
            if tensor.requires_grad and tensor.grad_fn is not None and str(tensor.dtype) in FLOATING:

                def note(grad: Any, number: int = number) -> None:
                    self._settle()
                    self._owner = pending
                    if self._running and number not in pending.upstream:
                        dtype = str(grad.dtype).removeprefix("torch.")
                        try:
                            fill = fill_of(torch, grad.detach(), dtype)
                        except Unrebuildable:
                            return  # such a gradient cannot be drawn; the call is recorded without
                        pending.upstream[number] = {"shape": list(grad.shape), "dtype": dtype, "fill": fill}

                tensor.register_hook(note)

    def _settle(self) -> None:
        """Launches since the last call or gradient belong to the backward of the call whose gradient came last; before
        any gradient they are of something that is no entry."""
        now = self._launched()
        if self._depth == 0:
            if self._owner is not None:
                self._owner.launches += now - self._mark
            else:
                self._unowned += now - self._mark
            self._mark = now

    def _commit(self) -> None:
        for pending in self._pending:
            if self._counted and not pending.launches:
                continue
            told = pending.told
            told["call"]["upstream"] = [{"output": n, "tensor": t} for n, t in sorted(pending.upstream.items())]
            self._tell(told, pending)
        if self._unowned:
            self._leave_out("", "no_entry", "a changed kernel was launched outside of any call that is recorded")

    def _tell(self, told: Description, pending: _Pending) -> None:
        seconds = told.pop("seconds")
        shapes = json.dumps(_shapes(told["call"]))
        if shapes in self._seen:
            return
        size = len(json.dumps(told))
        if size > MOST_OF_ONE or len(self._seen) >= MOST or self._bytes + size > MOST_BYTES:
            self._leave_out(pending.entry, "too_many")
            return
        self._seen.add(shapes)
        self._bytes += size
        self._emit("call", test=self._test, seconds=seconds, launches=pending.launches, **told)

    def _leave_out(self, entry: str, reason: str, detail: str = "") -> None:
        key = (entry, reason, detail)
        self._left[key] = self._left.get(key, 0) + 1

    def left_out(self) -> list[Description]:
        """What was not told, and why; at most a hundred."""
        return [
            {"entry": entry[:300], "reason": reason, "detail": detail[:300], "count": count}
            for (entry, reason, detail), count in sorted(self._left.items())[:100]
        ]


def state_of(instance: Any) -> list[tuple[str, Any]]:
    """Parameters and buffers of a module by name, those that are there."""
    return sorted([*instance.named_parameters(), *instance.named_buffers()], key=lambda pair: str(pair[0]))


def tensors_of(torch: Any, value: Any, depth: int = 0) -> list[Any]:
    """The tensors of a result in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if depth > 6:
        return []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in items for tensor in tensors_of(torch, item, depth + 1)]


def imported_names(file: str) -> list[tuple[str, str, str]]:
    """What a file imports by name from where: its own name for it, the module, the name there."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        (alias.asname or alias.name, node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    ]


def _named(owner: Any, known_as: tuple[str, str] | None) -> dict[str, str]:
    """Under which name another process finds it. Raises :class:`Unrebuildable` where it finds something else."""
    module, name = known_as or (str(owner.__module__), str(owner.__qualname__))
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise Unrebuildable("not_importable", f"{module}.{name}")
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise Unrebuildable("not_importable", f"{module}.{name}") from None
    if found is not owner:
        raise Unrebuildable("not_importable", f"{module}.{name} is something else")
    return {"module": module, "entry": f"{module}.{name}"}


def _shapes(value: Any) -> Any:
    """A description without distributions: calls that differ in them only are one."""
    if isinstance(value, dict):
        return {k: v["kind"] if k == "fill" and v["kind"] != "exact" else _shapes(v) for k, v in value.items()}
    return [_shapes(one) for one in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def install(asked: dict[str, Any], root: str, emit: Emit) -> Recorder:
    """A recorder for one plan; the device, where it counts launches, is installed by now."""
    names = ("smith.device.interpreter.launches", "smith.device.native.launches")
    module: Any = next((sys.modules[name] for name in names if name in sys.modules), None)
    counts: Counts = (lambda: {}) if module is None else module.snapshot
    # Paths in counts are relative to the folder in which the device was installed, which is the root.
    return Recorder({**asked, "counted": asked["counted"] and module is not None}, root, emit, counts)
