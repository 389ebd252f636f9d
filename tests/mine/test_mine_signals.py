"""Operators, devices and architectures are read out of names; later fixes, reverts and re-lands out of a history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.mine.reverts import Reverts
from smith.mine.signals import Ahead, Landed, look_ahead, operators, read, words
from smith.records.candidate import ChangedFile, KernelChange, Kind, Role
from smith.records.signals import Signals

NO_REVERTS = Reverts({}, {})


def told(title: str = "", path: str = "pkg/x.py", symbols: tuple[str, ...] = ()) -> tuple[str, ...]:
    return operators(title, [file(path)], [KernelChange(path=path, language="triton", symbols=symbols)])


def file(path: str, role: Role = Role.KERNEL) -> ChangedFile:
    return ChangedFile(path=path, change="modified", role=role)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("fusedRMSNorm_fwd", ["fused", "rms", "norm", "fwd"]),
        ("topkGatingSoftmax", ["topk", "gating", "softmax"]),
        ("RoPE", ["rope"]),
        ("[SwiGLU] Fix MoE", ["swiglu", "fix", "moe"]),
        ("causal_conv1d", ["causal", "conv1d"]),
        ("ns::Kernel<3>::operator", ["ns", "kernel", "3", "operator"]),
    ],
)
def test_names_are_taken_apart(name: str, parts: list[str]) -> None:
    assert words(name) == parts


@pytest.mark.parametrize(
    ("symbol", "operator"),
    [
        ("_rms_norm_forward_kernel", "norm"),
        ("layerNormFwd", "norm"),
        ("paged_attention_v1", "attention"),
        ("kn_mla_reduce_v1", "attention"),
        ("chunk_gated_delta_rule_fwd_kernel_h", "linear_attention"),
        ("linear_attn_fwd", "linear_attention"),
        ("_gemm_a8w8_kernel", "gemm"),
        ("fused_moe_kernel", "moe"),
        ("ck_moe_stage1_gemm", "moe"),
        ("dynamic_per_token_quant_kernel", "quant"),
        ("_triton_rope", "rope"),
        ("cross_entropy_kernel", "loss"),
        ("_swiglu_backward_kernel", "activation"),
        ("_softmax_kernel", "softmax"),
        ("warpReduceMax", "reduction"),
        ("cumsum_kernel", "scan"),
        ("causal_conv1d_update", "conv"),
        ("embedding_forward_kernel", "embedding"),
        ("reshape_and_cache_kernel", "kv_cache"),
        ("top_k_top_p_kernel", "sampling"),
        ("adamw_step", "optimizer"),
        ("cross_device_all_reduce_1stage", "communication"),
        ("addcmul_kernel", "elementwise"),
        ("dropout_fwd", "random"),
    ],
)
def test_symbols_tell_the_operator(symbol: str, operator: str) -> None:
    assert told(symbols=(symbol,))[:1] == (operator,)


@pytest.mark.parametrize("symbol", ["normal_", "remoed", "abnormal_kernel", "scandal", "kernel", "propelled_fwd"])
def test_words_are_matched_whole(symbol: str) -> None:
    assert told(symbols=(symbol,)) == ()


def test_a_longer_term_takes_its_words_away_from_shorter_ones() -> None:
    assert "attention" not in told(symbols=("fused_linear_attn_fwd",))
    assert "reduction" not in told(symbols=("all_reduce_kernel",))


def test_a_title_and_a_path_tell_where_symbols_do_not() -> None:
    assert told("[MoE] Fix offsets", symbols=("_kernel",)) == ("moe",)
    assert told(path="pkg/ops/rms_norm.py") == ("norm",)
    assert told(path="pkg/attention/forward.py", symbols=("_fwd",)) == ("attention",)


def test_one_helper_among_many_kernels_tells_nothing() -> None:
    symbols = tuple(f"layer_norm_kernel_{name}" for name in "abcdefghijklmnopqrst")
    assert told(symbols=(*symbols, "transpose_kernel", "block_reduce")) == ("norm",)


def test_what_a_change_does_beside_its_main_operator_comes_later() -> None:
    assert told("Fused qk norm, rope and quant", symbols=("fused_qk_norm_rope_quant",))[0] in {"norm", "rope", "quant"}
    assert set(told(symbols=("fused_rms_norm_rope_quant",))) == {"norm", "rope", "quant"}


def test_a_change_without_kernels_is_told_by_its_sources_and_else_by_configurations_and_tests() -> None:
    files = [file("pkg/gemm.py", Role.HOST), file("tests/test_moe.py", Role.TEST), file("docs/rope.md", Role.DOCS)]
    assert operators("", files, []) == ("gemm",)
    assert operators("", files[1:], []) == ("moe",)
    assert operators("", files[2:], []) == ()


@given(st.text(max_size=200), st.lists(st.text(max_size=40), max_size=5))
def test_any_name_can_be_read(title: str, symbols: list[str]) -> None:
    assert len(told(title, symbols=tuple(symbols))) <= 4


def devices(**given_: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    signals = read(**{"title": "", **given_})  # type: ignore[arg-type]
    return signals.devices, signals.architectures


@pytest.mark.parametrize(
    ("title", "names", "architectures"),
    [
        ("Tune for MI300X", ("MI300X", "rocm"), ("gfx942",)),
        ("Support MI35x", ("MI350", "rocm"), ("gfx950",)),
        ("[gfx1250] new gemm", ("rocm",), ("gfx1250",)),
        ("Use TMA on Hopper", ("Hopper", "cuda"), ("sm_90",)),
        ("Fix sm90a guard", ("cuda",), ("sm_90",)),
        ("Tune for RTX 4090", ("RTX 4090", "cuda"), ("sm_89",)),
        ("[NPU] Support Ascend", ("Ascend", "npu"), ()),
        ("AVX512 path", ("AVX-512", "cpu"), ("avx512",)),
        ("Add XPU backend", ("xpu",), ()),
        ("Run on L4", ("L4", "cuda"), ("sm_89",)),
        ("l4 cache, cuda graph and chips", (), ()),
        ("Fix kernel", (), ()),
    ],
)
def test_titles_name_devices(title: str, names: tuple[str, ...], architectures: tuple[str, ...]) -> None:
    assert devices(title=title) == (names, architectures)


def test_paths_name_devices_but_docs_and_pipelines_do_not() -> None:
    assert devices(files=[file("hsa/gfx942/fmha.co"), file("pkg/backends/_ascend/ops.py")]) == (
        ("Ascend", "npu", "rocm"),
        ("gfx942",),
    )
    assert devices(files=[file("docs/gfx942.md", Role.DOCS), file("ci/h100.yml", Role.CI)]) == ((), ())


@pytest.mark.parametrize(
    ("code", "names", "architectures"),
    [
        ("if is_hip():\n    pass", ("rocm",), ()),
        ("#if defined(__gfx942__)", ("rocm",), ("gfx942",)),
        ("#if __CUDA_ARCH__ >= 900", ("cuda",), ("sm_90",)),
        ("if torch.cuda.get_device_capability()[0] >= 9:", ("cuda",), ("sm_90",)),
        ("if torch.cuda.get_device_capability(0) >= (8, 9):", ("cuda",), ("sm_89",)),
        ("x.cuda()", (), ()),
    ],
)
def test_guards_name_devices(code: str, names: tuple[str, ...], architectures: tuple[str, ...]) -> None:
    assert devices(texts=[code]) == (names, architectures)


def test_bodies_name_devices_but_no_kinds_and_templates_do_not_count() -> None:
    assert devices(body="cuda and hip; measured on H100") == (("H100", "cuda"), ("sm_90",))
    assert devices(body="<!-- e.g. A100 -->\nTested.") == ((), ())


def test_the_surest_comes_first() -> None:
    assert devices(title="For MI300X", files=[file("gfx950/a.s")], body="as on H100")[1] == (
        "gfx942",
        "gfx950",
        "sm_90",
    )


def test_everything_is_read_at_once() -> None:
    signals = read(
        title="Tune rms_norm",
        body="1.5x faster",
        subjects=["norm: 2.5x faster"],
        files=[file("pkg/norm.py"), file("configs/norm.json", Role.CONFIG)],
    )
    assert [one.where for one in signals.claims] == ["body", "commits"]
    assert signals.operators == ("norm",) and signals.configs == ("configs/norm.json",)
    assert read(title="") == Signals()


def landed(
    number: int,
    *kernels: str,
    kind: Kind = Kind.FEATURE,
    path: str = "a.py",
    renames: tuple[tuple[str, str], ...] = (),
    mass: bool = False,
) -> Landed:
    return Landed(
        number, kind, "2025-01-01T00:00:00+00:00", frozenset((path, name) for name in kernels), renames, mass=mass
    )


def later(*history: Landed) -> dict[int, tuple[int, ...]]:
    return {number: ahead.later_fixes for number, ahead in look_ahead(history, NO_REVERTS).items()}


def test_later_fixes_are_fixes_and_reverts_of_the_same_kernel_nearest_first() -> None:
    found = later(
        landed(1, "f", "g"),
        landed(2, "f", kind=Kind.FIX),
        landed(3, "g", kind=Kind.REVERT),
        landed(4, "g", kind=Kind.PERF),
        landed(9, "f", "g", kind=Kind.FIX),
        landed(5, "h", kind=Kind.FIX),
    )
    assert found == {1: (2, 3, 9), 2: (9,), 3: (9,), 4: (9,), 9: (), 5: ()}


def test_the_same_name_in_another_file_is_another_kernel() -> None:
    assert later(landed(1, "f"), landed(2, "f", path="b.py", kind=Kind.FIX))[1] == ()


def test_renames_are_followed_and_a_path_taken_again_is_another_file() -> None:
    found = later(
        landed(1, "f"),
        landed(2, renames=(("a.py", "b.py"),)),
        landed(3, "f"),
        landed(4, "f", path="b.py", kind=Kind.FIX),
        landed(5, renames=(("a.py", "c.py"), ("b.py", "a.py"))),
        landed(6, "f", kind=Kind.FIX),
        landed(7, "f", path="c.py", kind=Kind.FIX),
    )
    assert found[1] == (4, 6) and found[3] == (7,)


def test_mass_edits_fix_nothing_in_particular_and_the_list_is_bounded() -> None:
    assert later(landed(1, "f"), landed(2, "f", kind=Kind.FIX, mass=True))[1] == ()
    found = later(landed(1, "f"), *(landed(number, "f", kind=Kind.FIX) for number in range(2, 40)))
    assert found[1] == (2, 3, 4, 5, 6) and found[37] == (38, 39)


def test_reverts_and_relands_are_told_on_both_sides() -> None:
    reverts = Reverts({1: "#2", 5: "0123456789ab"}, {}, {2: 1}, {3: 1, 4: 1})
    found = look_ahead([landed(number) for number in (1, 2, 3, 4, 5)], reverts)
    assert found[1] == Ahead(reverted_by="#2", landed_again_by=3)
    assert found[3] == Ahead(lands_again=1) and found[5] == Ahead(reverted_by="0123456789ab")
    assert found[2] == Ahead()


HISTORIES = st.lists(
    st.tuples(st.sampled_from([Kind.FIX, Kind.PERF, Kind.REVERT]), st.frozensets(st.sampled_from("abcd"), max_size=3)),
    max_size=25,
)


@given(HISTORIES)
def test_later_fixes_are_those_that_looking_at_all_pairs_finds(items: list[tuple[Kind, frozenset[str]]]) -> None:
    history = [landed(number, *names, kind=kind) for number, (kind, names) in enumerate(items)]
    for number, fixes in later(*history).items():
        expected = [
            one.number
            for one in history[number + 1 :]
            if one.kind is not Kind.PERF and one.kernels & history[number].kernels
        ]
        assert list(fixes) == expected[:5]
