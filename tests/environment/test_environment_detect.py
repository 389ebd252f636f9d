"""Recipes from a repository's own files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date

import pytest

from smith.environment.commands import read_automation
from smith.environment.declared import read_declarations
from smith.environment.detect import Detected, Imported, detect, layout
from smith.environment.source import SourceFiles
from smith.errors import RecordError
from smith.records.recipe import EnvironmentChoice, Recipe

DAY = date(2025, 8, 14)


def source(files: Mapping[str, str]) -> SourceFiles:
    return SourceFiles(list(files), lambda path: files.get(path, ""))


def told(files: Mapping[str, str]) -> dict[str, str]:
    """Requirement to origin."""
    return {str(one.requirement): one.origin for one in read_declarations(source(files)).requirements}


def detected(files: Mapping[str, str], *surely: str, perhaps: tuple[str, ...] = (), day: date = DAY) -> Detected:
    tree = source(files)
    imported = Imported({name: "tests/test_a.py" for name in surely}, {name: "tests/util.py" for name in perhaps})
    return detect(tree, layout(tree, "owner/name"), imported, day)


def choice(found: Detected, name: str) -> EnvironmentChoice:
    return next(one for one in found.recipe.environments if one.name == name)


PYPROJECT = """
[project]
name = "Fast.Kernels"
requires-python = ">=3.10"
dependencies = ["einops", "transformers>=4.45", "torch>=2.7"]
[project.optional-dependencies]
test = ["pytest", "pandas<3"]
[dependency-groups]
dev = ["psutil==7.0.0", {include-group = "lint"}]
"""


def test_project_metadata_is_read_with_its_places() -> None:
    found = read_declarations(source({"pyproject.toml": PYPROJECT}))
    assert found.own == {"fast-kernels"} and found.python == ">=3.10"
    assert {str(one.requirement): one.origin for one in found.requirements} == {
        "einops": "pyproject.toml: project.dependencies",
        "transformers>=4.45": "pyproject.toml: project.dependencies",
        "torch>=2.7": "pyproject.toml: project.dependencies",
        "pytest": "pyproject.toml: project.optional-dependencies.test",
        "pandas<3": "pyproject.toml: project.optional-dependencies.test",
        "psutil==7.0.0": "pyproject.toml: dependency-groups.dev",
    }
    assert [one.requirement.name for one in found.requirements if one.runtime] == ["einops", "transformers", "torch"]


@pytest.mark.parametrize(
    ("asked", "means"),
    [
        ('"^4.45"', "transformers<5,>=4.45"),
        ('"^0.8.1"', "transformers<0.9,>=0.8.1"),
        ('"~4.45.2"', "transformers<4.46,>=4.45.2"),
        ('"4.45.2"', "transformers==4.45.2"),
        ('">=4.45,<5"', "transformers<5,>=4.45"),
        ('"*"', "transformers"),
        ('{version = "^4.45", optional = true}', "transformers<5,>=4.45"),
    ],
)
def test_poetrys_versions_are_understood(asked: str, means: str) -> None:
    text = f'[tool.poetry]\nname = "x"\n[tool.poetry.dependencies]\npython = "^3.10"\ntransformers = {asked}\n'
    assert list(told({"pyproject.toml": text})) == [means]


def test_a_setup_script_is_read_and_never_run() -> None:
    script = """
import os
os._exit(13)  # nobody runs this
COMMON = ["einops>=0.7"]
COMMON.append("psutil")
def extras():
    dev = ["transformers>=4.52.0", "not a requirement!"]
    return {"dev": dev, "docs": ["mkdocs"]}
def needed():
    if os.name == "nt":
        return ["colorama"]
    return COMMON + ["pandas==2.2.3"]
