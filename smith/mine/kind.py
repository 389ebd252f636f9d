"""What a pull request is for: told from its title, then its body, then the shape of its change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from smith.mine.classify import Shape
from smith.records.candidate import Kind, Role

_FLAGS = re.IGNORECASE
# `feat(scope)!: ...`, `[Fix] ...`, `Fix: ...`: one leading word, conventional or in brackets.
_PREFIX = re.compile(r"\s*(?:\[(?P<bracket>[^\]]{1,80})\]|(?P<word>[A-Za-z]{1,40})(?:\([^)]{0,80}\))?!?[ ]?:)\s*")
_LONGEST_TITLE = 500
_RELAND = re.compile(r"^\W*(re-?lands?|re-?appl(y|ies)|re-?adds?|re-?introduces?)\b", _FLAGS)
# A revert of a revert brings back, a revert of that takes away again.
_REVERTS = re.compile(r"^\W*(?:reverts?\b\W*){1,20}", _FLAGS)

_PREFIXES: Mapping[str, Kind] = {
    **dict.fromkeys(("fix", "bugfix", "hotfix", "bug", "fixes", "fixed", "hot fix", "bug fix"), Kind.FIX),
    **dict.fromkeys(("feat", "feature", "new", "add", "feats", "features", "enhancement"), Kind.FEATURE),
    **dict.fromkeys(("perf", "performance", "optim", "optimization", "opt", "optimize", "speedup"), Kind.PERF),
    **dict.fromkeys(("refactor", "refactoring", "cleanup", "refact"), Kind.REFACTOR),
    **dict.fromkeys(("tune", "tuning", "tuned", "autotune"), Kind.TUNING),
    **dict.fromkeys(
        ("chore", "style", "docs", "doc", "ci", "build", "test", "tests", "release", "lint", "typo", "readme", "deps"),
        Kind.MAINTENANCE,
    ),
}

# The verb that a title begins with says most.
_VERBS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"^\W*(?:{pattern})", _FLAGS))
    for kind, pattern in (
        (
            Kind.MAINTENANCE,
            r"(release|bump|prepare\b.*\brelease|version|reformat|format(ting)?|lint|run (black|ruff|isort|pre-commit)"
            r"|apply (black|ruff|clang-format)|update (the )?(version|readme|changelog|pyproject)|(fix\w*\s+)?typos?"
            r"|fix\w*\s+((code\s*)?style|checkstyle|lint\w*|format\w*))\b|v?\d+\.\d+\.\d+",
        ),
        (
            Kind.FIX,
            r"((bug|hot)[ -]?)?(fix(e[sd]|ing)?|correct(s|ed)?|repair|resolve|prevent|handle|avoid|work ?around)\b",
        ),
        (
            Kind.PERF,
            r"(optimi[sz]\w*|speed[ -]?up|accelerat\w+|vectori[sz]\w*|improve\w* (the )?(perf|speed|latency))\b",
        ),
        (Kind.TUNING, r"(re-?)?(auto-?)?tun(e|ed|ing)\b"),
        (
            Kind.REFACTOR,
            r"(refactor|clean|renam|move|simplif|dedup|consolidat|unif(y|ie)|reorgani[sz]|extract|remov|split)\w*",
        ),
        (Kind.FEATURE, r"(add(s|ed|ing)?|support|implement\w*|introduc\w+|enabl\w+|new|allow\w*|initial|port)\b"),
    )
)
# Otherwise the first of these that is anywhere in the title.
_WORDS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, _FLAGS))
    for kind, pattern in (
        (Kind.MAINTENANCE, r"\b(checkstyle|code style|clang-format|pre-commit|isort|typos?|v?\d+\.\d+\.\d+ release)\b"),
        (Kind.PERF, r"\binstead of (two|three|four|\d+)( times|$)|\bin one pass\b"),
        (
            Kind.FIX,
            r"\b(bug ?)?fix(e[sd]|ing|up)?\b|\bbugs?\b|\bcorrect(s|ed|ly|ness)?\b|\bwrong(ly)?\b|\bincorrect(ly)?\b"
            r"|\b(crash|hang|race|deadlock|overflow|underflow|nans?|infs?|regression|mismatch|leak)\b|\bout.of.bounds?\b"
            r"|\b(do(es)? not|don't|must not|never)\b|\binstead of\b|\b(64-?bit|int64) (offset|index|stride)",
        ),
        (
            Kind.PERF,
            r"\bperf(ormance)?\b|\boptimi[sz]\w*|\bspeed(s|ed|ing)?[ -]?ups?\b|\bfaster\b|\baccelerat\w*|\blatency\b"
            r"|\bthroughput\b|\bcoalesc\w*|\bvectori[sz]\w*|\bprefetch\w*|\bpipelin\w*|\bin one kernel\b"
            r"|\btiles? of\b|\bmemory order\b|\bless memory\b|\breduce\w* (memory|register)",
        ),
        (Kind.TUNING, r"\b(auto)?-?tun(e|es|ed|ing)\b|\bautotun\w*|\btuned? config\w*"),
        (
            Kind.REFACTOR,
            r"\brefactor\w*|\bclean(s|ed|ing)?[ -]?up\b|\brenam\w+|\bmoved?\b|\bsimplif\w+|\bdedup\w*"
            r"|\bconsolidat\w+|\bunif(y|ies|ied)\b|\breorgani[sz]\w*|\bone helper\b",
        ),
        (
            Kind.FEATURE,
            r"\badd(s|ed|ing)?\b|\bsupport\w*|\bimplement\w*|\bintroduc\w+|\benabl\w+|\bnew\b|\bfeat(ure)?s?\b"
            r"|\ballow\w*|\bextend\w*|\b(forward|backward) pass\b",
        ),
    )
)
# Labels are a team's own words, often with a prefix ("type: bug", "kind/feature").
_LABELS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"(?:^|[\s:/_-])(?:{pattern})$", _FLAGS))
    for kind, pattern in (
        (Kind.FIX, r"bugs?|bug ?fix|fix|regression|correctness"),
        (Kind.PERF, r"perf|performance|optimi[sz]ation"),
        (Kind.TUNING, r"(auto)?tun(e|ing)"),
        (Kind.FEATURE, r"enhancement|features?|feature request|new (op|kernel|model)"),
        (Kind.REFACTOR, r"refactor(ing)?|clean[- ]?up|tech(nical)?[- ]debt"),
        (Kind.MAINTENANCE, r"documentation|docs|ci|dependencies|chore|release|build|tests?"),
    )
)
_BODY_FIX = re.compile(
    r"\b(fix(es|ed)?|close[sd]?|resolve[sd]?)\s+([\w.-]{1,100}/[\w.-]{1,100})?#\d+|\b(wrong|incorrect) results?\b",
    _FLAGS,
)
_WORTHLESS = frozenset({Kind.MAINTENANCE})


def tell(title: str, body: str, shape: Shape, labels: Sequence[str] = ()) -> tuple[Kind, str]:
    """The kind of a pull request and what told it: title, labels, body, shape."""
    title = title[:_LONGEST_TITLE]
    if _RELAND.search(title):
        return Kind.RELAND, "the title says that it lands again"
    if nested := _REVERTS.search(_without_prefixes(title)[0]):
        if nested[0].lower().count("revert") % 2 == 0:
            return Kind.RELAND, "the title says that a revert is taken back"
        return Kind.REVERT, "the title says revert"
    plain, prefixes = _without_prefixes(title)
    for prefix in prefixes:
        kind = _PREFIXES.get(prefix.lower())
        # `chore:` in front of a change to a kernel's code says nothing about the change.
        if kind and not (kind in _WORTHLESS and shape.code):
            return kind, f"title prefix {prefix!r}"
    for label in labels:
        for kind, pattern in _LABELS:
            if pattern.search(label) and not (kind in _WORTHLESS and shape.code):
                return kind, f"label {label!r}"
    for kind, pattern in (*_VERBS, *_WORDS):
        if match := pattern.search(plain):
            return kind, f"title word {match[0].strip()!r}"
    return _by_shape(body, shape)


def _without_prefixes(title: str) -> tuple[str, list[str]]:
    prefixes: list[str] = []
    while match := _PREFIX.match(title):
        prefixes += [word.strip() for word in re.split(r"[,/|&]", match["bracket"] or match["word"])]
        title = title[match.end() :]
    return title, prefixes


def _by_shape(body: str, shape: Shape) -> tuple[Kind, str]:
    if _BODY_FIX.search(body):
        return Kind.FIX, "the body closes an issue"
    sources = [file for file in shape.files if file.role in (Role.KERNEL, Role.HOST, Role.CONFIG)]
    if not sources:
        return Kind.OTHER, "no source file changes"
    if all(file.role is Role.CONFIG for file in sources):
        return Kind.TUNING, "only tuned configurations change"
    if shape.moves_only:
        return Kind.REFACTOR, "files only move"
    if any(file.change == "added" and file.role in (Role.KERNEL, Role.HOST) for file in sources):
        return Kind.FEATURE, "a source file is new"
    if shape.kernels and any(file.role is Role.TEST for file in shape.files):
        return Kind.FIX, "code that exists changes, and its tests with it"
    return Kind.OTHER, "neither title, body nor change tell"
