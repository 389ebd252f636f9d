"""Recipes: found by name, checked whole, guessed from file names, tried in the order of their era."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.environment.recipes import companions, find_recipe, guess, recipe_name
from smith.environment.requirements import requirement_name
from smith.errors import BadInput, RecordError
from smith.records.recipe import EnvironmentChoice, Recipe

HEAD = 'schema_version = 1\nrepo = "Owner/Name"\n'


def write(folder: Path, text: str, name: str = "owner__name.toml") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_a_recipe_is_found_by_the_repositorys_name_in_lower_case(tmp_path: Path) -> None:
    path = write(tmp_path / "recipes", HEAD + 'python_path = ["src"]\n')
    recipe, found = find_recipe("Owner/Name", [tmp_path / "nowhere", tmp_path / "recipes"])
    assert (recipe.python_path, found) == (("src",), path)


def test_the_first_folder_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "a", HEAD)
    write(tmp_path / "b", HEAD)
    assert find_recipe("owner/name", [tmp_path / "a", tmp_path / "b"])[1] == first


def test_without_a_recipe_there_is_a_guess_and_no_file(tmp_path: Path) -> None:
    recipe, found = find_recipe("owner/name", [tmp_path], ["src/pkg/__init__.py", "test/test_a.py"])
    assert found is None
    assert (recipe.repo, recipe.python_path, recipe.test_roots) == ("owner/name", ("src", "."), ("test",))


@pytest.mark.parametrize("repo", ["", "name", "a/b/c", "https://host/a/b", "a b/c", "../../etc/passwd"])
def test_a_name_that_is_no_repository_is_refused(repo: str) -> None:
    with pytest.raises(BadInput, match="OWNER/NAME"):
        recipe_name(repo)


def test_a_recipe_in_capitals_is_not_silently_passed_over(tmp_path: Path) -> None:
    write(tmp_path, HEAD, "Owner__Name.toml")
    with pytest.raises(RecordError, match=r"rename it to owner__name\.toml"):
        find_recipe("owner/name", [tmp_path])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("python_path = [", "not TOML"),
        ("colour = 1", "colour is no known key"),
        ('python_path = ["../other"]', "leaves the source tree"),
        ('python_path = ["/abs"]', "leaves the source tree"),
        ('test_roots = [""]', "leaves the source tree"),
        ("environments = []", "is empty"),
        ("build = [[]]", "a command is empty"),
        ('[[environments]]\nname = "a"\n[[environments]]\nname = "a"', "two are called a"),
        ('[[environments]]\nname = "a"\npackages = ["--index-url=x"]', "is no requirement"),
        ('[[environments]]\nname = "a"\nmerged_after = 2026-01-01\nmerged_before = 2026-01-01', "fits no day"),
        ('prelude = "../secret.py"', "leaves the recipe's folder"),
        ('prelude = "/etc/passwd"', "leaves the recipe's folder"),
        ('prelude = "missing.py"', "is no file beside the recipe"),
        ('prelude = "linked.py"', "leaves the recipe's folder"),
        ('workloads = [{ file = "." }]', "is no file beside the recipe"),
    ],
)
def test_a_bad_recipe_is_one_line_that_names_file_and_key(tmp_path: Path, body: str, words: str) -> None:
    (tmp_path / "secret.py").write_text("")
    path = write(tmp_path / "recipes", HEAD + body + "\n")
    (path.parent / "linked.py").symlink_to(tmp_path / "secret.py")
    with pytest.raises(RecordError, match=words) as caught:
        find_recipe("owner/name", [path.parent])
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_recipe_for_another_repository_is_refused(tmp_path: Path) -> None:
    write(tmp_path, HEAD.replace("Owner/Name", "else/where"))
    with pytest.raises(RecordError, match="is for else/where, not for owner/name"):
        find_recipe("owner/name", [tmp_path])


def test_companions_lie_beside_the_recipe(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + 'prelude = "preludes/p.py"\nworkloads = [{ file = "w.py" }]\n')
    (tmp_path / "preludes").mkdir()
    for name in ("preludes/p.py", "w.py"):
        (tmp_path / name).write_text("")
    recipe, found = find_recipe("owner/name", [tmp_path])
    assert found == path
    files = companions(recipe, path)
    assert files.prelude == (tmp_path / "preludes/p.py").resolve()
    assert files.workloads == ((tmp_path / "w.py").resolve(),)


@pytest.mark.parametrize(
    ("names", "python_path", "test_roots"),
    [
        (["pkg/__init__.py", "tests/test_a.py"], (".",), ("tests",)),
        (["src/pkg/__init__.py", "tests/a/test_a.py", "tests/b/b_test.py"], ("src", "."), ("tests",)),
        (["src/kernel.cpp", "src/setup.py", "pkg/k.py"], (".",), ()),
        (["python/triton/x.py", "python/test/unit/test_x.py"], ("python", "."), ("python/test",)),
        (["op_tests/test_a.py", "op_tests/tests/test_b.py", "pkg/tests/test_c.py"], (".",), ("op_tests", "pkg/tests")),
        (["third_party/tests/test_a.py", "third_party/src/p/x.py", "tests/data.json"], (".",), ()),
        ([], (".",), ()),
    ],
)
def test_a_guess_sees_the_layout(names: list[str], python_path: tuple[str, ...], test_roots: tuple[str, ...]) -> None:
    recipe = guess(names)
    assert (recipe.python_path, recipe.test_roots) == (python_path, test_roots)


days = st.dates(date(2020, 1, 1), date(2030, 1, 1))
choices = st.lists(st.tuples(st.none() | days, st.none() | days), min_size=1, max_size=6).map(
    lambda spans: tuple(
        EnvironmentChoice(name=f"e{i}", merged_after=after, merged_before=before)
        for i, (after, before) in enumerate(spans)
    )
)


@given(choices, days)
def test_environments_of_the_era_come_first_and_none_is_lost(
    environments: tuple[EnvironmentChoice, ...], day: date
) -> None:
    tried = Recipe(repo="a/b", environments=environments).candidates(day)
    assert sorted(e.name for e in tried) == sorted(e.name for e in environments)
    fits = [e.fits(day) for e in tried]
    assert fits == sorted(fits, reverse=True)
    for group in (True, False):
        names = [e.name for e in tried if e.fits(day) is group]
        assert names == sorted(names), "the recipe's own order is kept"


def test_an_era_begins_on_its_first_day_and_ends_before_its_last() -> None:
    era = EnvironmentChoice(name="e", merged_after=date(2025, 7, 1), merged_before=date(2026, 1, 1))
    assert [era.fits(date(*d)) for d in [(2025, 6, 30), (2025, 7, 1), (2025, 12, 31), (2026, 1, 1)]] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("einops", "einops"),
        ("Triton==3.4.0", "triton"),
        (" Flash_Attn.x >=2, <3 ", "flash-attn-x"),
        ("a[b,c]~=1.0; python_version < '3.12'", "a"),
        ("pkg @ https://host/pkg-1-py3-none-any.whl", "pkg"),
    ],
)
def test_requirements_have_a_name(text: str, name: str) -> None:
    assert requirement_name(text) == name


@pytest.mark.parametrize("text", ["", "-r file", "./folder", "/abs", "a b", "a\nb", "a==1 @ x", "../up", "a/b"])
def test_options_paths_and_lists_are_no_requirements(text: str) -> None:
    with pytest.raises(RecordError):
        requirement_name(text)