setup(name="kernels", python_requires=">=3.9", install_requires=needed(), extras_require=extras())
"""
    assert told({"setup.py": script}) == {
        "colorama": "setup.py: install_requires",
        "einops>=0.7": "setup.py: install_requires",
        "psutil": "setup.py: install_requires",
        "pandas==2.2.3": "setup.py: install_requires",
        "transformers>=4.52.0": "setup.py: extras_require.dev",
        "mkdocs": "setup.py: extras_require.docs",
    }
    assert read_declarations(source({"setup.py": script})).python == ">=3.9"


def test_requirement_files_follow_each_other_once() -> None:
    files = {
        "requirements.txt": "-r requirements/test.txt\nnumpy==1.26 ; python_version < '3.0'\n--index-url x\n./local\n",
        "requirements/test.txt": "-r ../requirements.txt\npandas==2.2.3 \\\n  --hash=sha256:00  # why\ngit+https://a/b\n",
        "docs/notes.txt": "not-this-one\n",
        "environment.yml": "dependencies:\n- python=3.11\n- conda-forge::einops=0.8.0=py_0\n- pip:\n  - tqdm>=4\n",
    }
    assert {"pandas==2.2.3", "einops==0.8.0", "tqdm>=4"} <= set(told(files))
    assert not {"not-this-one", "python==3.11"} & set(told(files))


def test_lock_files_give_exact_versions() -> None:
    files = {
        "pyproject.toml": PYPROJECT,
        "uv.lock": 'version = 1\n[[package]]\nname = "transformers"\nversion = "4.51.3"\n',
        "Pipfile.lock": '{"default": {"einops": {"version": "==0.8.1"}}}',
    }
    packages = choice(detected(files, "transformers", "einops"), "era").packages
    assert packages == ("einops==0.8.1", "transformers==4.51.3")


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "setup.cfg", "setup.py", "uv.lock", "Pipfile.lock", "environment.yml"]
)
@pytest.mark.parametrize(
    "text", ["\0", "[", "{", "a: [b", "def (", "[project]\ndependencies = 3\nname = []", "- *x", "[[["]
)
def test_broken_files_tell_nothing_and_break_nothing(name: str, text: str) -> None:
    found = detected({name: text})
    assert found.recipe.environments[-1].packages == ()


def test_only_what_is_imported_is_installed() -> None:
    found = detected({"pyproject.toml": PYPROJECT}, "pandas", "torch", "numpy", "yaml", "fast_kernels", "secret_sauce")
    packages = choice(found, "era").packages
    # einops and transformers are the package's own, and may be asked for while it is imported.
    assert packages == ("einops", "pandas<3", "pyyaml", "transformers>=4.45")
    assert found.unknown == {"secret_sauce": "tests/test_a.py"}
    assert any(
        str(one) == "pandas<3: tests/test_a.py imports pandas; pyproject.toml: project.optional-dependencies.test"
        for one in found.evidence
    )


def test_what_tests_may_import_counts_where_the_project_declares_it() -> None:
    found = detected({"pyproject.toml": PYPROJECT}, perhaps=("pandas", "vllm"))
    assert "pandas<3" in choice(found, "era").packages
    assert not found.unknown


def test_the_environments_go_from_the_day_to_the_present() -> None:
    found = detected({"pyproject.toml": PYPROJECT}, "einops")
    assert [(one.name, one.as_of) for one in found.recipe.environments] == [
        ("era-triton", date(2025, 8, 15)),
        ("era", date(2025, 8, 15)),
        ("current", None),
    ]
    assert choice(found, "era-triton").packages[0] == "triton>=3.3"
    assert {one.python for one in found.recipe.environments} == {">=3.10"}
    early = detected({"pyproject.toml": PYPROJECT}, "einops", day=date(2024, 10, 1))
    assert [one.name for one in early.recipe.environments] == ["era", "current"]  # no Triton of then can be interpreted


def test_a_project_that_needs_nothing_gets_nothing() -> None:
    found = detected({"kernels/__init__.py": ""}, day=date(2024, 1, 1))
    assert found.recipe.environments == (EnvironmentChoice(name="current"),)


WORKFLOW = """
name: tests
on: [push]
env: {SHARED: "1", GITHUB_TOKEN: x}
jobs:
  test:
    container: somewhere/image:1
    env:
      KERNELS_MODE: 1
      KERNELS_CI_ENV: 1
      CUDA_VISIBLE_DEVICES: 0
      FROM_SECRET: ${{ secrets.x }}
    steps:
    - uses: actions/setup-python
      with: {python-version: "3.12"}
    - run: |
        sudo apt-get update && sudo apt-get install -y --no-install-recommends libopenmpi-dev git
        python -m pip install -U pip && pip install -r requirements/ci.txt einops==0.8.0 "pandas>=2" -e .[dev] ./x.whl
        python setup.py build_ext --inplace
        MODE=fast python -m pytest -q tests/ops | tee log
  publish:
    env: {TWINE: "1"}
    steps:
    - run: apt install -y twine-tools
