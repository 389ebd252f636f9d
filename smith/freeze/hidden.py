"""Which files are hidden tests, and the tree that holds them.

The whole test tree of the merged side is laid over a submission, support files and ``conftest.py`` with it: test
files import their helpers, and one upstream's ``conftest.py`` changes what every test sees.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from smith.git.objects import present
from smith.git.repository import Repository
from smith.git.trees import TreeEntry, list_tree, read_blobs, read_file, write_tree
from smith.records.candidate import HIDDEN_ROLES, Candidate, Role
from smith.syntax import parse

_ROOT_NAME = re.compile(r"(unit_?|op_)?tests?\Z|testing\Z", re.IGNORECASE)

_STEERS = re.compile(
    r"(^|/)(conftest\.py|\.?pytest\.ini|tox\.ini|setup\.cfg|sitecustomize\.py|usercustomize\.py|[^/]*\.pth|"
    r"\.gitattributes|\.gitmodules)\Z"
)


def steers_tests(path: str) -> bool:
    """Whether a file of this name changes how tests are run rather than what the code does. No submission may touch it,
    and no reference patch contains it."""
    return _STEERS.search(path) is not None


@dataclass(frozen=True)
class HiddenTests:
    """The tree of hidden tests, and by what rule it was made."""

    tree: str
    roots: tuple[str, ...]
    extra: tuple[str, ...]
    removed: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def hides(self, path: str) -> bool:
        """Whether ``path`` belongs to the hidden tests, so that no submission may touch it."""
        return path in self.extra or path in self.removed or _below(path, self.roots)


def test_roots(candidate: Candidate, declared: Sequence[str]) -> tuple[str, ...]:
    """The recipe's test roots, and for changed tests elsewhere the outermost folder with the name of a test folder."""
    roots = [str(PurePosixPath(r)) for r in declared if str(PurePosixPath(r)) != "."]
    for path in candidate.test_files:
        if _below(path, roots):
            continue
        parts = PurePosixPath(path).parts[:-1]
        for depth, part in enumerate(parts, start=1):
            if _ROOT_NAME.match(part):
                roots.append("/".join(parts[:depth]))
                break
    return tuple(sorted(set(roots)))


def collect_hidden(repo: Repository, candidate: Candidate, merged: str, base: str, roots: Sequence[str]) -> HiddenTests:
    """Make the tree of hidden tests in ``repo`` from the trees ``merged`` and ``base``."""
    changed = [f for f in candidate.files if f.role in HIDDEN_ROLES and not _below(f.path, roots)]
    entries = list(list_tree(repo, merged))
    paths = {_text(e) for e in entries}
    extra = {f.path for f in changed if f.path in paths}
    extra |= {p for p in paths if p == "conftest.py"}
    hidden = [e for e in entries if e.kind == "blob" and (_text(e) in extra or _below(_text(e), roots))]
    there = present(repo, {e.oid for e in hidden})
    left_out = tuple(sorted(_text(e) for e in hidden if e.oid not in there))
    tree = hidden_tree(repo, entries, roots, extra, left_out)
    kept = {_text(e) for e in hidden}
    gone = {f.old_path or f.path for f in changed if f.change in ("deleted", "renamed")}
    removed = {_text(e) for e in list_tree(repo, base) if _below(_text(e), roots) or _text(e) in gone} - kept
    return HiddenTests(tree, tuple(roots), tuple(sorted(extra)), tuple(sorted(removed)), left_out)


def hidden_tree(
    repo: Repository,
    merged: Iterable[TreeEntry],
    roots: Sequence[str],
    extra: Collection[str],
    left_out: Collection[str] = (),
) -> str:
    """The tree of those merged entries that lie below a root or are named, without submodules and ``left_out``."""
    found = [e for e in merged if e.kind == "blob" and (_text(e) in extra or _below(_text(e), roots))]
    return write_tree(repo, [e for e in found if _text(e) not in left_out])


