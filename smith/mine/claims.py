"""Performance claims in the words of a pull request: ``1.35x faster``, ``from 120us to 80 us``, tables of speed-ups.

Sentences, list items, rows of tables and lines of aligned text are read one by one. A bare number is never a claim: it
needs a word of performance near it, and words of accuracy, tests or builds in the same sentence speak against it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from smith.mine import devices
from smith.records.signals import Claim

Where = Literal["title", "body", "commits"]
Direction = Literal["faster", "slower", "less", "more", "unknown"]
Unit = Literal["x", "%", "s", "ms", "us", "ns", "TFLOPS", "GB/s", "GB", "MB", "tok/s"]

_MOST = 20
_MOST_OF_A_TABLE = 6
_LONGEST_TEXT = 200
_LONGEST_BODY = 30_000
# What is longer is data, and patterns that look around themselves would take long over it.
_LONGEST_LINE = 600
_WRAPPED = 55
"""From this length on a line without an end of sentence goes on in the next."""

_I = re.IGNORECASE
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,300}\]\([^()\n]{0,500}\)")
_LINK = re.compile(r"\[([^\[\]\n]{0,300})\]\([^()\n]{0,500}\)")
_URL = re.compile(r"\bhttps?://\S+")
_MARKS = re.compile(r"[*`]+|~~")
_LOG = re.compile(
    r"\b(PASSED|FAILED|SKIPPED|XFAIL|XPASS)\b|\[\s*\d+%\]|^\s*\S*tests?/\S+\.py|^\s*E\s{3}|^\s*File \"|^\s*\{'|it/s\b"
)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|#+|>)\s+")
_HEADING = re.compile(r"^\s*(?:#+\s|\S.{0,80}:\s*$)")
_RULE = re.compile(r"^\s*(?=.*\|)\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z(~\d])|;\s+")

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_START = r"(?<![\w.,/^-])"
_TIME = r"ms|us|µs|μs|usec|ns|secs?|seconds?|s"
_RATE = r"[TP]-?FLOPS?(?:/s)?|[TP]FLOP/s|[GT]i?B/s|tok(?:en)?s?/s(?:ec)?|tokens per second|tps"
_SIZE = r"[GM]i?B"
_UNIT = rf"(?:{_RATE}|{_SIZE}|{_TIME})(?![\w/])"
_ARROW = r"(?:-+>|=+>|→|⟶|to|down to|up to|vs\.?|versus)"
_FROM_TO = re.compile(
    rf"{_START}~?(?P<a>{_NUMBER})\s*(?P<ua>{_UNIT})?\s*{_ARROW}\s*~?(?P<b>{_NUMBER})\s*(?P<ub>{_UNIT})", _I
)
# Units only on the left, as in `3382us -> 929`.
_FROM_TO_LEFT = re.compile(
    rf"{_START}~?(?P<a>{_NUMBER})\s*(?P<ua>{_UNIT})\s*(?:-+>|=+>|→)\s*~?(?P<b>{_NUMBER})(?![\w.%])", _I
)
_RANGE = r"(?:\s*(?:[-–—~]|to)\s*(?:\d+(?:\.\d+)?)\s*)"
_TIMES = re.compile(
    rf"{_START}(?:~|≈)?(?P<v>\d+(?:\.\d+)?)(?:(?:\s?[x×])?{_RANGE})?"
    r"(?:[x×](?![\w×])(?!\s*[\d×])|\s[x×]\s(?=faster|slower|speed|improve|lower|higher|less|more)|-fold\b|\s+times\s+"
    r"(?=faster|slower|higher|lower|less|more))",
    _I,
)
_PERCENT = re.compile(
    rf"(?<![\w.,/^<≤±])(?P<sign>[-+−–]?)(?:~|≈)?(?P<v>\d+(?:\.\d+)?)(?:\s?%?{_RANGE}|/-\d+(?:\.\d+)?)?\s?%(?![\w-])"
)
_RATED = re.compile(rf"{_START}(?:~|≈)?(?P<v>{_NUMBER})(?:{_RANGE})?\s*(?P<u>{_RATE})(?!\w)", _I)
_SAVED = re.compile(
    rf"\b(?:saves?|saving|reduc\w+|less|lower\w*)\b[^.;|]{{0,60}}?\b(?:by )?{_START}(?P<v>{_NUMBER})"
    rf"\s*(?P<u>{_SIZE}|{_TIME})\b",
    _I,
)
_TAKES = re.compile(
    rf"\b(?:takes?|took|latency|duration|runtime|kernel time|runs in|run time|e2e time)\b[^.;|]{{0,40}}?{_START}~?"
    rf"(?P<v>{_NUMBER})\s*(?P<u>ms|us|µs|μs|ns)(?![\w/])",
    _I,
)

_SPEED = re.compile(
    r"faster|slower|speed|\bperf(?!ect|\w*_)\w*|throughput|latenc|\bboost|\bgains?\b|geo-?mean|\bquicker|\bwin(s|ning)?\b"
    r"|bandwidth|\btpot\b|\bttft\b|\be2e\b|\btok/s|\bqps\b|regress|uplift|accelerat",
    _I,
)
_MEMORY = re.compile(r"\b(memory|vram|footprint|allocat\w+|peak mem|workspace|scratch|activations?)\b", _I)
_CHANGE = re.compile(
    r"improv|reduc|sav(es?|ing)|increase|decrease|drop|lower|higher|less|more|smaller|fewer|better", _I
)
_BUILD = re.compile(
    r"compil(e|es|er|ing|ation)[ -]time|\b(re)?build(s|ing)?\b|\bimport time|\bTUs?\b|\bcode-?gen\b|\bcontainer\b"
    r"|\bCI\b|\btest_\w+\.py|\b(unit|convergence) tests?\b|\btests? (suite|run|time|duration|finish|take)"
    r"|\b(autotun|tun)\w+ time|\b(binary|code) size|\blines? of code|\bwheel\b|\b(front|back)-?end pass",
    _I,
)
_OTHER = re.compile(
    r"accura|gsm8k|mmlu|coverage|toleran|\batol\b|\brtol\b|\berr(or)?s?\b|mismatch|\bdiff(erence|s)?\b|precision|cosine"
    r"|grad_?norm|confidence|sparsity|hit[ -]rate|acceptance|dropout|occupancy|utili[sz]ation|of peak(?! mem)|quantile"
    r"|p9\d\b|\bnoise|noisy|pass rate|relative|\bulp|converge|bit-?exact|probab|margin|\bvgpr|\binstruct|cycles|saturat"
    r"|\bdrift|\bfewer\b|threshold|timeout|\bcv\b|headroom|variance|\bsnr\b",
    _I,
)
_SLOWER = re.compile(r"slow(er|down|s)|regress|degrad|overhead|\bworse|penalty|lower throughput|higher latency", _I)
_LESS = re.compile(r"\b(less|lower|reduc\w*|sav\w+|smaller|fewer|decreas\w+|drop\w*|cut\w*|shrink\w*|down)\b", _I)
_MORE = re.compile(r"\b(more|higher|increas\w+|larger|extra|additional|grow\w*)\b", _I)
_TWICE = re.compile(r"\b(?:twice|two times) (?:as fast|the (?:speed|throughput|performance))|\b2x\b(?= the speed)", _I)


@dataclass(frozen=True)
class _Read:
    """A value as it was read, before its words are attached."""

    value: float
    unit: Unit
    direction: Direction


@dataclass(frozen=True)
class _Around:
    """The block that something stands in and the heading above it, read once for all of it."""

    text: str

    @cached_property
    def about_speed(self) -> bool:
        return bool(_SPEED.search(self.text))

    @cached_property
    def device(self) -> str | None:
        return next(iter(devices.names(self.text)), None)


@dataclass(frozen=True)
class _Piece:
    """A sentence, list item, table row or aligned line with the words around it that give it meaning."""

    text: str
    around: _Around
    found: tuple[_Read, ...]


def find(title: str, body: str = "", subjects: Sequence[str] = ()) -> tuple[Claim, ...]:
    """The claims of a pull request, at most 20: of its title, its body and the ``subjects`` of its commits.

    A change from one measured value to another is given as a ratio with unit ``x``: a speed-up where it is of time or
    rate, old to new size where it is of memory (``less``). Ratios below 1 are ``slower`` or ``more``. A range gives its
    lower end, a percentage its absolute value. The same value is claimed once, where it is said first.
    """
    text = plain(body)
    everywhere = devices.names(f"{title}\n{text}")
    only = everywhere[0] if len(everywhere) == 1 else None
    claims: dict[tuple[float, str, str], Claim] = {}
    for where, piece in _pieces(title, text, subjects):
        if not piece.found:
            continue
        device = next(iter(devices.names(piece.text)), piece.around.device or only)
        for read in piece.found:
            if len(claims) >= _MOST:
                return tuple(claims.values())
            claims.setdefault(
                (read.value, read.unit, read.direction),
                Claim(
                    text=_short(piece.text),
                    where=where,
                    value=read.value,
                    unit=read.unit,
                    direction=read.direction,
                    device=device,
                ),
            )
    return tuple(claims.values())


def plain(body: str) -> str:
    """A body without HTML, comments (templates are full of them), images and addresses."""
    text = body[:_LONGEST_BODY].replace("\r\n", "\n")
    text = _COMMENT.sub(" ", text)
    text = _IMAGE.sub(" ", text)
    text = _LINK.sub(r"\1", text)
    text = _URL.sub(" ", text)
    return _TAG.sub(" ", text)


def _pieces(title: str, text: str, subjects: Sequence[str]) -> Iterator[tuple[Where, _Piece]]:
    yield "title", _piece(title, _Around(title))
    heading = ""
    for block in re.split(r"\n[ \t]*\n", text):
        lines = [_MARKS.sub("", line[:_LONGEST_LINE]).rstrip() for line in block.split("\n")]
        lines = [line for line in lines if line.strip() and not _LOG.search(line)]
        if not lines:
            continue
        yield from (("body", piece) for piece in _of_block(lines, heading))
        # A caption says what the table or the list below it measures.
        heading = lines[-1] if _HEADING.match(lines[-1]) or len(lines) == 1 else heading
    for subject in subjects:
        yield "commits", _piece(subject, _Around(subject))


def _of_block(lines: Sequence[str], heading: str) -> Iterator[_Piece]:
    at = 0
    while at < len(lines):
        rule = next((index for index in range(at + 1, len(lines)) if _RULE.match(lines[index])), None)
        start, header = (len(lines), "") if rule is None else _header(lines, at, rule)
        yield from _of_lines(lines[at:start], heading)
        if rule is None:
            return
        rows, at = _rows(lines, rule)
        yield from _of_table(header, rows, lines[start - 1] if start else heading)


def _header(lines: Sequence[str], at: int, rule: int) -> tuple[int, str]:
    """Where the header above a table's ``rule`` begins, and its text.

    Commit messages are wrapped, and tables with them: a row goes on until it has as many cells as the rule.
    """
    start, text = rule - 1, lines[rule - 1]
    while start > at and len(_cells(text)) < len(_cells(lines[rule])):
        start -= 1
        text = f"{lines[start]} {text}"
    return start, text


def _rows(lines: Sequence[str], rule: int) -> tuple[list[str], int]:
    """The rows below ``rule`` and where the table ends."""
    rows: list[str] = []
    at, width = rule + 1, len(_cells(lines[rule]))
    while at < len(lines) and "|" in lines[at]:
        row = lines[at]
        at += 1
        while at < len(lines) and len(_cells(row)) < width:
            row = f"{row} {lines[at]}"
            at += 1
        rows.append(row)
    return rows, at


def _of_lines(lines: Sequence[str], heading: str) -> Iterator[_Piece]:
    around = _Around("\n".join([heading, *lines]))
    for line in _joined(lines):
        for sentence in _SENTENCE.split(line):
            yield _piece(sentence, around)


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """Lines of a paragraph as they were before an editor wrapped them; items and aligned lines stay alone."""
    held = ""
    for line in lines:
        aligned = re.search(r"\S\s{3,}\S", line) or "->" in line or "→" in line
        goes_on = len(held) and not _BULLET.match(line) and not (aligned and line[0] != " ")
        if goes_on and len(held.rsplit("\n", 1)[-1]) >= _WRAPPED:
            held = f"{held}\n{line.strip()}"
            continue
        if held:
            yield " ".join(held.split("\n"))
        held = _BULLET.sub("", line)
    if held:
        yield " ".join(held.split("\n"))


def _piece(text: str, around: _Around) -> _Piece:
    text = text[:_LONGEST_LINE]
    return _Piece(text, around, tuple(_of_sentence(text, around)))


def _of_sentence(text: str, around: _Around) -> list[_Read]:
    if not any(character.isdigit() for character in text) and not _TWICE.search(text):
        return []
    if _BUILD.search(text):
        return []
    rest, found = text, list[_Read]()
    for pattern in (_FROM_TO, _FROM_TO_LEFT):
        for match in list(pattern.finditer(rest)):
            if (read := _from_to(match, text)) is not None:
                found.append(read)
                # A percentage behind it says the same once more.
                rest = _without(rest, match)
    if found:
        return found + _rated(rest)
    about_speed, doubtful = bool(_SPEED.search(text)), bool(_OTHER.search(text))
    about_memory = bool(_MEMORY.search(text)) and bool(_CHANGE.search(text))
    if (about_speed or about_memory or around.about_speed) and not (doubtful and not about_speed):
        found += [_times(match, text) for match in _TIMES.finditer(text) if _is_ratio(match, text, about_speed)]
    if _TWICE.search(text):
        found.append(_Read(2.0, "x", "faster"))
    if not doubtful and (about_speed or about_memory):
        found += [_percent(match, text) for match in _PERCENT.finditer(text) if _is_change(match, text)]
    found += _rated(text)
    if not found and not doubtful:
        found += [_Read(*_scaled(match["v"], match["u"]), "less") for match in _SAVED.finditer(text)]
    if not found and not doubtful:
        found += [_Read(*_scaled(match["v"], match["u"]), "unknown") for match in _TAKES.finditer(text)]
    return found


def _without(text: str, match: re.Match[str]) -> str:
    return f"{text[: match.start()]}{' ' * (match.end() - match.start())}{text[match.end() :]}"


def _from_to(match: re.Match[str], text: str) -> _Read | None:
    groups = match.groupdict()
    unit_before, unit_after = groups["ua"], groups.get("ub") or groups["ua"]
    before, unit = _scaled(groups["a"], unit_before or unit_after)
    after, unit_of_after = _scaled(groups["b"], unit_after)
    if unit in ("s", "ms", "us", "ns") and unit_of_after in ("s", "ms", "us", "ns"):
        before, after, unit, unit_of_after = before * _SECONDS[unit], after * _SECONDS[unit_of_after], "s", "s"
    elif unit in ("GB", "MB") and unit_of_after in ("GB", "MB"):
        before, after, unit, unit_of_after = before * _BYTES[unit], after * _BYTES[unit_of_after], "MB", "MB"
    if unit != unit_of_after or not before or not after or (_OTHER.search(text) and not _SPEED.search(text)):
        return None
    joint = text[match.start() : match.end()].lower()
    if "vs" in joint or "versus" in joint:
        # The new one is named first.
        before, after = after, before
    elif " to " in joint and not unit_before and "from" not in text[: match.start()].lower()[-20:]:
        return None  # a range
    no_size = unit == "MB" and not _MEMORY.search(text)
    if no_size or (unit_before in _WHOLE_SECONDS and not _SPEED.search(text)):
        return None  # an address, a limit; the time of a build or a test
    if unit == "MB":
        return _Read(_round(before / after), "x", "less" if after < before else "more")
    ratio = before / after if unit == "s" else after / before
    return _Read(_round(ratio), "x", "faster" if ratio >= 1 else "slower")


def _is_ratio(match: re.Match[str], text: str, about_speed: bool) -> bool:
    behind = text[match.end() :].lstrip()
    before = text[: match.start()].rstrip()
    if float(match["v"]) == 0 or before.endswith(("<", "≤", ">", "≥", "<=", ">=", "±")):
        return False
    # A count of devices or of calls, and not a ratio.
    if re.match(r"(?:NVIDIA|AMD|GPU|MI\d|[HAB]\d{2,3}\b|unroll|wave|warp|vector|exp|load|store|tile)", behind, _I):
        return False
    # A whole number may count anything; a fraction seldom does.
    whole = "." not in match["v"] and not re.match(
        r"\W*(faster|slower|speed|improv|higher|lower|perf|gain|thr)", behind, _I
    )
    return about_speed or not whole


def _times(match: re.Match[str], text: str) -> _Read:
    value = float(match["v"])
    if behind := re.match(
        r"\W*(?:(faster|quicker)|(slower|longer)|(less|lower|smaller|fewer)|(more|larger))\b", text[match.end() :], _I
    ):
        told: tuple[Direction, ...] = ("faster", "slower", "less", "more")
        return _Read(value, "x", told[(behind.lastindex or 1) - 1])
    near = _near(match, text)
    if _MEMORY.search(near) and not _SPEED.search(near):
        return _Read(value, "x", "more" if value < 1 or (_MORE.search(near) and not _LESS.search(near)) else "less")
    slower = value < 1 or bool(re.match(r"\W*(slow|regress|degrad)", text[match.end() :], _I))
    return _Read(value, "x", "slower" if slower else "faster")


def _is_change(match: re.Match[str], text: str) -> bool:
    before = text[: match.start()].rstrip()
    behind = text[match.end() :].lstrip()
    if float(match["v"]) == 0 or before.endswith(("<", "≤", "±", "<=", "within", "under", "below", "+-")):
        return False
    # `95% of the time`, `40% of prefills`
    if re.match(r"of\s+(?!\w*\s*(memory|time|latency))", behind, _I):
        return False
    near = _near(match, text)
    return bool(_SPEED.search(near) or (_MEMORY.search(near) and _CHANGE.search(near)) or _CHANGE.search(near))


def _percent(match: re.Match[str], text: str) -> _Read:
    near, value = _near(match, text), float(match["v"])
    down = match["sign"] in ("-", "−", "–") and bool(match["sign"])
    up = match["sign"] == "+"
    if _MEMORY.search(near) and not re.search(r"faster|slower|speed|throughput|latenc|bandwidth", near, _I):
        more = up or (bool(_MORE.search(near)) and not _LESS.search(near))
        return _Read(value, "%", "more" if more and not down else "less")
    of_time = re.search(r"latenc|tpot|ttft|\bitl\b|runtime|duration|\btime\b", near, _I)
    if down or up:
        return _Read(value, "%", "faster" if down == bool(of_time) else "slower")
    slower = _SLOWER.search(near) and not re.search(r"faster|speed-?up|improv", near, _I)
    return _Read(value, "%", "slower" if slower else "faster")


def _near(match: re.Match[str], text: str) -> str:
    """The words about a number: to the next comma on both sides where such words are there, else the sentence."""
    start = max(
        text.rfind(", ", 0, match.start()), text.rfind(" (", 0, match.start()), text.rfind(" and ", 0, match.start())
    )
    ends = [at for mark in (", ", ") ", " and ") if (at := text.find(mark, match.end())) >= 0]
    near = text[max(start, 0) : min(ends, default=len(text))]
    return near if _SPEED.search(near) or _MEMORY.search(near) else text


def _rated(text: str) -> list[_Read]:
    return [_Read(*_scaled(match["v"], match["u"]), "unknown") for match in _RATED.finditer(text) if match["v"] != "0"]


_WHOLE_SECONDS = frozenset({"s", "sec", "secs", "second", "seconds"})
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_BYTES = {"GB": 1024.0, "MB": 1.0}


def _scaled(number: str, unit: str) -> tuple[float, Unit]:
    """A number and its unit as records write them."""
    value, name = float(number.replace(",", "")), unit.lower()
    if "flop" in name:
        return _round(value * (1000 if name.startswith("p") else 1)), "TFLOPS"
    if name.endswith("b/s"):
        return _round(value * (1000 if name.startswith("t") else 1)), "GB/s"
    if name.startswith(("tok", "tps")):
        return value, "tok/s"
    if name.endswith("b"):
        return value, "GB" if name.startswith("g") else "MB"
    if name in ("ms", "ns"):
        return value, "ms" if name == "ms" else "ns"
    return value, "s" if name.startswith("s") else "us"


def _round(value: float) -> float:
    return float(f"{value:.4g}")


_RATIO_COLUMN = re.compile(r"speed[ -]?up|\bratio|\bgain|improve|faster|uplift|×|\bvs\b|boost", _I)
_CHANGE_COLUMN = re.compile(
    r"Δ|delta|diff|change|reduc|saving|impact|improve|speed|gain|latency|throughput|memory|\bvs\b", _I
)
_BEFORE = re.compile(r"\b(before|baseline|base|old|orig\w*|current|main|master|prev\w*|upstream|unfused|eager)\b", _I)
_AFTER = re.compile(r"\b(after|new|this pr|pr|ours|optimi[sz]ed|patched|tuned|fused|now)\b", _I)
_TABLE_UNIT = re.compile(rf"(?<![A-Za-z])({_RATE}|{_SIZE}|ms|us|µs|μs|ns)(?![A-Za-z/])", _I)
_CELL = re.compile(
    rf"^\W*?(?P<sign>[-+−–]?)(?:~|≈)?(?P<v>{_NUMBER})\s*(?P<u>x|×|%|{_RATE}|{_SIZE}|{_TIME})?(?![\w.])", _I
)


def _of_table(header: str, rows: Sequence[str], caption: str) -> Iterator[_Piece]:
    """The claims of a Markdown table: of its columns of ratios or changes, else of before and after, else of rates."""
    names = _cells(header)
    if _BUILD.search(f"{caption} {header}"):
        return
    left, around = _MOST_OF_A_TABLE, _Around(f"{caption}\n{header}")
    for row in rows:
        if left <= 0:
            return
        cells = _cells(row)
        if _BUILD.search(cells[0] if cells else "") or _OTHER.search(cells[0] if cells else ""):
            continue
        found = _of_row(names, cells, f"{caption} {cells[0] if cells else ''}")[:left]
        left -= len(found)
        yield _Piece(row.strip(), around, tuple(found))


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _of_row(names: Sequence[str], cells: Sequence[str], about: str) -> list[_Read]:
    found: list[_Read] = []
    for name, cell in zip(names, cells, strict=False):
        match = _CELL.match(cell)
        if not match or _OTHER.search(name):
            continue
        unit, context = (match["u"] or "").lower(), f"{about} {name}"
        if unit in ("x", "×") or (not unit and re.search(r"speed[ -]?up|\bratio\b", name, _I)):
            value = float(match["v"].replace(",", ""))
            about_speed = _RATIO_COLUMN.search(name) or _SPEED.search(context) or "." in match["v"]
            if about_speed and 0 < value < 1000:
                found.append(_ratio_of(value, context))
        elif unit == "%" and _CHANGE_COLUMN.search(name) and float(match["v"].replace(",", "")):
            found.append(_change_of(match, cell, context))
    if found:
        return found
    if (read := _before_after(names, cells, about)) is not None:
        return [read]
    return [read for name, cell in zip(names, cells, strict=False) if (read := _rate_of(name, cell)) is not None]


def _ratio_of(value: float, context: str) -> _Read:
    if _MEMORY.search(context) and not _SPEED.search(context):
        return _Read(value, "x", "less" if value >= 1 else "more")
    return _Read(value, "x", "faster" if value >= 1 else "slower")


def _change_of(match: re.Match[str], cell: str, context: str) -> _Read:
    value, sign = float(match["v"].replace(",", "")), match["sign"]
    down = sign in ("-", "−", "–") and bool(sign)
    if _MEMORY.search(context):
        return _Read(value, "%", "more" if sign == "+" or "more" in cell else "less")
    of_time = re.search(r"latenc|time|\b(ms|us)\b|duration|tpot|ttft", context, _I)
    if re.search(r"speed|faster|improv|throughput|gain|tflops", context, _I) or not of_time:
        slower = down or "slower" in cell.lower()
    else:
        slower = sign == "+" or "slower" in cell.lower()
    return _Read(value, "%", "slower" if slower else "faster")


def _before_after(names: Sequence[str], cells: Sequence[str], about: str) -> _Read | None:
    """The ratio of a column called before (baseline, old, ...) to one called after, where their unit is known."""
    before = next((at for at, name in enumerate(names) if _BEFORE.search(name)), None)
    after = next((at for at, name in enumerate(names) if _AFTER.search(name) and at != before), None)
    if before is None or after is None or max(before, after) >= len(cells):
        return None
    first, second = _CELL.match(cells[before]), _CELL.match(cells[after])
    if first is None or second is None:
        return None
    units = [
        first["u"],
        *_TABLE_UNIT.findall(names[before]),
        *_TABLE_UNIT.findall(names[after]),
        *_TABLE_UNIT.findall(about),
    ]
    unit = next((one for one in units if one), None)
    if unit is None or unit.lower() in ("x", "×", "%"):
        return None
    made_up = f"{first['v']}{first['u'] or unit} -> {second['v']}{second['u'] or first['u'] or unit}"
    match = _FROM_TO.search(made_up)
    return _from_to(match, made_up) if match else None


def _rate_of(name: str, cell: str) -> _Read | None:
    match = _CELL.match(cell)
    if match is None:
        return None
    unit = match["u"] or next(iter(_TABLE_UNIT.findall(name)), "")
    if not unit or not re.fullmatch(_RATE, unit, _I) or not float(match["v"].replace(",", "")):
        return None
    return _Read(*_scaled(match["v"], unit), "unknown")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1]}…"
