"""What of a kernel's argument changes the code, as plain data; and a stand-in made from that data.

Triton specialises on types, on integers that equal one or are divisible by 16, on the alignment of pointers and (AMD)
on whether their storage lies within 2 GiB. Nothing else of an argument is kept, so launches that compile to the same
code have the same description. What a stand-in makes of it is left to Triton's own binder, in the version and for the
target at hand: the rules are not repeated here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Description = dict[str, Any]
"""The JSON of ``smith.records.compiled.Argument``; keys with empty values are left out."""

FindFunction = Callable[[str], Any]

LONGEST = 4000
"""Characters of one string; a longer one is no value that a kernel branches on."""
DEEPEST = 8
MOST_ITEMS = 64
_RANGE_32 = range(-(2**31), 2**31)
# (equal to one, divisible by 16) -> a number of that class, by width.
_EXAMPLES = {
    "i32": {(True, False): 1, (False, True): 16, (False, False): 7},
    "i64": {(False, True): 1 << 40, (False, False): (1 << 40) + 7},
    "u64": {(False, True): 1 << 63, (False, False): (1 << 63) + 7},
}


class Unsupported(Exception):
    """An argument of which no stand-in can be made here; the message names it."""


class Pointer:
    """Stands for a tensor: what Triton asks of one to specialise a launch."""

    def __init__(self, dtype: Any, *, aligned: bool, small: bool) -> None:
        self.dtype = dtype
        self._address = 0 if aligned else 4
        self._range = 0 if small else 1 << 40

    def data_ptr(self) -> int:
        return self._address

    def ptr_range(self) -> int:
        return self._range


def describe(value: Any, *, constant: bool = False, specialise: bool = True, align: bool = True) -> Description:
    """What of ``value`` changes the code.

    ``constant``: the parameter is declared ``tl.constexpr``. ``specialise`` and ``align`` are false where the kernel
    says ``do_not_specialize`` or ``do_not_specialize_on_alignment`` of it.
    """
    return _describe(value, constant, specialise, align, 0)


def _describe(value: Any, constant: bool, specialise: bool, align: bool, depth: int) -> Description:
    if depth > DEEPEST:
        return {"kind": "other", "text": "nested too deep"}
    if type(value).__name__ == "constexpr" and hasattr(value, "value"):
        # A value that is wrapped by hand is a constant, whatever the parameter says.
        return _with(_describe(value.value, True, specialise, align, depth + 1), "wrapped")
    if constant and type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if value is None:
        return {"kind": "none"}
    if type(value) in (bool, int, float, str):
        return _scalar(value, constant, specialise, align)
    if isinstance(value, (tuple, list)):
        if len(value) > MOST_ITEMS:
            return {"kind": "other", "text": f"a {type(value).__name__} of {len(value)} items"}
        items = [_describe(item, constant, specialise, align, depth + 1) for item in value]
        named = hasattr(value, "_fields")
        kind = "list" if isinstance(value, list) else "tuple"
        return {"kind": kind, "items": items, **({"text": _name(type(value))} if named else {})}
    return _object(value, specialise, align)


def _scalar(value: bool | int | float | str, constant: bool, specialise: bool, align: bool) -> Description:
    if isinstance(value, str):
        fits = len(value) <= LONGEST
        return {"kind": "string", "text": value} if fits else {"kind": "other", "text": "a long string"}
    if isinstance(value, bool):
        return {"kind": "boolean", **({"text": str(value)} if constant else {})}
    if isinstance(value, float):
        return {"kind": "float", **({"text": value.hex()} if constant else {})}
    if constant:
        return {"kind": "integer", "text": str(value) if abs(value) < 1 << 4096 else "too large"}
    width = "i32" if value in _RANGE_32 else "u64" if value >= 1 << 63 else "i64"
    traits = []
    if specialise and value == 1:
        traits = ["one"]
    elif specialise and align and value % 16 == 0:
        traits = ["divisible_by_16"]
    return {"kind": "integer", "text": width, **({"traits": traits} if traits else {})}


def _object(value: Any, specialise: bool, align: bool) -> Description:
    kind = type(value)
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        aligned = specialise and align and value.data_ptr() % 16 == 0
        traits = (["aligned"] if aligned else []) + (["within_2gib"] if specialise and _small(value) else [])
        return {"kind": "pointer", "text": _dtype(value.dtype), **({"traits": traits} if traits else {})}
    if kind.__name__ == "TensorDescriptor" and hasattr(value, "block_shape"):
        shape = [{"kind": "integer", "text": str(int(size))} for size in value.block_shape]
        text = f"{_dtype(value.base.dtype)} {getattr(value, 'padding', 'zero')}"
        return {"kind": "descriptor", "text": text, "items": shape}
    if kind.__name__ == "dtype" and kind.__module__.startswith("triton."):
        return {"kind": "dtype", "text": str(value)}
    if kind.__name__ == "dtype" and kind.__module__ == "torch":
        return {"kind": "torch_dtype", "text": _dtype(value)}
    function = unwrap(value)
    code = getattr(getattr(function, "fn", None), "__code__", None)
    if code is not None and hasattr(function, "arg_names"):
        plain = function.fn
        return {"kind": "function", "text": f"{plain.__module__}:{plain.__qualname__}:{code.co_firstlineno}"}
    return {"kind": "other", "text": _name(kind)}


def _with(description: Description, trait: str) -> Description:
    return {**description, "traits": [*description.get("traits", ()), trait]}


def _dtype(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _small(value: Any) -> bool:
    storage = getattr(value, "untyped_storage", None)
    try:
        return storage is None or storage().size() < 1 << 31
    except (RuntimeError, TypeError, AttributeError):
        return True


def unwrap(kernel: Any) -> Any:
    """The jit function inside autotuners and heuristics; other values as they are."""
    for _ in range(DEEPEST):
        inner = getattr(kernel, "fn", None)
        if inner is None or not hasattr(inner, "arg_names"):
            return kernel
        kernel = inner
    return kernel


def rebuild(description: Description, find_function: FindFunction, *, constant: bool = False) -> Any:
    """A stand-in that Triton specialises as it would the value that was described.

    Raises :class:`Unsupported` where there is none, :class:`LookupError` for a function that is not found.
    """
    traits = description.get("traits", ())
    if "wrapped" in traits:
        import triton.language as tl

        plain = {**description, "traits": [trait for trait in traits if trait != "wrapped"]}
        return tl.constexpr(rebuild(plain, find_function, constant=True))
    text = description.get("text", "")
    match description["kind"]:
        case "none":
            return None
        case "boolean":
            return text == "True"
        case "float":
            return float.fromhex(text) if text else 0.5
        case "integer":
            return _integer(text, traits, constant)
        case "string":
            return text
        case "pointer":
            return Pointer(_torch_dtype(text), aligned="aligned" in traits, small="within_2gib" in traits)
        case "torch_dtype":
            return _torch_dtype(text)
        case "dtype":
            return _triton_dtype(text)
        case "tuple" | "list":
            return _sequence(description, find_function, constant)
        case "function":
            return find_function(text)
        case "descriptor":
            return _descriptor(description)
    raise Unsupported(f"a value of type {text or description['kind']}")


def _integer(text: str, traits: Any, constant: bool) -> int:
    if constant:
        try:
            return int(text)
        except ValueError:
            raise Unsupported(f"an integer that is {text}") from None
    return _EXAMPLES[text]["one" in traits, "divisible_by_16" in traits]


def _torch_dtype(text: str) -> Any:
    import torch

    # A tensor that was reinterpreted has a dtype of Triton's; its name is enough.
    return getattr(torch, text, text)


def _triton_dtype(text: str) -> Any:
    import triton.language as tl

    if text.startswith("pointer<"):
        raise Unsupported(f"the dtype {text}")
    return tl.dtype(text)


def _sequence(description: Description, find_function: FindFunction, constant: bool) -> Any:
    items = [rebuild(item, find_function, constant=constant) for item in description.get("items", ())]
    if description["kind"] == "list":
        return items
    if not description.get("text"):
        return tuple(items)
    module, _, qualname = description["text"].partition(":")
    try:
        made: Any = importlib.import_module(module)
        for part in qualname.split("."):
            made = getattr(made, part)
        return made(*items)
    except (ImportError, AttributeError, TypeError) as error:
        raise Unsupported(f"a tuple of type {description['text']}: {error}") from error


def _descriptor(description: Description) -> Any:
    try:
        from triton.tools.tensor_descriptor import TensorDescriptor
    except ImportError as error:
        raise Unsupported("a tensor descriptor, with this version of Triton") from error
    dtype, _, padding = description["text"].partition(" ")
    block = [int(item["text"]) for item in description.get("items", ())]
    strides = [1 << (10 + 2 * place) for place in range(len(block) - 1, 0, -1)] + [1]
    base = Pointer(_torch_dtype(dtype), aligned=True, small=True)
    try:
        return TensorDescriptor(base, [1 << 10] * len(block), strides, block, padding)
    except TypeError:  # before there was padding
        return TensorDescriptor(base, [1 << 10] * len(block), strides, block)
