"""Make calls with given values: ``python -m smith.inside.replay FD < plan``.

The plan is one JSON line (``root``, ``python_path``, ``prelude``, ``device_plugin``, ``seed``, ``calls``), then the
bytes of all tensors in their order: for each call those of its first pass, then of its second. Each call is made twice,
the second time in the memory of the first with other values. What comes out goes to ``FD`` in frames: the length of a
JSON line, that line, and the raw bytes that it announces. This process knows what goes in and nothing else.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import runpy
import sys
import time
from collections.abc import Callable
from typing import Any

PRELOAD = ("numpy", "torch", "triton")
PASSES = 2
DETAIL = 300
MARGIN = 4096
"""Elements behind a tensor that lies within a larger storage."""
FLOATING = ("float16", "bfloat16", "float32", "float64")

Write = Callable[[dict[str, Any], list[bytes]], None]


def main(argv: list[str]) -> int:
    """Read everything, prepare the device as for tests, then make call after call."""
    fd = int(argv[0])
    line = sys.stdin.buffer.readline()
    plan: dict[str, Any] = json.loads(line)
    data = memoryview(sys.stdin.buffer.read())
    os.set_inheritable(fd, False)
    write = _writer(fd)
    prelude = os.environ.pop("SMITH_PRELUDE", None)
    os.chdir(plan["root"])
    for name in PRELOAD:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    torch = importlib.import_module("torch")
    if plan["device_plugin"]:
        importlib.import_module(plan["device_plugin"])
    if prelude is not None:
        os.environ["SMITH_PRELUDE"] = prelude
    folders = [os.path.normpath(os.path.join(plan["root"], entry)) for entry in plan["python_path"]]
    sys.path[:] = folders + [entry for entry in sys.path if entry != ""]
    try:
        if plan["prelude"]:
            runpy.run_path(plan["prelude"], run_name="smith_prelude")
    except BaseException as error:
        write({"broken": _words(error)}, [])
        return 1
    offset = 0
    for number, call in enumerate(plan["calls"]):
        sizes = call["bytes"]
        passes = []
        for _ in range(PASSES):
            parts = []
            for size in sizes:
                parts.append(data[offset : offset + size])
                offset += size
            passes.append(parts)
        if number in plan["skip"]:
            continue
        write({"begin": number}, [])
        _make(torch, number, call["call"], passes, int(plan["seed"]), write)
    write({"end": True}, [])
    return 0


def _writer(fd: int) -> Write:
    """Bound before any code of the repository is loaded."""
    write_bytes, encode = os.write, json.JSONEncoder(separators=(",", ":")).encode

    def write(record: dict[str, Any], blobs: list[bytes]) -> None:
        line = encode(record).encode("utf-8", "replace")
        for part in (b"%d\n" % len(line), line, *blobs):
            view = memoryview(part)
            while view:
                view = view[write_bytes(fd, view) :]

    return write


def _words(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return text.encode("ascii", "replace").decode().partition("\n")[0][:DETAIL]


def _make(torch: Any, number: int, call: dict[str, Any], passes: list[list[Any]], seed: int, write: Write) -> None:
    """One call, twice; an error ends it."""
    try:
        replayed = Replayed(torch, call)
        for turn, parts in enumerate(passes):
            torch.manual_seed(seed)
            began = time.perf_counter()
            record, blobs = replayed.once(parts)
            record |= {"call": number, "pass": turn, "seconds": round(time.perf_counter() - began, 4)}
            write(record, blobs)
    except Exception as error:
        write({"call": number, "error": _words(error)}, [])


class Replayed:
    """One call, its tensors kept from one pass to the next."""

    def __init__(self, torch: Any, call: dict[str, Any]) -> None:
        self._torch, self._call = torch, call
        target: Any = importlib.import_module(call["module"])
        for name in call["entry"][len(call["module"]) + 1 :].split("."):
            target = getattr(target, name)
        self._instance: Any = None
        if call["kind"] == "module":
            made = [self._value(one) for one in call.get("made_with", ())]
            named = {name: self._value(one) for name, one in call.get("made_with_named", {}).items()}
            self._instance = target = target(*made, **named)
            target.train(call.get("training", True))
        self._target = target.apply if call["kind"] == "autograd" else target
        self.tensors: list[Any] = []
        self._old: list[Any] = []
        self._parts: list[Any] = []
        self._results: list[tuple[Any, bytes]] = []

    def once(self, parts: list[Any]) -> tuple[dict[str, Any], list[bytes]]:
        """The record of one pass and its blobs."""
        torch, call = self._torch, self._call
        first = not self._results
        self._parts = parts
        target, args, kwargs = self.prepared()
        given = [_bytes_of(torch, t) for t in self.tensors]
        self._poison()
        with torch.set_grad_enabled(not call.get("no_grad", False)):
            result = target(*args, **kwargs)
        skeleton, outputs = _taken_apart(torch, result)
        grads = self._backward(outputs)
        overwritten = [i for i, (tensor, then) in enumerate(self._results) if _bytes_of(torch, tensor) != then]
        blobs: list[bytes] = []

        def told(tensor: Any) -> dict[str, Any]:
            data = _bytes_of(torch, tensor)
            blobs.append(data)
            return {
                "shape": list(tensor.shape),
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "layout": _layout(tensor),
                "bytes": len(data),
            }

        record: dict[str, Any] = {"skeleton": skeleton, "outputs": []}
        for tensor in outputs:
            shares = [n for n, one in enumerate(self.tensors) if _shares(tensor, one)]
            among = [n for n, one in enumerate(outputs) if one is not tensor and _shares(tensor, one)]
            record["outputs"].append({**told(tensor), "shares": shares, "among": among})
        record["grads"] = [None if grad is None else told(grad) for grad in grads]
        record["inputs"] = [
            None if _bytes_of(torch, tensor) == before else told(tensor)
            for tensor, before in zip(self.tensors, given, strict=True)
        ]
        record["overwritten"] = overwritten
        self._results = [(tensor, _bytes_of(torch, tensor)) for tensor in outputs] if first else []
        return record, blobs

    def prepared(self) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        """What to call, and the arguments with their values of the next pass."""
        call = self._call
        self._old, self.tensors = self.tensors, []
        if self._instance is not None:
            self._set_state()
        args = [self._value(one) for one in call.get("args", ())]
        kwargs = {name: self._value(one) for name, one in sorted(call.get("kwargs", {}).items())}
        return self._target, args, kwargs

    # -- arguments ----------------------------------------------------------------------------------------------

    def _set_state(self) -> None:
        found = dict([*self._instance.named_parameters(), *self._instance.named_buffers()])
        wanted = self._call.get("state", ())
        if set(found) != {one["name"] for one in wanted}:
            raise LookupError(f"the module's state is {sorted(found)[:8]}")
        for one in wanted:
            tensor, spec = found[one["name"]], one["tensor"]
            if len(self._old) > len(self.tensors):
                self._refill(tensor, spec)
            else:
                tensor.data = self._made(spec)
                if tensor.is_floating_point():
                    tensor.requires_grad_(bool(spec.get("grad")))
            self.tensors.append(tensor)

    def _value(self, value: dict[str, Any]) -> Any:
        torch, kind, text, number = self._torch, value["kind"], value.get("text", ""), value.get("number", 0)
        items = [self._value(one) for one in value.get("items", ())]
        match kind:
            case "tensor":
                return self._tensor(value["tensor"])
            case "same":
                return self.tensors[number]
            case "none":
                return None
            case "bool":
                return bool(number)
            case "int":
                return int(number)
            case "float":
                return float(text)
            case "str":
                return text
            case "dtype":
                return getattr(torch, text)
            case "device":
                return torch.device("cpu" if text == "cpu" else "cuda")
            case "list":
                return items
            case "tuple":
                return tuple(items)
            case "size":
                return torch.Size(items)
            case "slice":
                return slice(*items)
            case "dict":
                return dict(zip(value.get("keys", ()), items, strict=True))
        raise ValueError(f"an argument of unknown kind {kind}")

    def _tensor(self, spec: dict[str, Any]) -> Any:
        """A tensor with its values of this pass.

        Floating-point ones are filled anew where they lie, which a result remembered by address, shape or object does
        not see. Whole numbers come in tensors of their own: libraries rightly remember what they make of boundaries
        and tables by object.
        """
        torch = self._torch
        if len(self._old) > len(self.tensors) and spec["dtype"] in FLOATING:
            tensor = self._old[len(self.tensors)]
            self._refill(tensor, spec)
        else:
            tensor = self._made(spec)
            if spec.get("parameter"):
                tensor = torch.nn.Parameter(tensor, requires_grad=bool(spec.get("grad")))
            elif spec.get("grad"):
                tensor.requires_grad_()
        self.tensors.append(tensor)
        return tensor

    def _made(self, spec: dict[str, Any]) -> Any:
        torch, shape, strides = self._torch, tuple(spec["shape"]), spec.get("strides")
        device = "cuda" if spec.get("device") == "gpu" else "cpu"
        values = self._read(spec)
        offset = spec.get("offset", 0)
        if not strides and not offset:
            return values.to(device)
        strides = strides or values.contiguous().stride()
        reach = 1 + sum(s * (n - 1) for s, n in zip(strides, shape, strict=True)) if math.prod(shape) else 0
        if offset:
            # Around it lies what nobody may read, and what shows in a sum and in a maximum (which passes over NaN).
            around = math.inf if values.is_floating_point() else 0
            storage = torch.full((offset + reach + MARGIN,), around, dtype=values.dtype, device=device)
        else:
            storage = torch.zeros(reach, dtype=values.dtype, device=device)
        tensor = storage.as_strided(shape, strides, offset)
        _fill(tensor, values)
        return tensor

    def _refill(self, tensor: Any, spec: dict[str, Any]) -> None:
        _fill(tensor, self._read(spec))
        tensor.grad = None

    def _read(self, spec: dict[str, Any]) -> Any:
        """The values of the tensor that comes next, one for each dimension that is broadcast."""
        torch, shape, dtype = self._torch, drawn_shape(spec), getattr(self._torch, spec["dtype"])
        if not math.prod(shape):
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(bytearray(self._parts[len(self.tensors)]), dtype=dtype).reshape(shape)

    def _poison(self) -> None:
        """Leave NaN in freed memory of the sizes at hand: what is never written must not look like a result."""
        torch = self._torch
        for tensor in self.tensors:
            if tensor.is_floating_point() and tensor.numel():
                torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device).fill_(math.nan)

    # -- backward -----------------------------------------------------------------------------------------------

    def _backward(self, outputs: list[Any]) -> list[Any]:
        torch, wanted = self._torch, self._call.get("upstream", ())
        leaves = [t for t in self.tensors if t.requires_grad]
        if not wanted or not leaves:
            return []
        some, grads = [], []
        for place, one in enumerate(wanted):
            tensor = outputs[one["output"]]
            if not tensor.requires_grad:
                raise RuntimeError(f"output {one['output']} has no gradient")
            data = torch.frombuffer(
                bytearray(self._parts[len(self.tensors) + place]), dtype=getattr(torch, one["tensor"]["dtype"])
            )
            if data.numel() != tensor.numel():
                raise RuntimeError(f"output {one['output']} has {tensor.numel()} elements, not {data.numel()}")
            some.append(tensor)
            grads.append(data.reshape(tensor.shape).to(tensor.device, tensor.dtype))
        return list(torch.autograd.grad(some, leaves, grads, allow_unused=True))


def drawn_shape(spec: dict[str, Any]) -> tuple[int, ...]:
    """The shape of the values that are sent: broadcast dimensions have one."""
    strides = spec.get("strides")
    if not strides:
        return tuple(spec["shape"])
    return tuple(1 if stride == 0 and n else n for n, stride in zip(spec["shape"], strides, strict=True))


def _fill(tensor: Any, values: Any) -> None:
    """Write values into a tensor, without any trace in its version."""
    target = tensor.detach()
    if target.shape != values.shape:
        target = target.as_strided(values.shape, target.stride())
    target.data.copy_(values)


def _bytes_of(torch: Any, tensor: Any) -> bytes:
    plain = tensor.detach().contiguous().cpu()
    return plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def _layout(tensor: Any) -> str:
    if tensor.is_contiguous():
        return "contiguous"
    return "broadcast" if 0 in tensor.stride() else "strided"


def _shares(one: Any, other: Any) -> bool:
    if not one.numel() or not other.numel():
        return False
    return bool(one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())


def _taken_apart(torch: Any, value: Any) -> tuple[Any, list[Any]]:
    """The structure of a result, and its tensors. Raises :class:`TypeError` for what is no data."""
    tensors: list[Any] = []

    def part(one: Any, depth: int = 0) -> Any:
        if isinstance(one, torch.Tensor):
            tensors.append(one)
            return "tensor"
        if one is None or isinstance(one, (bool, str)):
            return {"plain": one}
        if isinstance(one, (int, float)):
            return {"number": repr(one)}
        if isinstance(one, (list, tuple)) and depth < 6:
            return {"list" if isinstance(one, list) else "tuple": [part(each, depth + 1) for each in one]}
        if isinstance(one, dict) and depth < 6:
            return {"dict": [[str(key), part(each, depth + 1)] for key, each in one.items()]}
        raise TypeError(f"a result of type {type(one).__name__}")

    return part(value), tensors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
