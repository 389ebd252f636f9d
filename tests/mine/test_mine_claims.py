"""What counts as a performance claim, how it is read, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.mine.claims import find

Read = tuple[float, str, str]


def read(title: str = "", body: str = "") -> list[Read]:
    return [(one.value, one.unit, one.direction) for one in find(title, body)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("1.35x faster than the eager version", (1.35, "x", "faster")),
        ("a 2-3x speedup on long sequences", (2.0, "x", "faster")),
        ("gives 1.6–6.7× speedup across the grid", (1.6, "x", "faster")),
        ("twice as fast as before", (2.0, "x", "faster")),
        ("The fallback is 1.5x slower than the fused kernel.", (1.5, "x", "slower")),
        ("eager wall clock geomean speedup 0.51x", (0.51, "x", "slower")),
        ("That's 3.5x less memory traffic.", (3.5, "x", "less")),
        ("reduces latency from 120us to 80 us", (1.5, "x", "faster")),
        ("reduces latency from 1.2 ms to 800 us", (1.5, "x", "faster")),
        ("decode T=64: 80.0us -> 120.0us", (0.6667, "x", "slower")),
        ("uplift 600 -> 700 TFLOPS", (1.167, "x", "faster")),
        ("peak memory drops from 8.0 GB to 6.0 GB", (1.333, "x", "less")),
        ("+15% throughput", (15.0, "%", "faster")),
        ("throughput is 3~13% higher", (3.0, "%", "faster")),
        ("-12% latency at long context", (12.0, "%", "faster")),
        ("15% less memory", (15.0, "%", "less")),
        ("kernel is up to 20% slower here", (20.0, "%", "slower")),
        ("reaches 1.2 PFLOPS", (1200.0, "TFLOPS", "unknown")),
        ("runs at 652 GB/s", (652.0, "GB/s", "unknown")),
        ("peak output 1,635 tok/s", (1635.0, "tok/s", "unknown")),
        ("saves 3.2 GB of peak memory", (3.2, "GB", "less")),
        ("the kernel takes 35us", (35.0, "us", "unknown")),
    ],
)
def test_claims_are_read(words: str, expected: Read) -> None:
    assert read(title=words) == [expected]
    assert read(body=f"Some words.\n\n{words}\n") == [expected]


@pytest.mark.parametrize(
    "words",
    [
        "Bump to v1.35 for better performance",
        "fp8 x fp8 gemm performance fix",
        "Tune perf for 4096x4096 and 128x128x64 tiles",
        "O(n) instead of O(n^2) in the slow path",
        "Raise test coverage to 85%",
        "tolerance of 1e-3, error below 0.5%",
        "speed up the build: compile time 58s -> 26s",
        "test_rope.py: 600s -> 1422s",
        "perf jobs on 8x MI350X",
        "accuracy 95.1% on gsm8k, was 94.9%",
        "move perf runner to gfx12x and transformers 5.x",
        "no regression (<1% delta, within ±2%)",
        "address 4GB -> 2GB, the limit of a signed offset",
        "",
    ],
)
def test_other_numbers_are_no_claims(words: str) -> None:
    assert read(title=words) == [] == read(body=words)


def test_logs_templates_and_html_are_no_claims() -> None:
    body = """\
<!-- say how much faster it is, e.g. 3x faster -->
test/test_swiglu.py::test_it PASSED [ 94%]
FAILED test/test_ce.py - torch.cuda.OutOfMemoryError: tried to allocate 3.91 GiB, 20% faster
<img width="1000" height="600" alt="speed 5x faster">
![2x faster](https://example.org/2x_faster.png)
"""
    assert read(body=body) == []


def test_a_table_is_read_by_its_columns() -> None:
    body = """\
| V | baseline (ms) | this PR (ms) | speedup |
|--:|--:|--:|--:|
| 32000 | 1.4229 | 1.1787 | **1.207x** |
| 50304 | 4.5362 | 4.5674 | 0.993x |

| shape | before | after |
|---|---|---|
| 4096 | 120 us | 80 us |

| T | memory saving |
|---|---|
| 1024 | 61% |
"""
    assert read(body=body) == [
        (1.207, "x", "faster"),
        (0.993, "x", "slower"),
        (1.5, "x", "faster"),
        (61.0, "%", "less"),
    ]


def test_a_table_that_a_commit_message_wrapped_is_whole() -> None:
    body = """\
| M | H | cold | base cold | cold speedup | hot | base hot
| hot speedup |
|---:|---:|---:|---:|---:|---:|---:|---:|
| 512 | 4096 | 4.78 / 460 | 6.97 / 315 | **1.46x** | 4.36 / 504
| 6.72 / 327 | **1.54x** |
| 1024 | 4096 | 7.72 / 570 | 13.27 / 331 | **1.72x** | 7.64 /
575 | 13.18 / 334 | **1.73x** |
"""
    assert [value for value, _, _ in read(body=body)] == [1.46, 1.54, 1.72, 1.73]


def test_tables_of_accuracy_and_builds_are_no_claims() -> None:
    body = (
        "| task | accuracy |\n|---|---|\n| gsm8k | 95% |\n\nBuild time\n\n| file | speedup |\n|---|---|\n| a | 2.0x |\n"
    )
    assert read(body=body) == []


def test_wrapped_sentences_are_joined() -> None:
    body = "The new schedule of the backward kernel reduces its latency from 120us\nto 80us on every shape.\n"
    assert read(body=body) == [(1.5, "x", "faster")]


@pytest.mark.parametrize(
    ("title", "body", "device"),
    [
        ("1.5x faster on MI300X, tested on H100 too", "", "MI300X"),
        ("Speed", "On H100:\n\n- 1.5x faster\n", "H100"),
        ("Speed", "Measured on an A100.\n\nWords.\n\nIt is 1.5x faster.\n", "A100"),
        ("Speed", "Measured on an A100.\n\nTried on an H100, too.\n\nWords.\n\nMore.\n\nIt is 1.5x faster.\n", None),
        ("1.5x faster", "", None),
    ],
)
def test_the_device_that_is_named_nearby(title: str, body: str, device: str | None) -> None:
    (claim,) = find(title, body)
    assert claim.device == device


def test_places_are_told_and_a_value_is_claimed_once() -> None:
    claims = find("2.5x faster softmax", "It is 2.5x faster.\n\nAnd 3.5x faster backward.\n", ["tune: 4.5x faster"])
    assert [(one.where, one.value) for one in claims] == [("title", 2.5), ("body", 3.5), ("commits", 4.5)]
    assert claims[0].text == "2.5x faster softmax"


def test_at_most_twenty_and_no_table_takes_all() -> None:
    table = "| n | speedup |\n|---|---|\n" + "".join(f"| {n} | {1 + n / 100:.2f}x |\n" for n in range(1, 50))
    assert len(read(body=table)) == 6
    lines = "".join(f"- case {n}: {1 + n / 100:.2f}x faster\n" for n in range(1, 50))
    assert len(read(body=lines)) == 20


@given(st.text(), st.text(alphabet="0123456789.,x%|-→> \nusmGB/[]()<!", max_size=300))
def test_any_text_can_be_read(title: str, body: str) -> None:
    claims = find(title, body)
    assert len(claims) <= 20 and all(len(one.text) <= 200 and one.value >= 0 for one in claims)
