"""From an exception of the compiler to a typed reason. The words are those of ``smith.records.compiled``."""

from __future__ import annotations

from .arguments import Unsupported
from .kernels import ImportFailed, NotFound

DETAIL = 600


class OutOfResources(Exception):
    """The kernel compiled and asks for more than the target has."""


def reason_of(error: BaseException, *, compiling: bool = True) -> tuple[str, str]:
    """Code and detail: by class, and for what the compiler itself raised by who raised it.

    ``compiling`` is false where the error came before: Triton refuses sources when it digests them, too.
    """
    text = " ".join(str(error).split())[:DETAIL] or type(error).__name__
    if isinstance(error, (NotFound, LookupError)) and not isinstance(error, KeyError):
        return "not_found", text
    if isinstance(error, ImportFailed):
        return "import_failed", text
    if isinstance(error, Unsupported):
        return "unsupported_argument", text
    if isinstance(error, OutOfResources) or type(error).__name__ == "OutOfResources":
        return "out_of_resources", text
    if isinstance(error, MemoryError):
        return "crashed", "out of memory"
    names = {c.__name__ for each in _chain(error) for c in type(each).__mro__}
    if names & {"CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure"}:
        return "language", _language(error)
    if isinstance(error, (TypeError, KeyError)):
        # Raised while Triton binds a launch: an argument or option that this version or target does not know.
        return "binding", f"{type(error).__name__}: {text}"
    return "back_end" if compiling else "language", f"{type(error).__name__}: {text}"


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and len(found) < 20 and all(error is not other for other in found):
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _language(error: BaseException) -> str:
    """Where and why the language refused: the innermost error has the words, the outermost a place and its line."""
    chain = _chain(error)
    words = [" ".join(str(each).split()) for each in chain]
    return " <- ".join(dict.fromkeys(word for word in reversed(words) if word))[:DETAIL] or type(error).__name__