"""


def test_a_workflow_tells_how_tests_are_run() -> None:
    seen = read_automation(source({".github/workflows/ci.yml": WORKFLOW}))
    where = ".github/workflows/ci.yml"
    assert seen.pythons == [("3.12", where)]
    assert [str(one) for one, _ in seen.packages] == ["pip", "einops==0.8.0", "pandas>=2"]
    assert seen.requirement_files == [("requirements/ci.txt", where)]
    assert seen.system == [("libopenmpi-dev", where)]
    assert seen.tests == [("pytest -q tests/ops", where)]
    assert seen.builds == [("python setup.py build_ext --inplace", where)]
    assert {(name, value) for name, value, _ in seen.env} == {
        ("SHARED", "1"),
        ("KERNELS_MODE", "1"),
        ("CUDA_VISIBLE_DEVICES", "0"),
    }
    # Only what the upstream calls by its own name is taken over.
    recipe = detected({".github/workflows/ci.yml": WORKFLOW, "kernels/__init__.py": ""}).recipe
    assert recipe.build == (("python", "setup.py", "build_ext", "--inplace"),)
    assert recipe.system_packages == ("libopenmpi-dev",)
    assert recipe.env == {"OMP_NUM_THREADS": "1", "KERNELS_MODE": "1"}


def test_a_variable_of_a_single_job_is_a_mode_of_that_job() -> None:
    makefile = "test:\n\tHF_DATASETS_OFFLINE=1 pytest a\n\tHF_DATASETS_OFFLINE=1 IMPL=other pytest b\n\tpytest c\n"
    env = detected({"Makefile": makefile}).recipe.env
    assert env["HF_DATASETS_OFFLINE"] == "1" and "IMPL" not in env


def test_container_files_tell_images_and_packages() -> None:
    text = "FROM rocm/pytorch:6.4\nRUN apt-get install -y libnuma-dev \\\n  vim && pip install einops==0.8.0\n"
    seen = read_automation(source({"docker/Dockerfile.rocm": text}))
    assert seen.images == [("rocm/pytorch:6.4", "docker/Dockerfile.rocm")]
    assert [name for name, _ in seen.system] == ["libnuma-dev"]
    assert [str(one) for one, _ in seen.packages] == ["einops==0.8.0"]


def test_a_workflow_of_many_aliases_is_read_once() -> None:
    bomb = "a0: &a0 [pytest]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert read_automation(source({".github/workflows/x.yml": bomb + "jobs: {t: {run: *a29}}\n"})).jobs == 1


def test_pytests_own_settings_tell_the_layout() -> None:
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src", "gone"]\ntestpaths = ["checks/", "gone"]\n',
        "src/kernels/ops.py": "",
        "checks/test_ops.py": "",
        "tests/unit/test_more.py": "",
    }
    recipe = layout(source(files), "owner/name")
    assert recipe.python_path == ("src", ".") and recipe.test_roots == ("checks", "tests")


def test_a_build_of_another_job_or_for_a_gpu_is_nobodys_build() -> None:
    other = "jobs:\n  image:\n    steps:\n    - run: python setup.py build_ext --inplace\n"
    assert detected({".github/workflows/x.yml": other}).recipe.build == ()
    files = {
        ".github/workflows/ci.yml": WORKFLOW,
        "setup.py": "from torch import CUDAExtension\nsetup(ext_modules=[])\n",
    }
    found = detected(files)
    assert found.recipe.build == () and any("extensions" in one.what for one in found.evidence)


def test_redirections_options_and_removals_are_no_arguments() -> None:
    text = """
jobs:
  test:
    steps:
    - run: |
        apt-get install -y -t bookworm-backports gcc- libnuma-dev > log
        python setup.py build_ext --inplace 2>&1 | tee log
        pytest tests > out
