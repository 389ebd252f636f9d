"""Patches as text: JSON holds text, and git's patches are bytes."""

from __future__ import annotations

from smith import temporary
from smith.errors import PatchError
from smith.git.objects import plain
from smith.git.patches import apply, changes, diff
from smith.git.repository import Repository

_BINARY = (
    "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/",
    "--no-ext-diff", "--no-textconv", "--no-color", "-O/dev/null",
)  # fmt: skip


def text_diff(repo: Repository, old_tree: str, new_tree: str) -> str:
    """The patch between two trees as text that gives exactly the new tree.

    A file whose content is not UTF-8 is written as a binary patch, which is ASCII and which ``git apply`` reads. Raises
    :class:`PatchError` where even that does not give the new tree.
    """
    patch = diff(repo, old_tree, new_tree)
    text = decoded(patch)
    if text is not None:
        return text
    odd: list[str] = []
    rest: list[str] = []
    for change in changes(repo, old_tree, new_tree):
        paths = [change.path, *([change.old_path] if change.old_path else [])]
        (rest if decoded(diff(repo, old_tree, new_tree, paths)) is not None else odd).extend(paths)
    with temporary.folder("attributes") as place:
        attributes = place / "attributes"
        attributes.write_text("* -diff\n")
        config = ("-c", f"core.attributesFile={attributes}")
        binary = plain(repo).git(*config, *_BINARY, old_tree, new_tree, "--", *odd)
    patch = diff(repo, old_tree, new_tree, rest) + binary
    if apply(repo, old_tree, patch) != new_tree:
        raise PatchError("the patch has no form as text", rule="not_text")
    return patch.decode("utf-8")


def decoded(patch: bytes) -> str | None:
    """The patch as text, or None where it is not UTF-8."""
    try:
        return patch.decode("utf-8")
    except UnicodeDecodeError:
        return None
