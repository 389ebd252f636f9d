"""``smith mine`` as a user calls it: settings, filters, samples, enrichment, and one line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smith.records.candidate import Candidate
from tests.mine.github_forge import Forge, serving
from tests.mine.mine_upstreams import Upstream, kernel

HIP = "#include <hip/hip_runtime.h>\n__global__ void scale(float* x) {{ x[threadIdx.x] *= {value}; }}\n"


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    made = Upstream.make(tmp_path_factory.mktemp("mine") / "o+r.git")
    made.squash(1, "fix: the tail of rms_norm", {"pkg/rms_norm.py": kernel("rms_norm"), "tests/test_n.py": "x = 1\n"})
    made.squash(2, "Speed up softmax 1.5x", {"pkg/softmax.py": kernel("softmax")})
    made.squash(3, "Scale with HIP", {"csrc/scale.hip": HIP.format(value=2)})
    made.squash(4, "Words", {"pkg/softmax.py": kernel("softmax").replace("    offs", "    # words\n    offs")})
    made.squash(5, "A code object", {"hsa/gfx942/gemm.co": b"\x7fELF\0"})
    made.squash(6, "Docs", {"README.md": "more\n"})
    made.squash(7, 'Revert "Speed up softmax 1.5x"', {"pkg/softmax.py": None}, body="Reverts o/r#2")
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    root.mkdir()
    (root / "smith.toml").write_text("schema_version = 1\n")
    return root


def smith(root: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "smith.cli.main", "-C", str(root), "mine", *args]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, **env})


def mined(root: Path, upstream: Upstream, *args: str, **env: str) -> dict[str, Any]:
    done = smith(root, str(upstream.repo.git_dir), *args, "--json", **env)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["seen"] == len(document["candidates"]) + sum(document["rejected"].values())
    return document


def numbers(document: dict[str, Any]) -> list[int]:
    return [one["pr"] for one in document["candidates"]]


def test_recommended_and_all(data: Path, upstream: Upstream) -> None:
    document = mined(data, upstream)
    assert numbers(document) == [4, 3, 1]
    assert document["rejected"] == {"binary_only": 1, "docs_only": 1, "revert": 1, "reverted": 1}
    assert numbers(mined(data, upstream, "--all")) == [7, 5, 4, 3, 2, 1]


def test_filters_compose(data: Path, upstream: Upstream) -> None:
    assert numbers(mined(data, upstream, "--reject", "text_only")) == [3, 1]
    assert numbers(mined(data, upstream, "--reject", "no_tests")) == [1]
    assert numbers(mined(data, upstream, "--allow", "reverted,binary_only", "--language", "triton,code_object")) == [
        5,
        4,
        2,
        1,
    ]
    assert numbers(mined(data, upstream, "--operator", "norm")) == [1]
    assert numbers(mined(data, upstream, "--language", "hip", "--kind", "fix")) == []


def test_settings_of_a_data_repository_stand_where_options_do_not(data: Path, upstream: Upstream) -> None:
    (data / "smith.toml").write_text(
        'schema_version = 1\n[mine]\nlanguages = ["triton"]\nreject = ["text_only"]\nallow = ["reverted"]\n'
        '[[mine.rules.path]]\nrole = "vendored"\nnames = ["rms_norm.py"]\n'
    )
    assert numbers(mined(data, upstream)) == [2]
    assert numbers(mined(data, upstream, "--language", "hip")) == [3]
    assert numbers(mined(data, upstream, "--allow", "text_only")) == [4, 2]


def test_an_own_language(data: Path, upstream: Upstream) -> None:
    (data / "smith.toml").write_text(
        'schema_version = 1\n[[mine.rules.decorator]]\nlanguage = "ours"\nnames = ["triton.jit"]\n'
    )
    assert {one["languages"][0] for one in mined(data, upstream)["candidates"]} == {"ours", "hip"}


def test_a_candidate_says_all_that_is_known(data: Path, upstream: Upstream) -> None:
    by_number = {one["pr"]: one for one in mined(data, upstream, "--all", "--verify")["candidates"]}
    two = by_number[2]
    assert two["signals"]["operators"][0] == "softmax"
    assert two["signals"]["reverted_by"] == "#7"
    assert [(c["value"], c["unit"]) for c in two["signals"]["claims"]] == [(1.5, "x")]
    assert two["lineage"] == by_number[7]["lineage"] == "o/r#2"
    assert two["verified"] == "same_tree"
    assert by_number[4]["kernels"] == [
        {"path": "pkg/softmax.py", "language": "triton", "symbols": ["softmax"], "text_only": ["softmax"]}
    ]
    assert set(by_number[4]["flags"]) == {"host_only", "text_only", "no_tests"}
    assert by_number[1]["signals"]["lines_added"] == kernel("rms_norm").count("\n")


def test_a_sample_is_the_same_each_time_and_keeps_lineages_whole(data: Path, upstream: Upstream) -> None:
    drawn = mined(data, upstream, "--all", "--sample", "3", "--seed", "7")
    assert len(drawn["candidates"]) == 3 and drawn["rejected"]["not_sampled"] == 3
    assert drawn == mined(data, upstream, "--all", "--sample", "3", "--seed", "7")
    split = {one["pr"]: one["split"] for one in mined(data, upstream, "--all", "--holdout", "0.5")["candidates"]}
    assert set(split.values()) <= {"train", "held_out"} and split[2] == split[7]


def test_candidates_are_written_for_freezing(data: Path, upstream: Upstream, tmp_path: Path) -> None:
    out = tmp_path / "c.jsonl"
    done = smith(data, str(upstream.repo.git_dir), "--out", str(out))
    assert done.returncode == 0 and f"smith freeze --candidates {out}" in done.stdout.replace("\n", " ")
    records = [Candidate.loads(line, "c.json") for line in out.read_bytes().splitlines()]
    assert [one.pr for one in records] == [4, 3, 1]
    assert [one.lineage for one in records] == ["o/r#4", "o/r#3", "o/r#1"]
    argv = [sys.executable, "-m", "smith.cli.main", "-C", str(data), "freeze", "--candidates", str(out), "--json"]
    subprocess.run(["git", "init", "-q", str(data)], check=True)
    frozen = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert frozen.returncode == 0, frozen.stderr
    assert [task["id"] for task in json.loads(frozen.stdout)["tasks"]] == ["o__r-1"]
    # A local clone is used in place again, and the lineages of what was frozen are kept.
    assert not (data / ".smith" / "mirrors").exists()
    assert json.loads((data / "tasks" / "lineages.json").read_text())["tasks"] == {"o__r-1": "o/r#1"}


def test_an_explanation_has_the_whole_way(data: Path, upstream: Upstream) -> None:
    said = smith(data, str(upstream.repo.git_dir), "--explain", "2").stdout
    for words in ("found by", "squash", "merge again base and head give the tree that landed", "reverted", "softmax"):
        assert words in said
    assert said.rstrip().endswith("with --all  candidate")


def test_an_explanation_for_machines_and_no_control_characters(data: Path, tmp_path: Path) -> None:
    odd = Upstream.make(tmp_path / "odd.git")
    odd.squash(1, "Fix \x1b[31mred\u202e", {"pkg/a\x1b.py": kernel()})
    said = smith(data, str(odd.repo.git_dir), "--explain", "1", "--json")
    document = json.loads(said.stdout)
    assert document["pr"] == 1 and document["explanation"][0].endswith("Fix \\x1b[31mred\\u202e")
    assert "\x1b" not in smith(data, str(odd.repo.git_dir), "--explain", "1").stdout


def test_until_is_on_or_before_that_day(data: Path, upstream: Upstream) -> None:
    day = upstream.repo.text("log", "-1", "--format=%cs", "main")
    for form in (day, day.replace("-", "")):
        assert numbers(mined(data, upstream, "--until", form)) == [4, 3, 1]


def test_the_forge_is_asked_only_where_wanted(data: Path, upstream: Upstream) -> None:
    with serving(Forge()) as forge:
        for number in (1, 3, 4):
            forge.pull(number, body=f"Fixes #{number + 50}", labels=[{"name": "type: performance"}])
            forge.issue(number + 50, title=f"Slow {number}")
        env = {"GITHUB_TOKEN": "ghp_Canary0123456789abcdefABCDEF4242", "NO_PROXY": "*"}
        asked = ["--github", "--github-url", forge.url]
        document = mined(data, upstream, *asked, **env)
        by_number = {one["pr"]: one for one in document["candidates"]}
        # A prefix of the title is the author's own word; a label comes before other words.
        assert {n: one["kind"] for n, one in by_number.items()} == {1: "fix", 3: "perf", 4: "perf"}
        assert by_number[3]["body"] == "Fixes #53"
        assert by_number[3]["enrichment"]["issues"][0]["title"] == "Slow 3"
        requests = len(forge.log)
        assert requests > 0
        assert numbers(mined(data, upstream, *asked, "--kind", "perf", **env)) == [4, 3]
        assert len([r for r in forge.log[requests:] if not r.path.startswith("/rate_limit")]) == 0
        mined(data, upstream)
    kept = b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file())
    assert b"ghp_Canary" not in kept


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--kind", "fixx"], "unknown kind 'fixx'"),
        (["--language", "basic"], "unknown language 'basic'"),
        (["--operator", "nom"], "unknown operator class 'nom'"),
        (["--reject", "old"], "unknown flag 'old'"),
        (["--by", "moon", "--sample", "2"], "moon"),
        (["--by", "kind"], "--sample"),
        (["--since", "yesterday"], "is no date"),
        (["--pr", "99"], "#99 is not merged"),
        (["--explain", "99"], "#99 is not merged"),
        (["--branch", "nowhere"], "nowhere"),
        (["--holdout", "1"], "--holdout"),
        (["--seed", "3"], "--sample"),
        (["--github-url", "http://127.0.0.1:1"], "--github"),
        (["--name", "x"], "owner/name"),
        (["--out", ""], "is no file"),
        (["--out", "x" * 300], "too long"),
        (["--since", ""], "is no date"),
    ],
)
def test_bad_input_is_one_line(data: Path, upstream: Upstream, args: list[str], words: str) -> None:
    done = smith(data, str(upstream.repo.git_dir), *args)
    assert done.returncode == 2 and words in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mine]\nlanguage = 3\n", "mine.language is no known key"),
        ('[mine]\nkinds = ["fixx"]\n', "mine.kinds.0"),
        ('[mine]\nlanguages = ["basic"]\n', "unknown language 'basic'"),
        ('[[mine.rules.source]]\nlanguage = "x"\nsuffixes = [".x"]\nkernel = "("\n', "no regular expression"),
        ("[mine\n", "not TOML"),
        ("[mine.rules.limits]\nmass_files = 0\n", "mine.rules.limits.mass_files"),
        ('[[mine.rules.path]]\nrole = "vendored"\n', "every file"),
        ('[mine]\noperators = ["nom"]\n', "smith.toml: [mine] operators"),
    ],
)
def test_bad_settings_are_one_line(data: Path, upstream: Upstream, text: str, words: str) -> None:
    (data / "smith.toml").write_text(f"schema_version = 1\n{text}")
    done = smith(data, str(upstream.repo.git_dir))
    assert done.returncode == 2 and words in done.stderr
    assert len(done.stderr.splitlines()) == 1
