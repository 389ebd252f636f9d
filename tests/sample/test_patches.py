"""Patches applied in memory give what git gives, and what does not fit is an error."""

from __future__ import annotations

import pytest

from smith.sample._patches import Entry, PatchError, apply_patch

PATCH = b"""diff --git a/f b/f
index 1..2 100644
--- a/f
+++ b/f
@@ -2,3 +2,3 @@ context
 two
-three
+THREE
 four
"""


def tree(content: bytes) -> dict[str, Entry]:
    return {"f": Entry("100644", content)}


@pytest.mark.parametrize(
    "before, after",
    [
        (b"one\ntwo\nthree\nfour\n", b"one\ntwo\nTHREE\nfour\n"),
        (b"zero\nhalf\none\ntwo\nthree\nfour\n", b"zero\nhalf\none\ntwo\nTHREE\nfour\n"),
        (b"two\nthree\nfour\n", b"two\nTHREE\nfour\n"),
        (b"a\r\ntwo\nthree\nfour\n", b"a\r\ntwo\nTHREE\nfour\n"),
    ],
)
def test_a_hunk_finds_its_place(before: bytes, after: bytes) -> None:
    assert apply_patch(tree(before), PATCH) == tree(after)


def test_the_nearest_place_wins() -> None:
    before = b"two\nthree\nfour\n" * 3
    assert apply_patch(tree(before), PATCH).get("f") == Entry("100644", b"two\nTHREE\nfour\n" + before[15:])


def test_the_input_is_left_alone() -> None:
    before = tree(b"one\ntwo\nthree\nfour\n")
    apply_patch(before, PATCH)
    assert before == tree(b"one\ntwo\nthree\nfour\n")


@pytest.mark.parametrize("content", [b"", b"one\ntwo\nthree \nfour\n", b"one\ntwo\nthree\nfour"])
def test_a_hunk_that_does_not_fit_is_an_error(content: bytes) -> None:
    with pytest.raises(PatchError, match="does not fit"):
        apply_patch(tree(content), PATCH)


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(PatchError, match="disagree"):
        apply_patch({}, PATCH)


def test_no_newline_at_the_end() -> None:
    patch = (
        b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
        b"\\ No newline at end of file\n"
    )
    assert apply_patch(tree(b"a"), patch) == tree(b"b")


def test_create_rename_mode_and_delete() -> None:
    created = b"diff --git a/n b/n\nnew file mode 120000\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+f\n"
    renamed = b"diff --git a/f b/g\nold mode 100644\nnew mode 100755\nrename from f\nrename to g\n"
    deleted = b"diff --git a/n b/n\ndeleted file mode 120000\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-f\n"
    after = apply_patch(tree(b"x\n"), created + renamed)
    assert after == {"n": Entry("120000", b"f\n"), "g": Entry("100755", b"x\n")}
    assert apply_patch(after, deleted) == {"g": Entry("100755", b"x\n")}
    with pytest.raises(PatchError, match="disagree"):
        apply_patch(after, created)


@pytest.mark.parametrize(
    "patch",
    [
        b"diff --git a/f b/f\ncopy from f\n",
        b"diff --git a/f b/f\nGIT binary patch\ndelta 3\nKcmZ\n",
        b'diff --git "a/\\303" b/f\n',
    ],
)
def test_what_is_not_understood_is_an_error(patch: bytes) -> None:
    with pytest.raises(PatchError):
        apply_patch(tree(b"x\n"), patch)
