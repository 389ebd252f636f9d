"""Words by which sentences of a pull request are told apart: what was done, what was measured, what is the review's.

Lists of stems and patterns, kept as data; :mod:`smith.freeze.retell` applies them.
"""

from __future__ import annotations

import re

_MEANS = (
    "accumulat|add|adjust|allocat|appl|auto-detect|bound|broadcast|build|built|bump|cach|cast|chang|"
    "clamp|comput|convert|correct|creat|delet|deriv|dispatch|drop|enabl|expand|expos|extend|extract|fix|"
    "forc|fus|gat|guard|hoist|implement|improv|inlin|insert|instantiat|introduc|keep|kept|limit|load|mad|"
    "make|mask|merg|mirror|mov|pass|pin|promot|recomput|refactor|register|relax|remov|renam|renorm|"
    "reorder|replac|restor|restrict|return|reus|rework|rewrit|rewrot|round|rout|sav|select|separat|set|simplif|"
    "skip|split|stor|swap|switch|thread|tighten|tun|unroll|upcast|updat|us|widen|wrap"
)
_ENDINGS = "e|es|ed|s|ing|ting|ied|ies|y|en|d"
_AUTHOR = "pr|pull request|change|commit|patch|fix|mr"

DONE = re.compile(
    r"^(?:\*\*)?(?:(?:also|and|then|finally|additionally),? )?(?:"
    rf"(?:this|the|my) (?:{_AUTHOR})\b|"
    r"we (?:now|also|instead|therefore|add|use|fix|replace|move|introduce|change|pass)|"
    r"i (?:have |'ve )?(?:add|chang|fix|replac|us|mov|introduc)|"
    r"now[ ,]|instead[ ,]|so (?:we|i|this)\b|both (?:are|were) now|"
    r"to (?:fix|solve|address|resolve|avoid) (?:this|it|that)|"
    rf"(?:{_MEANS})(?:{_ENDINGS})?\b[ ,])",
    re.IGNORECASE,
)
"""Openings of sentences that say what was done, in the imperative or the past."""

PASSIVE = re.compile(
    r"\b(?:is|are|was|were|gets?) now\b|"
    r"\bnow (?:uses?|takes?|computes?|returns?|reads?|writes?|loads?|stores?|handles?|skips?|passes|keeps?|checks?)\b|"
    r"\b(?:is|are) (?:mapped|clamped|masked|replaced|moved|excluded|cast|upcast|hoisted|guarded|swapped|renamed|split|"
    r"merged|fused|dropped|removed|introduced|added)\b[^.]*\b(?:so that|so|instead of)\b",
    re.IGNORECASE,
)
"""How the new state is told of without saying who did it."""

PART = re.compile(r"^[\w()/ ,.`*+-]{1,50}:\s+")
"""A label before a sentence, such as ``softmax (smem):``."""

ANSWER_LABEL = re.compile(
    r"^\W*(?:the )?(?:fix(?:e[sd])?|solution|changes?|approach|implementation|resolution|workaround|patch)\W*[:–—-]",
    re.IGNORECASE,
)
"""A label after which a paragraph tells the solution."""

ANSWER_HEADING = re.compile(
    r"^\W*(?:(?:the |our |proposed |key |main |code |core |suggested )*"
    r"(?:fix(?:es)?|solutions?|changes?|modifications?)\b|"
    r"what(?:'s|’s| has| is| was| i)?(?: been)? (?:changed|done|did|new)|how\b|"
    r"what this (?:pr|change)|summary of changes|refactor)",
    re.IGNORECASE,
)
"""Headings of sections that tell the solution of a fault."""

MEANS_HEADING = re.compile(
    r"\b(?:implementation|approach|how it works|optimi[sz]ations?|techni\w+|files?|mechanism|design|architecture|"
    r"highlights|pipeline|algorithm)\b",
    re.IGNORECASE,
)
"""Headings of sections that tell how something was made, of a new feature too."""

OPENING = re.compile(
    rf"^(?:(?:this|the) (?:{_AUTHOR})\s+(?:adds?|introduces?|implements?|provides?|enables?|brings?|supports?)|"
    r"(?:adds?|added|introduc(?:es?|ed)|implement(?:s|ed)?))\s+(?=\S)",
    re.IGNORECASE,
)
"""Openings of sentences whose rest says what is wanted."""

FIXES = re.compile(
    rf"^(?:(?:this|the) (?:{_AUTHOR})\s+)?(?:(?:aims to|tries to|will)\s+)?"
    r"(?:fix(?:es|ed)?|address(?:es)?|resolves?)\s+"
    r"(?P<rest>(?:an?|the|some|several|two|this|potential|possible)?\s*(?:[\w-]+\s+){0,4}?"
    r"(?:bugs?|issues?|errors?|faults?|problems?|nans?|crash(?:es)?|overflows?|failures?|race|mismatch)\b.*)$",
    re.IGNORECASE | re.DOTALL,
)
"""``Fixes a bug where ...``: the rest says what is wrong."""

REVIEW = re.compile(
    r"\b(?:pytest|make (?:test|checkstyle)|unit ?tests?|test (?:case|suite|plan|file|matri)\w*|"
    r"tests? (?:pass|cover|added|were|are|for)|regression (?:tests?|shapes?|cases?|guards?)|"
    r"(?:test|regression|api) coverage|all (?:tests|cases|pass)|ci|lint(?:ing|er)?|pre-commit|ruff|flake8|"
    r"benchmark(?:s|ed|ing)?|bench_\w+|review(?:er|ers|ed)?|merged? after|checklist|changelog|docs?tring|readme|"
    r"cherry[- ]pick|lgtm|thanks|ptal|generated (?:by|with)|claude|copilot|codex|cursor)\b|"
    r"^covers?\b|\bthis pr\b.*\bdepends|\btest_\w+|\btests?/",
    re.IGNORECASE,
)
"""Of tests, of the review, of bots."""

_FIGURE = r"\d+(?:\.\d+)?\s?(?:%|ms|us|µs|tflops|gb/s)"
GAIN = re.compile(
    r"\d(?:\.\d+)?\s?(?:x|×)(?![\w])(?!\s*\d)|\d\s?%\s+(?:faster|speed|improv|reduc|gain|less|better|lower|higher)|"
    r"\bgoes from\b|\bfrom \d[\d.,]*\s?\w{0,3} to \d|\bbit(?:wise|-for-bit)\b|\bgsm8k\b|\bstrict match\b|"
    r"\bfaster than\b|\boutperform|\bon par with\b|\bparity with\b|"
    rf"\b(?:speed-?ups?|improve(?:s|d|ment)?|gain|reduc\w+|faster|from)\b[^.]{{0,60}}\b{_FIGURE}",
    re.IGNORECASE,
)
"""Measured results."""

OUTPUT = re.compile(
    r"\b\d+ (?:passed|failed)\b|={5,}|^\s*(?:PASSED|FAILED)\b|TFLOPS|speed-?up|GB/s|\bms\b",
    re.IGNORECASE | re.MULTILINE,
)
"""What tests and benchmarks print."""

INSTRUCTS = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:previous|above|prior|all|these|system)\b.{0,30}"
    r"\b(?:instruction|prompt|rule)|\bsystem prompt\b|\byou are (?:an?|the) (?:ai|assistant|language model)|"
    r"\bas an ai\b",
    re.IGNORECASE,
)
"""Words to a language model instead of to a reader."""
