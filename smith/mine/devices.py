"""Devices and architectures that words, paths and guards in code name; the names are data, in ``devices.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

_WORD = re.compile(r"[A-Za-z0-9]+")
# Of text in lower case: a pattern that begins with plain letters is looked for much faster.
_GFX = re.compile(r"gfx(?<![a-z0-9]gfx)\d{1,3}[0-9a-f]{0,2}(?![a-z0-9])")
_SM = re.compile(r"sm(?<![a-z0-9]sm)_?(\d{2,3})[af]?(?![a-z0-9])")
_CUDA_ARCH = re.compile(r"__CUDA_ARCH__\s*(?:>=|==|<|>|<=)\s*(\d{2,3})0\b")
_CAPABILITY = re.compile(
    r"(?:get_device_capability\([^()\n]*\)|\bcapability|\bcompute_cap\w*)\s*(?:\[0\])?\s*(?:>=|==)\s*"
    r"\(?\s*(?P<major>\d{1,2})(?:\s*,\s*(?P<minor>\d))?"
)


@dataclass(frozen=True)
class Named:
    """What was named, the first first and each once."""

    devices: tuple[str, ...] = ()
    """Kinds (``rocm``, ``cuda``, ...) and names (``MI300X``, ``H100``, ...)."""
    architectures: tuple[str, ...] = ()
    """``gfx942``, ``sm_90``, ``avx512``, ..."""


@dataclass(frozen=True)
class _Device:
    name: str
    kind: str
    architecture: str | None
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class _Table:
    devices: tuple[_Device, ...]
    heads: frozenset[str]
    """First words of names of two words."""
    kinds: tuple[tuple[str, re.Pattern[str]], ...]
    guards: tuple[tuple[str, re.Pattern[str]], ...]


def named(*, title: str = "", paths: Iterable[str] = (), codes: Iterable[str] = (), body: str = "") -> Named:
    """What the words of a pull request, its changed paths and the ``codes`` it changed name: the surest first.

    Bodies count only where they name a device or an architecture: ``cuda`` and ``hip`` stand in most of them.
    """
    places = " / ".join(dict.fromkeys(paths))
    found = [*_words(title, True), *_words(places, True)]
    for code in codes:
        found += _guards(code)
    found += _words(body, False)
    return Named(
        tuple(dict.fromkeys(name for is_device, name in found if is_device)),
        tuple(dict.fromkeys(name for is_device, name in found if not is_device)),
    )


def names(text: str) -> list[str]:
    """The devices that ``text`` names, in its order, each once. No kinds: ``MI300X``, not ``rocm``."""
    return [device.name for device in _devices(text)]


_Found = tuple[bool, str]
"""Whether it is a device (and no architecture), and its name."""


def _words(text: str, with_kinds: bool) -> Iterator[_Found]:
    for device in _devices(text):
        yield True, device.name
        yield True, device.kind
        if device.architecture:
            yield False, device.architecture
    yield from _architectures(text.lower())
    if with_kinds:
        yield from ((True, kind) for kind, pattern in _load().kinds if pattern.search(text))


def _devices(text: str) -> list[_Device]:
    heads, found = _load().heads, dict[str, _Device]()
    before = ""
    for word in _WORD.findall(text):
        device = _device(word)
        if before and (whole := _device(f"{before} {word}")) is not None:
            # `RTX 4090` is one name; the second word alone may be another, and the first a family.
            found.pop(before.upper(), None)
            device = whole
        if device is not None:
            found.setdefault(device.name, device)
        before = word if word.lower() in heads else ""
    return list(found.values())


@lru_cache(maxsize=50_000)
def _device(word: str) -> _Device | None:
    # Most words are asked often, and few are names.
    return next((one for one in _load().devices if one.pattern.fullmatch(word)), None)


def _architectures(low: str) -> Iterator[_Found]:
    for match in _GFX.finditer(low):
        yield False, match[0]
        yield True, "rocm"
    for match in _SM.finditer(low):
        yield False, f"sm_{match[1]}"
        yield True, "cuda"


# Looking for words is a hundred times faster than for patterns, and most kernels have no guard: first for a few short
# words, then for what the pattern cannot do without. All in lower case.
_HINTS = {
    "rocm": (
        ("hip", "rocm", "is_amd", "get_gfx"),
        ("is_hip", "is_amd", "is_rocm", "version.hip", "__hip_", "use_rocm", "get_gfx"),
    ),
    "cuda": (
        ("cuda", "nvidia", "get_device_cap"),
        ("is_cuda", "is_nvidia", "version.cuda", "__cuda_arch__", "get_device_cap"),
    ),
    "xpu": (("xpu", "is_intel"),),
    "npu": (("npu", "is_ascend"),),
    "mps": (("mps",),),
}


def _guards(code: str) -> Iterator[_Found]:
    low = code.lower()
    for kind, pattern in _load().guards:
        hints = _HINTS.get(kind, ())
        if all(_any_in(words, low) for words in hints) and pattern.search(_lines_with(hints[-1], low, code)):
            yield True, kind
    yield from _architectures(low)
    if "__cuda_arch__" in low:
        for match in _CUDA_ARCH.finditer(code):
            yield False, f"sm_{match[1]}"
    if "capab" in low or "compute_cap" in low:
        for match in _CAPABILITY.finditer(code):
            major, minor = match["major"], match["minor"] or "0"
            # Written as 9, as (9, 0) or as 90.
            yield False, f"sm_{major}" if int(major) >= 30 else f"sm_{major}{minor}"


def _lines_with(words: Sequence[str], low: str, code: str) -> str:
    """The lines of ``code``, whose lower case is ``low``, that hold one of ``words``: no guard goes over several."""
    if len(low) != len(code):
        return code  # a letter whose lower case is two
    found: list[str] = []
    for word in words:
        at = low.find(word)
        while at >= 0:
            end = low.find("\n", at)
            end = len(low) if end < 0 else end
            found.append(code[low.rfind("\n", 0, at) + 1 : end])
            at = low.find(word, end)
    return "\n".join(found)


def _any_in(words: Sequence[str], text: str) -> bool:
    for word in words:  # noqa: SIM110 - called so often that a generator would take as long as the search
        if word in text:
            return True
    return False


@cache
def _load() -> _Table:
    table = tomllib.loads((files("smith.mine") / "devices.toml").read_text("utf-8"))
    rows = [(group["kind"], row) for group in table["device"] for row in group["names"]]
    return _Table(
        devices=tuple(
            _Device(
                row["name"],
                kind,
                row.get("architecture"),
                re.compile("|".join(row["words"]), 0 if row.get("exact") else re.IGNORECASE),
            )
            for kind, row in rows
        ),
        heads=frozenset(words.split(" ")[0].lower() for _, row in rows for words in row["words"] if " " in words),
        kinds=tuple((kind, _whole(words)) for kind, words in table["kinds"].items()),
        guards=tuple((kind, re.compile(pattern)) for kind, pattern in table["guards"].items()),
    )


def _whole(words: str) -> re.Pattern[str]:
    # An underscore parts words here, as it does in names and paths.
    return re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])", re.IGNORECASE)
