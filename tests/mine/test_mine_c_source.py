"""Functions of C-like files: which there are, what they are called, their text, and what of it is code."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.mine import c_functions, c_lexical, c_source, kernels, rules
from smith.mine.source import Kernel

RULES = rules.load()


def read(text: str, path: str = "csrc/k.cu") -> dict[str, Kernel]:
    return dict(c_source.read(textwrap.dedent(text), path, RULES.sources).kernels)


def same(one: str, other: str) -> bool:
    return kernels.same(read(one)["f"], read(other)["f"])


@pytest.mark.parametrize(
    ("text", "name", "entry"),
    [
        ("__global__ void f() { g(); }", "f", True),
        ("__device__ __forceinline__ int f() { return 1; }", "f", False),
        ("__launch_bounds__(256, (N > 1) ? 2 : 1) __global__ void f() { g(); }", "f", True),
        ("__global__ void __launch_bounds__(sizeof(int) * (4 + (2))) f() { g(); }", "f", True),
        (
            "__global__ __attribute__((amdgpu_waves_per_eu(1, max((1), 2)))) void f(int* __restrict__ x) { g(); }",
            "f",
            True,
        ),
        ('extern "C" __global__ void f() { g(); }', "f", True),
        ('extern "C" { __global__ void f() { g(); } }', "f", True),
        ("namespace { namespace a::b { __global__ void f() { g(); } } }", "a::b::f", True),
        ("template <typename T, int N = (1 > 0), class U = A<B<T>>>\n__global__ void f() { g(); }", "f", True),
        ("template <> __device__ float f<float, (2 > 1)>(float x) { return x; }", "f", False),
        (
            "template <typename... U, std::enable_if_t<sizeof...(U) >= 2, int> = 0> __device__ int f() { return 1; }",
            "f",
            False,
        ),
        ("struct S { __device__ float f() const { return a; } float a; };", "S::f", False),
        (
            "template <typename T> struct alignas(16) S<T*> : B<T> { __device__ S(T x) : B<T>{x}, a(x) { g(); } };",
            "S::S",
            False,
        ),
        ("__device__ void S::T<int>::f() { g(); }", "S::T::f", False),
        ("struct S { __device__ S operator+(const S& o) const { return o; } };", "S::operator+", False),
        (
            "struct S { template <int N> __device__ void operator()(int x = {}) const { g(); } };",
            "S::operator()",
            False,
        ),
        ("template <> __device__ void S::operator()<int, 2>(int& e) const { g(); }", "S::operator()", False),
        ("struct S { __device__ constexpr operator float() const { return 1; } };", "S::operator float", False),
        ("__device__ auto f(int x) -> decltype(x) { return x; }", "f", False),
        ("__device__ int* f() { return p; }", "f", False),
        ("__device__ S const& f() { return s; }", "f", False),
        ("__device__ float f(float x) { union { float a; int b; } y; return y.a; };", "f", False),
        ("__device__ int f(number<4> = {}, int x = {}) { return 1; }", "f", False),
        ("__device__ int f() { if constexpr (A) { return 1; } else { return 2; } }", "f", False),
    ],
)
def test_definitions_are_named_as_the_language_names_them(text: str, name: str, entry: bool) -> None:
    found = read(text)
    assert {key: one.entry for key, one in found.items()} == {name: entry}
    assert found[name].text == text


@pytest.mark.parametrize(
    ("include", "specifier"),
    [
        ("opus/opus.hpp", "OPUS_D"),
        ("opus/opus.hpp", "OPUS_H_D constexpr"),
        ("ck_tile/core.hpp", "CK_TILE_DEVICE"),
        ("ck_tile/core.hpp", "CK_TILE_HOST_DEVICE const"),
        ("cute/tensor.hpp", "CUTE_HOST_DEVICE"),
    ],
)
def test_specifiers_behind_macros(include: str, specifier: str) -> None:
    members = f"  {specifier} S& f(int x) {{ return s; }}\n  {specifier.removesuffix(' const')} S() {{ g(); }}\n"
    found = read(f'#include "{include}"\nnamespace a {{\nstruct S {{\n{members}}};\n}}\n')
    assert set(found) == {"a::S::f", "a::S::S"}


def test_a_file_s_own_macros_are_specifiers() -> None:
    found = read(
        """
        #define DINLINE __device__ __forceinline__
        #define ENTRY extern "C" __global__ void
        DINLINE void helper() { g(); }
        ENTRY f() { helper(); }
        void host() { f<<<1, 2>>>(); }
        """
    )
    assert {name: one.entry for name, one in found.items()} == {"helper": False, "f": True}


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void f(int* x);",
        "template __global__ void f<float>(float*);\ntemplate __global__ void f<int>(int*);",
        "#define KERNEL(name) __global__ void name() { g(); }\nKERNEL(f)",
        "// __global__ void f() { g(); }",
        "/* __global__\nvoid f() { g(); } */",
        'const char* source = R"(__global__ void f() { g(); })";',
        'const char* source = "__global__ void f() { g(); }";',
        "auto f = [] __device__ (int x) { return x; };",
        "struct S { __device__ S() = default; __device__ S(int) = delete; };",
        "void launch() { f<<<1, 64>>>(x, [=] __device__ (int i) { return i; }); }",
    ],
)
def test_what_defines_no_kernel(text: str) -> None:
    assert read(text) == {}


def test_the_text_is_what_stands_in_the_file() -> None:
    text = """\
        namespace n {
        // What it does.
          template <typename T>   // of the elements
          __launch_bounds__(64)
          __global__ void f(T* x) {
            x[0] = 1;  // one
          } // f
        }
        """
    lines = textwrap.dedent(text).splitlines(keepends=True)
    (found,) = read(text).values()
    assert found.text == "".join(lines[2:7])
    assert found.code == "template<typename T>__launch_bounds__(64)__global__ void f(T*x){x[0]=1;}"


def test_overloads_and_specializations_are_joined() -> None:
    one, two = "__device__ int f(int x) { return x; }\n", "template <> __device__ int f<char>(char x) { return 2; }\n"
    found = read(one + "int host;\n" + two)
    assert set(found) == {"f"} and found["f"].text == one + two


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + b", "a+b"),
        ("a + b", "a /* x */ +\n\n  // the other\n  b"),
        ("A<B<int> > c", "A<B<int>> c"),
        ('g("a  b")', 'g( "a  b" )'),
        ("#pragma unroll 4\n  for (;;) {}", "#pragma  unroll 4 // fast\n\tfor (;;) {\n}"),
    ],
)
def test_layout_is_no_code(before: str, after: str) -> None:
    one, other = (f"__device__ void f() {{\n  {body};\n}}\n" for body in (before, after))
    assert same(one, other) and one != other


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + b", "a - b"),
        ("int ab", "int a, b"),
        ("a + +b", "a++ b"),
        ('g("a  b")', 'g("a b")'),
        ("#if A\n  x();\n#endif", "#if B\n  x();\n#endif"),
        ("#if A\n  x();\n#else\n  y();\n#endif", "#if A\n  x();\n#else\n  z();\n#endif"),
        ("#pragma unroll\n  for (;;) {}", "for (;;) {}"),
    ],
)
def test_code_and_directives_are(before: str, after: str) -> None:
    one, other = (f"__device__ void f() {{\n  {body};\n}}\n" for body in (before, after))
    assert not same(one, other)


PARTS = st.sampled_from(
    [
        "ab",
        "ac",
        "a",
        "1",
        " ",
        "\n",
        "//",
        "/*",
        "*/",
        "/",
        "*",
        '"',
        "'",
        "\\",
        "\\\n",
        "#",
        "#if A\n",
        'R"(',
        ')"',
        "{",
        ";",
    ]
)


@given(st.lists(PARTS), st.lists(PARTS), st.lists(PARTS))
def test_what_surely_differs_does(start: list[str], one: list[str], other: list[str]) -> None:
    before, after = ("".join((*start, *end)) for end in (one, other))
    if c_lexical.surely_other_code(before, after):
        assert c_lexical.code(before) != c_lexical.code(after)


def test_a_changed_word_surely_differs() -> None:
    assert c_lexical.surely_other_code("/* a */ int a; // b\nint b;", "/* a */ int a; // b\nlong b;")
    for before, after in (
        ("x; // a", "x; // b"),
        ("/* a", "/* b"),
        ("/*/ a */", "/*/ b */"),
        ("// a \\\nb", "// a \\\nc"),
    ):
        assert not c_lexical.surely_other_code(before, after)


CONDITIONALS = [
    "#if A\n__global__ void f(int x) { g(); }\n#else\n__global__ void f(long x) { h(); }\n#endif\n",
    "__global__ void f(int x,\n#if A\n  int y) {\n#else\n  long y) {\n#endif\n  g();\n}\n",
    "#if A\n__global__ void f(int x)\n#else\n__global__ void f(long x)\n#endif\n{ g(); }\n",
    "__global__ void f(\n#if A\n  int x,\n#else\n  long x,\n#endif\n  int y) { g(); }\n",
    "__global__ void f() {\n#if A\n  if (x) {\n#else\n  if (y) {\n#endif\n    g(); }\n}\n",
    "__global__ void f() {\n#if A\n  g();\n}\n#else\n  h();\n}\n#endif\n",
    "#if 0\n}}}\n#endif\n__global__ void f() { g(); }\n",
    "#ifdef A\nnamespace n {\n#else\nnamespace n {\n#endif\n__global__ void f() { g(); }\n}\n",
]


@pytest.mark.parametrize("text", CONDITIONALS)
def test_conditionals_hide_nothing_after_them(text: str) -> None:
    found = read(text + "__global__ void last() { g(); }\n")
    assert {name.rpartition("::")[2] for name in found} == {"f", "last"}


def test_functions_in_every_branch_count() -> None:
    one, two = (f"namespace {n} {{\n__global__ void f() {{ g(); }}\n" for n in "mn")
    assert set(read(f"#if A\n{one}#else\n{two}#endif\n}}\n")) == {"m::f", "n::f"}


def test_a_definition_ends_where_its_last_branch_does() -> None:
    text = "__global__ void f() {\n#if A\n  g();\n}\n#else\n  h();\n}\n"
    assert read(text + "#endif\nint x;\n")["f"].text == text


@pytest.mark.parametrize(
    "junk",
    [
        "template <typename T, int N> struct V<T __attribute((ext_vector_type(N)))&&> : true_type {};",
        "DISPATCH(X, Y)\nINSTANTIATE(float, 1)",
        "using i4 = _BitInt(4);\nstatic const A a = B<(C >> 2)>::d<-1>(e)...;",
        'PYBIND11_MODULE(name, m) { m.def("f", &f); }',
        "struct T { FIELD(int, a) FIELD(int, b) };",
        "constexpr int big = 1'000'000; constexpr char quote = '\"', brace = '{';",
        "enum class E : int { A, B };\nint table[][2] = {{1, 2}, {3, 4}};",
    ],
)
def test_what_cannot_be_read_hides_nothing_around_it(junk: str) -> None:
    found = read(
        "namespace n {\n__global__ void first() { LAUNCH(g<<<1, 2>>>(); }\n"
        + f"{junk}\nstruct S {{ __device__ int m() {{ return 1; }} }};\n__global__ void last() {{ g(); }}\n}}\n"
    )
    assert {"n::first", "n::S::m", "n::last"} <= set(found)


def test_bodies_need_not_be_code() -> None:
    body = 'asm volatile("{ mov.u32 %0; }" ::: "memory"); FOR_EACH(i, { g(i); }) MACRO x y z; k<<<g, b, 0, s>>>(1);'
    found = read(f"__global__ void f() {{ {body} }}\n__device__ int h() {{ return 1; }}\n")
    assert set(found) == {"f", "h"} and body in found["f"].text


@pytest.mark.parametrize(
    ("path", "text", "entries"),
    [
        ("k.cl", "__kernel void f(__global float* x) { g(x); }\nfloat h(float x) { return x; }", {"f": True}),
        ("k.cl", "kernel void f(global float* restrict x, local int* y) { g(x); }", {"f": True}),
        (
            "k.metal",
            "kernel void f(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { }",
            {"f": True},
        ),
        ("k.s", ".globl h\nh:\n  s_endpgm ; end\n.amdhsa_kernel f\n", {"h": False, "f": True}),
    ],
)
def test_other_languages(path: str, text: str, entries: dict[str, bool]) -> None:
    assert {name: one.entry for name, one in read(text, path).items()} == entries


def test_comments_of_assembly_are_no_code() -> None:
    one, other = (read(f".globl f\nf:\n  s_nop 0{end}\n", "k.s")["f"] for end in ("", "   // wait"))
    assert one.code == other.code and one.text != other.text


PIECES = st.sampled_from(
    [
        "__global__ void f(int x) { g(); }\n",
        "__device__ int h() { return 1; }\n",
        *("namespace n {\n", "struct S {\n", "}\n", "};\n", "{", "(", ")", ";", "extern ", "template <", ">", "::"),
        *("#if A\n", "#else\n", "#endif\n", "#if 0\n", "/*", "*/", '"', 'R"(', ')"', "'", "\\\n"),
        *("operator", "MACRO(x) ", "= {}", "...", ">=", "A_B c", "\u00e9", "\U0001f600"),
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_text_breaks_the_reader_and_definitions_lie_in_order(text: str) -> None:
    found = c_functions.functions(c_lexical.lex(text))
    assert all(0 <= one.begin < one.body < one.end <= len(text) and text[one.body] == "{" for one in found)
    assert all(one.name for one in found)
    c_source.read(text, "k.cu", RULES.sources)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_every_character_keeps_its_offset(text: str) -> None:
    lexed = c_lexical.lex(text)
    assert len(lexed.plain) == len(text) == len(c_lexical.one_reading(lexed)[0])
    assert all(new in (old, " ") for old, new in zip(text, lexed.plain, strict=True))


@given(st.integers(0, 3), st.integers(0, 3), st.sampled_from(CONDITIONALS), st.text("\u00e9\u4e00 ", max_size=5))
def test_a_definition_is_cut_out_whatever_stands_around(before: int, after: int, other: str, comment: str) -> None:
    definition = "template <typename T>\n__global__ void wanted(T* x) {\n  x[0] = 1;\n}\n"
    text = f"// {comment}\n" + other * before + definition + other * after
    assert read(text)["wanted"].text == definition


def test_deep_nesting_is_no_recursion() -> None:
    names = read("struct S {" * 3000 + "__device__ void f() { g(); }" + "};" * 3000)
    assert [name.rpartition("::")[2] for name in names] == ["f"]
