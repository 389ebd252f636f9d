"""A title as the statement of a report: what is wrong or wanted, never what was done about it.

By rules over the first words. Where none fits, a neutral frame is put around the words as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from smith.records.candidate import Kind

_TAG = re.compile(r"^\s*(?:\[+([^\]\[]{1,40})[\]\[]|【([^】]{1,40})】)\s*[:：-]?\s*")
_SCOPE = re.compile(r"^\(([\w ,./+-]{1,40})\)\s*:?\s*")  # as in "[feat](scope) words"
_TAIL_TAG = re.compile(r"(?:\s*\[[^\]]{1,40}\])+\s*$")
_CONVENTIONAL = re.compile(
    r"^\s*(fix|feat|feature|perf|bug|bugfix|hotfix|refactor|chore|build|style|revert|enhancement|improvement|opt|add)"
    r"(?:\(([^)]{1,40})\))?!?\s*:\s+",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^\s*([\w./+ -]{1,30}?)\s*:\s+(?=\S)")
_VERB = re.compile(r"\b(?:fix\w*|add\w*|when|for|the|optimi\w+|updat\w+|support\w*|improv\w+|implement\w*)\b", re.I)
_KIND_TAG = re.compile(
    r"fix(ed|es)?|bug(fix)?|hotfix|feat(ure)?|perf(ormance)?|refactor|chore|misc\.?|ci|wip|rfc|draft|enhancement|"
    r"improve(ment)?|easy|optimi[sz]e|cleanup|new|opt(imi[sz]ation)?|minor|main|dev|part|\d+(/\w+)?|[a-z]+-\d+|"
    r"do not merge|breaking",
    re.IGNORECASE,
)
_FIX = re.compile(
    r"^(?:bug\s*fix(?:es)?|hot\s*fix(?:es)?|fix(?:ed|es|ing)?|resolve[sd]?|repair(?:ed|s)?|address(?:es|ed)?)"
    r"(?:\s+(?:up|for|of|in|on|to|around|with))?\b[\s:,]*(?:(?:the|a|an|some|this)\s+)?(?P<rest>.*)$",
    re.IGNORECASE,
)
_CORRECT = re.compile(
    r"^(?:correct(?:ed|s|ly)?|update[sd]?|improve[sd]?|clean(?:ed)? up|rework(?:ed|s)?|revise[sd]?|adjust(?:ed|s)?)"
    r"\s+(?:the\s+)?(?P<rest>.*)$",
    re.IGNORECASE,
)
_ADD = re.compile(
    r"^(?:add(?:ed|s|ing)?|implement(?:ed|s|ing)?|introduce[sd]?|provide[sd]?|create[sd]?|initial(?: commit for)?)"
    r"\s+(?:(?:the|a|an|some|new)\s+)*(?P<rest>.*)$",
    re.IGNORECASE,
)
_SUPPORT = re.compile(r"^support(?:ed|s|ing)?\s+(?:for\s+)?(?P<rest>.*)$", re.IGNORECASE)
_FAST = re.compile(
    r"^(?:optimi[sz](?:e[sd]?|ed|ing)|speed(?:s|ing|ed)?[- ]?up|accelerat(?:e[sd]?|ing)|"
    r"improv(?:e[sd]?|ing)\s+(?:the\s+)?(?:performance|speed|throughput|latency|perf|efficiency)\s+(?:of|for|in)|tun(?:e[sd]?|ing))"
    r"\s+(?:the\s+)?(?P<rest>.*)$",
    re.IGNORECASE,
)
_WANT = re.compile(
    r"^(?:allow|enable|make|let|honou?r|respect|handle|keep|preserve|avoid|prevent|ensure|guard|reject|raise|validate|"
    r"check|return|accept|expose|extend|do not|don't|never|stop|skip|reduce|lower|remove|drop|unify|align|copy|read|"
    r"write|compute|accumulate|take|find|disable|only|restore|initiali[sz]e|propagate|bound|clamp|match|produce|report|eliminate|unlock|decouple)"
    r"(?:s|ed|d)?\s+\S",
    re.IGNORECASE,
)
_MEANS = re.compile(
    r"^(?:use[sd]?|using|replac(?:e[sd]?|ing)|switch(?:ed|es)?|convert(?:ed|s)?|cast(?:s|ed)?|upcast|mov(?:e[sd]?|ing)|"
    r"stor(?:e[sd]?|ing)|pass(?:ed|es)?|fus(?:e[sd]?|ing)|split(?:s)?|unroll(?:ed|s)?|hoist(?:ed|s)?|inline[sd]?|"
    r"cache[sd]?|vectori[sz]e[sd]?|pipeline|pin(?:s|ned)?|reorder(?:ed|s)?|swap(?:ped|s)?|rewrite|rewrote|port(?:ed|s)?|"
    r"apply|applie[sd]|mask(?:ed|s)?|gate[sd]?|load(?:s|ed)?|merge[sd]?|rename[sd]?|set(?:s)?|change[sd]?|"
    r"modify|modified|force[sd]?|slice[sd]?|zero-init\w*|refact(?:or(?:ed|s)?)?|simplify|simplified|transpose[sd]?|recompute[sd]?|save[sd]?|wrap(?:ped|s)?)\b",
    re.IGNORECASE,
)
_FAULT = re.compile(
    r"\b(?:bugs?|faults?|issues?|errors?|failures?|fail(?:s|ed|ing)?|nans?|infs?|crash(?:es|ing)?|overflows?|underflow|"
    r"wrong|incorrect(?:ly)?|illegal|invalid|missing|race|oob|out[- ]of[- ]bounds?|deadlocks?|hangs?|leaks?|broken|"
    r"mismatch(?:es)?|typos?|regressions?|inconsisten\w+|corrupt\w*|problems?|inaccura\w+|unbound\w*|unsupported|"
    r"misaligned|divergen\w*|not\b.*\w|does(?:n't| not)|cannot|can't|never|oom|segfaults?|access(?:es)?|assertion|"
    r"exception|precision loss|conflict\w*|duplicat\w*|redundant|stale|uninitiali[sz]ed|undefined|ignored?|warning)\b",
    re.IGNORECASE,
)
_MEANS_TAIL = re.compile(
    r"\s*(?:\bby\s+\w+ing\b.*|\bvia\b.*|\bthrough\s+\w+ing\b.*|\busing\b.*|\binstead of\b.*|"
    r"[,;:]\s*(?:use|add|replac|switch|mov|pass|cast|split|fus|cach)\w*\b.*|"
    r"\bwith\s+(?:an?\s+)?(?:new|better|faster|[\w-]+-pass|[\w-]+\s+(?:kernel|approach|reduction|algorithm))\b.*|"
    r"\s[-–—]\s(?=[A-Za-z]).*|:[^:]*(?:->|→).*)$",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"\bto\s+((?:support|avoid|prevent|allow|reduce|fix|enable|handle|improve|lower|match|respect|preserve)\s+.*)$",
    re.I,
)
_PLACE = re.compile(r"\b(?:in|for|inside|within)\s+((?:the\s+)?[^,;:]+)$", re.IGNORECASE)
_AND_SOLUTION = re.compile(
    r"\s*(?:,|;|&|\+|\band\b)\s*(?:added?|adding|updated?|improved?|corresponding|refactor\w*|cleaned?|tests?|unit)\b.*$",
    re.IGNORECASE,
)
_PULL = re.compile(r"\s*\(?#\d+\)?\s*$")
_MEASURED = re.compile(
    r"\s*[(\[,:–—-]*\s*(?:~|by |up to |about )*\d+(?:\.\d+)?\s*(?:[x×]|%|ms|us|µs)(?!\w)\s*"
    r"(?:-\s*\d+(?:\.\d+)?\s*[x×%])?\s*(?:faster|speed-?ups?|improvement|gain|better|less|lower)?\s*[)\]]?",
    re.IGNORECASE,
)


_FOR_SPEED = (Kind.PERF, Kind.TUNING)
_RELAND = re.compile(r"^\s*re-?(?:land|apply|add)\w*\s+[\"'“](.*?)[\"'”]?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """``heading`` is a title without a full stop. ``told`` is false where the title says only how it was done, so that
    the words had to go."""

    heading: str
    told: bool = True


def state(title: str, kind: Kind, subject: str = "") -> Statement:
    """The statement that a title makes. ``subject`` names what changes, for titles that do not say it."""
    title = _PULL.sub("", title)
    again = _RELAND.match(title)
    scope, words = _split(_PULL.sub("", again[1]) if again else title)
    words = _MEASURED.sub(" ", words).strip(" .:;-–—")
    words = " ".join(words.split())
    if not words:
        return Statement(_with_scope(scope, _about(subject, kind)), told=False)
    heading = _stated(words, kind)
    if heading is None:
        place = _PLACE.search(words)
        target = subject or (place[1] if place and not _MEANS_TAIL.search(place[1]) else "")
        return Statement(_with_scope(scope, _about(target, kind)), told=False)
    return Statement(_with_scope(scope, heading))


def framed(title: str) -> str:
    """The words of a title in a neutral frame, for where nothing else tells what is wanted."""
    scope, words = _split(_PULL.sub("", title))
    words = " ".join(_MEASURED.sub(" ", words).split()).strip(" .:;-–—")
    return _with_scope(scope, f"Wanted: {_low(words)}") if words else ""


def _stated(words: str, kind: Kind) -> str | None:
    """The statement of a title; None where it says only the means."""
    if match := _FAST.match(words):
        return f"Slow: {_without_means(match['rest'])}" if _without_means(match["rest"]) else None
    if match := _FIX.match(words):
        rest = _without_means(match["rest"])
        if not rest:
            return None
        if inner := _WANT.match(rest):
            return f"Wanted: {_low(inner.string)}"
        return _cap(rest) if _FAULT.search(rest) else f"Fault in {rest}"
    if _MEANS.match(words):
        purpose = _PURPOSE.search(words)
        return _stated(purpose[1], kind) if purpose else None
    if match := _SUPPORT.match(words):
        return f"Missing: support for {_without_means(match['rest'])}"
    if match := _ADD.match(words):
        rest = _without_means(match["rest"])
        if kind is Kind.FIX and re.match(r"(?:missing|absent)\b", rest, re.IGNORECASE):
            return _cap(rest)
        return f"Missing: {rest}" if rest else None
    if match := _CORRECT.match(words):
        rest = _without_means(match["rest"])
        if not rest:
            return None
        return {Kind.FIX: f"Fault in {rest}", Kind.PERF: f"Slow: {rest}"}.get(kind, f"Change wanted in {rest}")
    if kind in _FOR_SPEED:
        return None  # what a title says besides is how
    if _WANT.match(words):
        return f"Wanted: {_low(_without_means(words))}"
    if kind is Kind.FIX:
        return _cap(words) if _FAULT.search(words) else f"Fault: {words}"
    return f"Wanted: {words}"


def _split(title: str) -> tuple[str, str]:
    """The tags that name a part of the repository, and the words after all tags."""
    tags: list[str] = []
    title = _TAIL_TAG.sub("", title)
    while True:
        if (match := _TAG.match(title)) or (tags and (match := _SCOPE.match(title))):
            tags.append(next(part for part in match.groups() if part).strip())
        elif match := _CONVENTIONAL.match(title):
            tags += [match[2].strip()] if match[2] else []
        else:
            break
        title = title[match.end() :]
    # A label names a part; "Optimize X: how" is a sentence.
    if (match := _LABEL.match(title)) and not _VERB.search(match[1]):
        tags.append(match[1].strip())
        title = title[match.end() :]
    kept = [tag for tag in dict.fromkeys(tags) if not _KIND_TAG.fullmatch(tag)]
    return ", ".join(kept), title


def _without_means(words: str) -> str:
    """A title's object without how it was reached."""
    words = _AND_SOLUTION.sub("", words)
    return _MEANS_TAIL.sub("", words).strip(" .:;,-–—")


def _about(subject: str, kind: Kind) -> str:
    subject = subject.strip() or "the kernels below"
    if kind in _FOR_SPEED:
        return f"Slow: {subject}"
    if kind is Kind.FIX:
        return f"Fault in {subject}"
    return f"Change wanted in {subject}"


def _with_scope(scope: str, heading: str) -> str:
    return f"{scope}: {heading}" if scope and scope.lower() not in heading.lower() else heading


def _cap(words: str) -> str:
    return words[:1].upper() + words[1:] if not re.match(r"\w+[_(.]", words) else words


def _low(words: str) -> str:
    """The first word in lower case, unless it is a name or an abbreviation."""
    first = re.match(r"[A-Z][a-z]+\b(?![_(.])", words)
    return words[:1].lower() + words[1:] if first else words
