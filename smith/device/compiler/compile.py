"""One captured launch through Triton's own launch path, up to where the compiled kernel would be loaded."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from typing import Any

from ..interpreter.target import Target
from . import amd, nvidia
from .arguments import rebuild
from .failures import OutOfResources, reason_of
from .kernels import Kernels

Answer = dict[str, Any]
"""The JSON of ``smith.records.compiled.CompiledLaunch`` without its index."""

FACTS = 1
"""Part of every key: raised when facts are read in another way."""


class _Known(BaseException):
    """This code was compiled before; a BaseException, so that nothing of Triton's mends it."""


class Compiler:
    """Compiles launches for one target. The target's driver is active and the repository importable."""

    def __init__(self, target: Target, kernels: Kernels, known: Collection[str] = ()) -> None:
        self._target, self._kernels = target, kernels
        self._known = set(known)
        self._key = ""
        self._dropped: list[str] = []

    def answer(self, launch: dict[str, Any]) -> Answer:
        """What came of one launch; whatever it raises is its failure."""
        began = time.perf_counter()
        self._key, self._dropped = "", []
        said: Answer = {}
        try:
            said["facts"] = self._facts(self._compiled(launch), launch)
        except _Known:
            said["cached"] = True
        except Exception as error:
            said["failure"], said["detail"] = reason_of(error, compiling=bool(self._key))
        if self._dropped:
            said["dropped"] = self._dropped
        return {**said, "key": self._key, "seconds": round(time.perf_counter() - began, 4)}

    def _compiled(self, launch: dict[str, Any]) -> Any:
        function = self._kernels.find(launch["module"], launch["symbol"], launch["line"], launch["path"])
        positional, named = self._arguments(launch)
        cache = function.device_caches[0]  # makes the binder, which sets ``compile``
        original, hooks = function.compile, function.pre_run_hooks
        backend = cache[-2]
        for option in launch.get("options", ()):
            if self._takes(backend, option["name"]):
                named[option["name"]] = rebuild(option, self._kernels.named, constant=True)
            else:
                self._dropped.append(option["name"])

        def compile_once(src: Any, *args: Any, **kwargs: Any) -> Any:
            self._key = self._key_of(src, kwargs.get("options"))
            if self._key in self._known:
                raise _Known
            return original(src, *args, **kwargs)

        # Hooks would touch the tensors, for which there are only stand-ins.
        function.compile, function.pre_run_hooks = compile_once, []
        try:
            return function.run(*positional, grid=(1, 1, 1), warmup=True, **named)
        finally:
            function.compile, function.pre_run_hooks = original, hooks
            for one in cache[:2]:
                if isinstance(one, dict):
                    one.clear()  # the next launch must come by here again, to get its key

    def _arguments(self, launch: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments by position, up to the first that was passed by a name that is an option's too.

        Triton takes such a one as both.
        """
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for argument in launch["arguments"]:
            value = rebuild(argument, self._kernels.named, constant=argument.get("constant", False))
            if named or "option" in argument.get("traits", ()):
                named[argument["name"]] = value
            else:
                positional.append(value)
        return positional, named

    @staticmethod
    def _takes(backend: Any, option: str) -> bool:
        """Whether the target's back end knows an option: those of another vendor's are left out, and told."""
        return hasattr(backend.parse_options({}), option)

    def _key_of(self, src: Any, options: Any) -> str:
        """The digest of all that the machine code is made of."""
        import triton

        parts = [
            FACTS, triton.__version__, self._target.arch, self._source(src.fn), src.signature,
            sorted((str(k), _constant(v)) for k, v in src.constants.items()),
            sorted((str(k), str(v)) for k, v in src.attrs.items()),
            sorted((k, str(v)) for k, v in (options or {}).items() if k != "extern_libs"),
        ]  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _source(self, function: Any) -> str:
        """Triton's digest of a kernel with all that it calls, but not of the lines on which they stand."""
        if not getattr(function, "smith_source", None):
            functions = self._kernels.all()
            lines = [(one, one.starting_line_number) for one in functions]
            try:
                for one in functions:
                    one.starting_line_number, one.hash = 0, None
                function.smith_source = str(function.cache_key)
            finally:
                for one, line in lines:
                    one.starting_line_number, one.hash = line, None
        return str(function.smith_source)

    def _facts(self, kernel: Any, launch: dict[str, Any]) -> dict[str, int | None]:
        metadata, assembly = kernel.metadata, kernel.asm
        lds, waves, target = int(metadata.shared), int(metadata.num_warps), self._target
        if lds > target.shared_memory:
            raise OutOfResources(f"{lds} bytes of LDS or shared memory, and {target.arch} has {target.shared_memory}")
        if target.backend == "hip":
            found = amd.facts(
                assembly["amdgcn"], target.arch, lds_bytes=lds, lds_limit=target.shared_memory, waves=waves
            )
        else:
            found = nvidia.facts(
                assembly["ptx"],
                assembly.get("cubin"),
                shared_bytes=lds,
                shared_limit=target.shared_memory,
                threads=target.max_threads,
                waves=waves,
            )
        found["waves"] = waves
        return {name: value for name, value in found.items() if value is not None}


def _constant(value: Any) -> str:
    """A constant as text; a function by its source, since its name says little."""
    return f"function {value.cache_key}" if hasattr(value, "cache_key") else f"{type(value).__name__} {value!s}"