"""
    seen = read_automation(source({".github/workflows/ci.yml": text}))
    assert [name for name, _ in seen.system] == ["libnuma-dev"]
    assert [one for one, _ in seen.builds] == ["python setup.py build_ext --inplace"]
    assert [one for one, _ in seen.tests] == ["pytest tests"]


def test_nothing_of_an_upstream_becomes_a_line_of_a_container_file() -> None:
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["x\\nRUN touch /evil", "a:b", "ok"]\n',
        "x\nRUN touch /evil/a.py": "",
        "a:b/a.py": "",
        "ok/a.py": "",
        "uv.lock": '[[package]]\nname = "einops"\nversion = "0.8.1\'\\nRUN touch /evil #"\n',
        ".github/workflows/ci.yml": 'jobs: {t: {env: {KIT_A: "a\\nRUN x", KIT_B: "a\\0b"}, steps: [{run: pytest}]}}\n',
        "kit/__init__.py": "",
    }
    recipe = detected(files, "einops").recipe
    assert recipe.python_path == ("ok", ".") and recipe.env == {"OMP_NUM_THREADS": "1"}
    assert {package for one in recipe.environments for package in one.packages} == {"triton>=3.3", "einops"}


def test_todays_versions_have_no_upper_bound() -> None:
    found = detected({"requirements.txt": "pandas>=1,<=2.0.3\neinops==0.8.0\ntqdm~=4.1\n"}, "pandas", "einops", "tqdm")
    assert choice(found, "current").packages == ("einops", "pandas>=1", "tqdm")
    assert choice(found, "era").packages == ("einops==0.8.0", "pandas<=2.0.3,>=1", "tqdm~=4.1")


def test_requirement_files_that_ci_installs_are_read() -> None:
    files = {
        ".github/workflows/ci.yml": "jobs: {t: {steps: [{run: pip install -r build_tools/deps.txt && pytest}]}}\n",
        "build_tools/deps.txt": "parameterized==0.9.0\n",
    }
    assert choice(detected(files, "parameterized"), "era").packages == ("parameterized==0.9.0",)


HOSTILE = {
    "setup.py": "".join(f"n{i} = [{', '.join([f'*n{i + 1}'] * 20)}]\n" for i in range(9))
    + "setup(install_requires=n0)\n",
    "requirements.txt": "".join(f"-r requirements/r{i}.txt\n" for i in range(20)),
    **{f"requirements/r{i}.txt": "".join(f"-r r{j}.txt\n" for j in range(20)) for i in range(20)},
    "setup.cfg": "[options]\nx" + " " * 100_000 + "y\n",
    "pyproject.toml": "a." * 50_000 + "a = 1\n",
    "Pipfile.lock": "[" * 100_000,
    "uv.lock": "a = " + "[" * 100_000,
    "Dockerfile": "RUN pip install " + "a " * 200_000,
    ".github/workflows/a.yml": "pytest: !!timestamp foo\nx: !!int ''\nb: !!bool foo\n",
    ".github/workflows/b.yml": "pytest: 0x" + "f" * 5000,
}


def test_hostile_files_cost_little_and_break_nothing() -> None:
    began = time.process_time()
    found = detected(HOSTILE, "einops")
    assert time.process_time() - began < 20  # each of them took longer by itself, most without end
    assert {one.where for one in found.evidence if one.what == "cannot be read"} == {
        "setup.cfg",
        "pyproject.toml",
        "Pipfile.lock",
        "uv.lock",
    }


@pytest.mark.parametrize(
    "broken",
    [
        {"env": {"A": "x\nRUN touch /evil"}},
        {"env": {"A B": "x"}},
        {"system_packages": ["git; touch /evil"]},
        {"system_packages": ["gcc-"]},
        {"python_path": ["a\nRUN x"]},
        {"build": [["python", "a\0b"]]},
        {"build_timeout_s": -1},
        {"environments": [{"name": "x", "python": "3.10"}]},
        {"environments": [{"name": "x", "packages": ["einops\nRUN x"]}]},
    ],
)
def test_a_recipe_that_could_not_be_carried_out_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(RecordError):
        Recipe.parse({"schema_version": 1, "repo": "owner/name", **broken}, "a recipe")


def test_what_is_as_of_the_merge_gets_its_day() -> None:
    recipe = Recipe(
        repo="owner/name", environments=(EnvironmentChoice(name="era", packages=("einops",), as_of="merge"),)
    )
    assert recipe.dated(DAY).environments[0].as_of == date(2025, 8, 15)
    assert recipe.dated(date.max).environments[0].as_of == date.max