def changed_tests(repo: Repository, base: str, merged: str, files: Iterable[str]) -> tuple[str, ...]:
    """``file::test`` functions of ``files`` that are new or whose source, decorators included, has changed."""
    changed: list[str] = []
    for path in files:
        before = _functions(read_file(repo, base, path) or b"")
        changed += [
            f"{path}::{n}"
            for n, dump in _functions(read_file(repo, merged, path) or b"").items()
            if before.get(n) != dump
        ]
    return tuple(changed)


def guard_files(
    repo: Repository, merged: str, candidate: Candidate, hidden: HiddenTests, limit: int = 2
) -> tuple[str, ...]:
    """Unchanged test files that reach the changed code: the guards of a task, the most telling first.

    Found in the text: a test that imports a changed module, or names a changed kernel. So it can miss an indirect use;
    what it finds is confirmed by running.
    """
    imported = _pattern(rb"^\s*(?:from|import)\s[^\n]*?\b(?:%s)\b", _modules(candidate.source_files))
    named = _pattern(rb"\b(?:%s)\b", _kernel_names(candidate))
    files = {
        path: e.oid
        for e in list_tree(repo, merged)
        if e.kind == "blob"
        and collectable(path := _text(e))
        and hidden.hides(path)
        and path not in candidate.test_files
    }
    content = dict(read_blobs(repo, set(files.values())))
    found = []
    for path, oid in files.items():
        data = content.get(oid) or b""
        reaches = (bool(named and named.search(data)), bool(imported and imported.search(data)))
        if any(reaches):
            found.append((-sum(reaches), len(data), path))
    return tuple(path for _, _, path in sorted(found)[:limit])


def _pattern(template: bytes, words: Collection[bytes]) -> re.Pattern[bytes] | None:
    return re.compile(template % b"|".join(sorted(map(re.escape, words))), re.MULTILINE) if words else None


def _kernel_names(candidate: Candidate) -> set[bytes]:
    """Changed kernels, and the file names of kernels that are not Python (those are called through a wrapper)."""
    names = {symbol.rsplit(".", 1)[-1] for kernel in candidate.kernels for symbol in kernel.code}
    names |= {PurePosixPath(k.path).stem for k in candidate.kernels if not k.path.endswith(".py")}
    return {name.encode() for name in names if len(name) > 3}


def test_file_list(candidate: Candidate, paths: Collection[str]) -> tuple[str, ...]:
    """Changed files that pytest can collect and that exist on the merged side."""
    return tuple(
        sorted(f.path for f in candidate.files if f.role == Role.TEST and collectable(f.path) and f.path in paths)
    )


def collectable(path: str) -> bool:
    """Whether pytest takes a file of this name for a test file (its default patterns)."""
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _modules(paths: Iterable[str]) -> set[bytes]:
    """Dotted names under which test files may import these source files."""
    names = set()
    for path in paths:
        parts = list(PurePosixPath(path).with_suffix("").parts)
        if not path.endswith(".py"):
            continue
        if parts[-1] == "__init__":
            continue  # nearly every test imports a package's front door
        if parts and parts[0] in ("src", "python", "lib"):
            parts = parts[1:]
        if len(parts) >= 2:
            names.add(".".join(parts).encode())
    return names


def _functions(source: bytes) -> dict[str, str]:
    """Test function (``Class::name`` for methods) to a dump of its syntax, positions left out."""
    module = parse(source)
    found: dict[str, str] = {}
    for node in module.body if module is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found[node.name] = ast.dump(node)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name.startswith("test"):
                    found[f"{node.name}::{inner.name}"] = ast.dump(inner)
    return found


def _below(path: str, roots: Iterable[str]) -> bool:
    return any(path.startswith(f"{root}/") for root in roots)


def _text(entry: TreeEntry) -> str:
    return entry.path.decode("utf-8", "surrogateescape")
