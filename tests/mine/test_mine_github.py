"""Enrichment over real HTTP on loopback: few requests, kept answers, limits, faults, and a token that shows nowhere."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import traceback
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smith.errors import EXIT_BAD_INPUT, BadInput, SmithError, Unavailable
from smith.mine.github import GitHub, RateLimited, Token, find_token, limits, read, urls
from smith.mine.github.address import checked, web_host
from smith.mine.github.closing import Reference, closed_by
from smith.mine.github.wire import LARGEST_BODY
from smith.records import enrichment as bounds
from smith.records.enrichment import Enrichment
from smith.records.pull_request import MergeForm
from tests.mine.github_forge import START, Clock, Forge, Reply, serving

CANARY = "ghp_Canary0123456789abcdefABCDEF4242"
TOKEN = Token.parse(CANARY, "a test")


@pytest.fixture
def forge() -> Iterator[Forge]:
    with serving(Forge()) as running:
        yield running


@pytest.fixture
def said() -> list[str]:
    return []


def github(forge: Forge, folder: Path, said: list[str] | None = None, **how: Any) -> GitHub:
    settings = {
        "token": TOKEN,
        "cache": folder / "github.db",
        "base_url": forge.url,
        "say": (said if said is not None else []).append,
        "sleep": forge.clock.sleep,
        "clock": forge.clock,
        "random": lambda: 0.5,
        "transport": httpx.HTTPTransport(),  # a proxy of this machine must not come between
    }
    return GitHub(forge.repo, **{**settings, **how})


def one(forge: Forge, folder: Path, number: int = 1, **how: Any) -> Enrichment:
    (found,) = github(forge, folder, **how).enrich([number])
    return found


# What is read


def test_everything_that_github_says_of_a_pull_request(forge: Forge, tmp_path: Path) -> None:
    forge.issue(3)
    forge.pull(
        7,
        title="Fix the <b>kernel</b>",
        body="Fixes #3 and closes other/repo#4.",
        auto_merge={"merge_method": "squash"},
        user={"login": "renovate[bot]", "type": "Bot"},
        draft=True,
    )
    forge.comment(7, line=None, original_line=12)
    forge.comment(7, user=None, path="pkg/mul.py", line=5, body="<script>no</script>")
    found = one(forge, tmp_path, 7)
    assert (found.title, found.author, found.bot, found.draft) == ("Fix the <b>kernel</b>", "renovate[bot]", True, True)
    assert (found.labels, found.base_ref, found.merged_at) == (("bug",), "main", forge.pulls[7]["merged_at"])
    assert (found.merge_commit_sha, found.merge_method) == (f"{7:040x}", MergeForm.SQUASH)
    here, there = found.issues
    assert (here.repo, here.number, here.where, here.known) == ("o/r", 3, "body", True)
    assert (here.title, here.body, here.labels) == ("Issue 3", "Broken 3", ("crash",))
    assert (there.repo, there.number, there.known, there.title) == ("other/repo", 4, False, "")
    assert [(c.path, c.line, c.author, c.body) for c in found.comments] == [
        ("pkg/add.py", 12, "bob", "Comment 1"),
        ("pkg/mul.py", 5, "", "<script>no</script>"),
    ]
    assert Enrichment.loads(found.dumps(), "x.json") == found


def test_an_unmerged_one_has_no_merge_commit(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1, merged_at=None, auto_merge={"merge_method": "merge"})
    found = one(forge, tmp_path)
    assert (found.merged_at, found.merge_commit_sha, found.merge_method) == (None, None, None)


def test_commit_messages_link_issues_too(forge: Forge, tmp_path: Path) -> None:
    forge.issue(2)
    forge.pull(5, body="Fixes #5 itself", title="resolves #6")
    (found,) = github(forge, tmp_path).enrich([5], {5: "Fixes: #2\n\ncloses #6"})
    assert [(i.number, i.where, i.known) for i in found.issues] == [(6, "title", False), (2, "commits", True)]


def test_all_text_is_bounded(forge: Forge, tmp_path: Path) -> None:
    long = "x\ud800" * 15_000
    forge.pull(1, title=long, body=long, labels=[{"name": long}] * 100)
    for number in range(80):
        forge.comment(1, body=long, user={"login": "lint[bot]"} if number < 40 else {"login": "bob"})
    found = one(forge, tmp_path)
    assert (len(found.title), len(found.body)) == (bounds.TITLE_CHARS, bounds.BODY_CHARS)
    assert "\ud800" not in found.body and found.body.endswith(" […]")
    assert (len(found.labels), len(found.comments)) == (bounds.MOST_LABELS, bounds.MOST_COMMENTS)
    assert found.comments_left_out == 30
    assert [c.bot for c in found.comments] == [True] * 10 + [False] * 40  # bots make room, the order stays
    assert len(found.dumps()) < 300_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["title", "body", "user", "labels", "draft", "base", "merged_at", "merge_commit_sha", "auto_merge", "path", "line"]
)


@given(st.dictionaries(KEYS, JSON), st.lists(st.dictionaries(KEYS, JSON), max_size=3))
def test_no_json_is_an_error(item: dict[str, Any], comments: list[dict[str, Any]]) -> None:
    issue = read.issue(Reference("o/r", 2), "body", item)
    found = read.pull_request("o/r", read.slim(item), 1, [issue], comments)
    assert Enrichment.loads(found.dumps(), "x.json") == found
    assert len(found.comments) == len(comments)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Fixes #1, resolves: #2 and CLOSED #3", [1, 2, 3]),
        ("fix #1, #2", [1]),  # as on GitHub: each needs its own keyword
        ("fixes GH-9", [9]),
        ("closes https://github.com/o/r/issues/4 and fixes https://evil.example/o/r/issues/5", [4]),
        ("fixes O/R#6", [6]),
        ("<!-- Fixes #1 --> `fixes #2`\n```\nfixes #3\n```\nfixes #4", [4]),
        ("fixes #5 <!-- fixes #6", [5]),
        ("prefixes #1, see #2, unfixed #3, fixes#4, fixes #5x, fixes #0, fixes #12345678901", []),
        ("", []),
    ],
)
def test_closing_keywords(text: str, numbers: list[int]) -> None:
    found = list(closed_by(text, repo="o/r", host="github.com"))
    assert [(one.repo, one.number) for one in found] == [("o/r", number) for number in numbers]


@given(st.text("<!->`fixes #1\n", max_size=400))
def test_hidden_text_closes_nothing(text: str) -> None:
    assert not list(closed_by(f"<!--{text.replace('-->', '')}\nfixes #7", repo="o/r", host="github.com"))


# How many requests


def test_many_come_from_lists(forge: Forge, tmp_path: Path, said: list[str]) -> None:
    for number in range(1, 251):
        forge.pull(number, body=f"fixes #{300 + number}" if number <= 120 else "")
        forge.issue(300 + number)
    for number in range(1, 251):
        forge.comment(number)
    found = list(github(forge, tmp_path, said).enrich(range(1, 251)))
    assert [one.number for one in found] == list(range(1, 251))
    assert [one.comments[0].body for one in found] == [f"Comment {n}" for n in range(1, 251)]
    assert [one.issues[0].title for one in found[:120]] == [f"Issue {300 + n}" for n in range(1, 121)]
    assert len(forge.asked("/pulls\\?")) == 3
    assert len(forge.asked("/pulls/comments\\?")) == 3
    assert len(forge.asked("/issues\\?")) == 4
    assert len(forge.asked()) == 10
    assert said[0].startswith("o/r: about 3 requests for 250 pull requests")
    assert "5,000 of 5,000 requests left until 2025-06-15 15:56:40 UTC" in said[0]
    assert said[-1] == "o/r: 11 requests made"  # one of them, for the limit itself, is free


def test_few_are_asked_for_by_themselves(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 1001):
        forge.pull(number)
    forge.comment(900)
    list(github(forge, tmp_path).enrich([900, 3]))
    # Number 3 says that it has no comment.
    assert sorted(forge.asked()) == [
        "/repos/o/r/pulls/3",
        "/repos/o/r/pulls/900",
        "/repos/o/r/pulls/900/comments?per_page=100",
    ]


def test_the_newest_come_from_the_end_of_the_list(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 1501):
        forge.pull(number)
    found = list(github(forge, tmp_path).enrich(range(1350, 1500)))
    assert len(found) == 150
    assert len(forge.asked("/pulls\\?")) == 2
    assert all("direction=desc" in path for path in forge.asked("/pulls\\?"))


def test_old_ones_come_from_the_beginning_whatever_was_thought(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 3001):
        forge.pull(number)
    found = list(github(forge, tmp_path).enrich(range(900, 1000)))
    assert len(found) == 100
    assert len(forge.asked("/pulls\\?")) + len(forge.asked("/pulls/\\d+$")) <= 11


@settings(max_examples=25)
@given(
    kinds=st.lists(st.sampled_from("pio-"), min_size=1, max_size=420),
    picks=st.sets(st.integers(1, 450), min_size=1, max_size=420),
)
def test_all_are_found_in_about_as_few_requests_as_can_be(kinds: list[str], picks: set[int]) -> None:
    """Pull requests, issues, pull requests still open, and numbers of nothing, in any mixture."""
    with tempfile.TemporaryDirectory() as folder, serving(Forge()) as forge:
        for number, kind in enumerate(kinds, 1):
            if kind in "po":
                forge.pull(number)
            elif kind == "i":
                forge.issue(number)
        # Open ones are not in the list, and found all the same.
        opened = {number for number, kind in enumerate(kinds, 1) if kind == "o"}
        whole = forge._paged
        forge._paged = lambda items, *rest: whole([i for i in items if i["number"] not in opened], *rest)  # type: ignore[method-assign]
        found = list(github(forge, Path(folder)).enrich(sorted(picks))) if picks & set(forge.pulls) else []
        assert [one.number for one in found] == sorted(picks & set(forge.pulls))
        listed = picks & (set(forge.pulls) - opened)
        pages = -(-(len(forge.pulls) - len(opened)) // 100) + len(picks - listed)
        if found:
            asked = len(forge.asked("/pulls\\?")) + len(forge.asked("/pulls/\\d+$"))
            assert asked <= min(len(picks) + 1, pages + 5)


# What is kept


def test_what_is_fresh_is_not_asked_for_again(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 151):
        forge.pull(number, body="fixes #200")
    forge.issue(200)
    first = list(github(forge, tmp_path).enrich(range(1, 151)))
    forge.log.clear()
    said: list[str] = []
    assert list(github(forge, tmp_path, said).enrich(range(1, 151))) == first
    assert not forge.log and not said  # not even the limit is asked for


def test_what_is_old_costs_nothing_while_it_is_unchanged(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 151):
        forge.pull(number)
    first = list(github(forge, tmp_path).enrich(range(1, 151)))
    forge.log.clear()
    forge.clock.now += 90_000
    before = forge.remaining
    assert list(github(forge, tmp_path).enrich(range(1, 151))) == first
    assert {one.status for one in forge.log if "/rate_limit" not in one.path} == {304}
    assert forge.remaining == before
    forge.pulls[120]["title"] = "Changed"
    forge.clock.now += 90_000
    assert list(github(forge, tmp_path).enrich(range(1, 151)))[119].title == "Changed"


def test_a_clock_that_was_set_back_makes_nothing_fresh(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1)
    one(forge, tmp_path)
    forge.log.clear()
    forge.clock.now -= 1000
    one(forge, tmp_path)
    assert [request.status for request in forge.log if "/rate_limit" not in request.path] == [304]


def test_a_full_last_page_that_is_unchanged_may_have_a_successor(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 101):
        forge.pull(number)
    list(github(forge, tmp_path).enrich(range(1, 101)))
    for number in range(101, 151):
        forge.pull(number)
    forge.clock.now += 90_000
    forge.log.clear()
    assert len(list(github(forge, tmp_path).enrich(range(1, 151)))) == 150
    assert not forge.asked("/pulls/\\d+$")
    assert [r.status for r in forge.log if "/pulls?" in r.path] == [304, 200]


def test_a_page_that_is_spoilt_is_asked_for_again(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1)
    first = one(forge, tmp_path)
    with sqlite3.connect(tmp_path / "github.db") as db:
        db.execute("UPDATE pages SET body = x'00'")
    assert one(forge, tmp_path) == first


def test_a_file_that_is_no_cache_is_refused(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "github.db").write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(BadInput, match="no cache of GitHub's answers"):
        one(forge, tmp_path)


def test_what_is_gone_is_left_out_with_a_word(forge: Forge, tmp_path: Path, said: list[str]) -> None:
    forge.pull(1, body="fixes #8, fixes #9")
    forge.always("/issues/9", Reply.json({"message": "This issue was deleted"}, 410))
    (found,) = github(forge, tmp_path, said).enrich([1, 2])
    assert "o/r: left out, for " in said[1] and said[1].endswith(": #2")
    assert [(issue.number, issue.known) for issue in found.issues] == [(8, False), (9, False)]
    forge.log.clear()
    assert len(list(github(forge, tmp_path).enrich([1, 2]))) == 1
    assert not forge.log
    forge.pull(2)
    forge.clock.now += 1000  # for minutes only: it may only have been hidden
    assert len(list(github(forge, tmp_path).enrich([1, 2]))) == 2


# Limits


def test_a_short_wait_for_the_limit_is_waited_out(forge: Forge, tmp_path: Path, said: list[str]) -> None:
    forge.pull(1)
    forge.once("/pulls/1", Reply.json({"message": "API rate limit exceeded"}, 403, x_ratelimit_remaining="0"))
    forge.reset_in = 30
    assert list(github(forge, tmp_path, said).enrich([1]))
    assert forge.clock.slept == [31]
    assert "rate limit; waiting 31 s" in " ".join(said)


def test_a_long_one_stops_with_one_line_and_goes_on_later(forge: Forge, tmp_path: Path, said: list[str]) -> None:
    for number in range(1, 451):
        forge.pull(number)
        forge.comment(number)
    forge.remaining, forge.reset_in = 3, 1800
    with pytest.raises(RateLimited) as caught:
        github(forge, tmp_path, said).enrich(range(1, 451))
    assert caught.value.exit_code == EXIT_BAD_INPUT
    assert caught.value.until == START + 1801
    assert "goes on at 2025-06-15 15:36:41 UTC; what was fetched is kept" in str(caught.value)
    assert "that will not do" in said[0]
    assert len(forge.asked()) == 3 and not forge.clock.slept  # it stops before it is refused
    forge.clock.now, forge.remaining = caught.value.until, 5000
    assert len(list(github(forge, tmp_path).enrich(range(1, 451)))) == 450
    assert len(forge.asked("/pulls\\?")) == 5 == len(set(forge.asked("/pulls\\?")))
    assert len(forge.asked()) == 10


def test_a_clock_that_differs_from_the_servers_does_not_matter(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1)
    forge.remaining, forge.reset_in = 0, 20
    ours = Clock(START - 5000)

    def sleep(seconds: float) -> None:
        ours.sleep(seconds)
        forge.remaining = 10

    assert one(forge, tmp_path, clock=ours, sleep=sleep)
    assert ours.slept == [21]


SECONDARY = Reply.json({"message": "You have exceeded a secondary rate limit."}, 403)
ABUSE = Reply.json({"message": "You have triggered an abuse detection mechanism."}, 403)


@pytest.mark.parametrize(
    ("replies", "slept"),
    [
        ([Reply.json({}, 429, retry_after="7")], [7]),
        ([Reply.json({}, 403, retry_after="7"), Reply.json({}, 429, retry_after="0")], [7, 1]),
        ([Reply.json({}, 403, retry_after="Sun, 15 Jun 2025 15:07:00 GMT")], [20]),
        ([SECONDARY], [60]),
        ([ABUSE], [60]),
        ([Reply.json({}, 429)], [60]),
    ],
)
def test_secondary_limits_are_waited_out(
    forge: Forge, tmp_path: Path, replies: list[Reply], slept: list[float]
) -> None:
    forge.pull(1)
    forge.once("/pulls/1", *replies)
    assert one(forge, tmp_path)
    assert forge.clock.slept == slept


def test_secondary_limits_double_and_end(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1)
    forge.always("/pulls/1", SECONDARY)
    with pytest.raises(RateLimited, match="rate limit"):
        one(forge, tmp_path, wait_s=200.0)
    assert forge.clock.slept == [60, 120]
    assert len(forge.asked()) == 3


def test_the_bound_is_for_all_waits_of_one_request(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1)
    forge.always("/pulls/1", Reply.json({}, 429, retry_after="40"))
    with pytest.raises(RateLimited):
        one(forge, tmp_path, wait_s=100.0)
    assert forge.clock.slept == [40, 40]


def test_without_a_token_the_limit_is_told(forge: Forge, tmp_path: Path, said: list[str]) -> None:
    forge.pull(1)
    forge.limit = forge.remaining = 60
    list(github(forge, tmp_path, said, token=None).enrich([1]))
    assert "60 of 60 requests left until" in said[0] and "without a token" in said[0]
    assert not any("authorization" in request.headers for request in forge.log)
    forge.remaining = 0
    with pytest.raises(RateLimited, match="with a token"):
        one(forge, tmp_path, 2, token=None)


def test_a_server_without_limits(forge: Forge, tmp_path: Path, said: list[str]) -> None:
    forge.pull(1)
    forge.always("/rate_limit", Reply.json({"message": "Rate limiting is not enabled."}, 404, x_ratelimit_limit=""))
    assert list(github(forge, tmp_path, said).enrich([1]))
    assert "tells no limit" in said[0]


@given(st.integers(400, 450), st.dictionaries(st.sampled_from(["retry-after", "x-ratelimit-reset", "date"]), st.text()))
def test_no_header_is_an_error(status: int, headers: Mapping[str, str]) -> None:
    wait = limits.pause(status, {**headers, "x-ratelimit-limit": "1", "x-ratelimit-remaining": "0"}, "", START, 3)
    assert wait is None if status not in (403, 429) else wait is None or wait >= 1


# Faults


BOMB = gzip.compress(b" " * (LARGEST_BODY + 1), 1, mtime=0)
GOOD = json.dumps({"number": 1, "title": "Title 1"}).encode()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(500),
        Reply(502, b"<html>Bad gateway</html>"),
        Reply(503, b"", {"retry-after": "1"}),
        Reply(200, GOOD[:-9]),
        Reply(200, GOOD, lacking=50),
        Reply(200, b""),
        Reply(200, b"[1, 2]"),
        Reply(200, b"{}"),
        Reply(200, b'"' * 50),
        Reply(200, b"[" * 100_000),
        Reply(200, b"\xff\xfe"),
        Reply(200, GOOD, {"content-encoding": "gzip"}),
        Reply(200, BOMB, {"content-encoding": "gzip"}),
        Reply(200, drip=True),
        Reply(304),
        Reply(hang_up=True),
    ],
    ids=lambda reply: f"{reply.status}-{reply.body[:12]!r}-{reply.lacking}{reply.drip}{reply.hang_up}",
)
def test_a_passing_fault_is_tried_again_and_a_lasting_one_is_told(forge: Forge, tmp_path: Path, reply: Reply) -> None:
    forge.pull(1)
    forge.pull(2)
    forge.once("/pulls/1", reply, reply)
    how = {"timeout_s": 0.3} if reply.drip else {}
    assert one(forge, tmp_path, **how).title == "Title 1"
    assert forge.clock.slept == [1, 2]
    forge.clock.slept.clear()
    forge.always("/pulls/2", reply)
    with pytest.raises(Unavailable, match="what was fetched is kept") as caught:
        one(forge, tmp_path, 2, **how)
    assert "\n" not in str(caught.value)
    assert forge.clock.slept == [1, 2, 4]
    with sqlite3.connect(tmp_path / "github.db") as db:
        assert not db.execute("SELECT * FROM pages WHERE url LIKE '%/pulls/2'").fetchall()


def test_nobody_answers(forge: Forge, tmp_path: Path) -> None:
    with serving(Forge()) as other:
        gone = other.url
    with pytest.raises(Unavailable, match="no answer"):
        one(forge, tmp_path, base_url=gone)


def test_the_server_says_when_to_come_back(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1)
    forge.once("/pulls/1", Reply(503, b"", {"retry-after": "40"}), Reply(503, b"", {"retry-after": "4000"}))
    assert one(forge, tmp_path)
    assert forge.clock.slept == [40, 2]


def test_a_list_that_repeats_itself_ends(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 301):
        forge.pull(number)
        forge.comment(number)
    first = [forge.pulls[number] for number in range(1, 101)]

    def loop(path: str, _: Mapping[str, str]) -> Reply | None:
        if not re.search(r"/pulls(/comments)?\?", path):
            return None
        page = int((re.findall(r"[?&]page=(\d+)", path) or ["1"])[0])
        data = forge.comments[:100] if "/comments" in path else first
        tail = "pulls/comments" if "/comments" in path else "pulls"
        link = f'<{forge.url}/repositories/1/{tail}?page={page + 1}>; rel="next"'
        link += f', <{forge.url}/x?page=4>; rel="last"'
        return Reply.json(data, link=link)

    forge.rules.append(loop)
    found = list(github(forge, tmp_path).enrich(range(1, 111)))
    assert [(e.number, len(e.comments)) for e in found] == [(n, 1) for n in range(1, 111)]
    assert len(forge.asked("/pulls\\?")) <= 3 and len(forge.asked("/pulls/comments\\?")) <= 3


def test_what_slips_between_pages_is_asked_for_by_itself(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 301):
        forge.pull(number)

    def reopen(path: str, _: Mapping[str, str]) -> None:
        if "page=2" in path:
            forge.pulls.pop(1, None)  # number 101 is on the first page now, which has been read

    forge.rules.append(reopen)
    found = list(github(forge, tmp_path).enrich(range(2, 301)))
    assert [e.number for e in found] == list(range(2, 301))
    assert forge.asked("/pulls/\\d+$") == ["/repos/o/r/pulls/101"]


def test_pages_that_are_refused_are_not_needed(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 31):
        forge.pull(number)
    words = "Pagination with the page parameter is not supported for large datasets"
    forge.always("/pulls(/comments)?\\?", Reply.json({"message": words}, 422))
    assert len(list(github(forge, tmp_path).enrich(range(1, 31)))) == 30


# Who answers


def test_a_renamed_repository_is_followed_at_one_request(forge: Forge, tmp_path: Path, said: list[str]) -> None:
    for number in (1, 2, 3):
        forge.pull(number, body="fixes #9")
    forge.issue(9)

    def moved(path: str, _: Mapping[str, str]) -> Reply | None:
        if not path.startswith("/repos/"):
            return None
        place = path.replace("/repos/o/r", "/repositories/1")
        return Reply.json({"message": "Moved Permanently"}, 301, location=f"{forge.url}{place}")

    forge.rules.append(moved)
    found = list(github(forge, tmp_path, said).enrich([1, 2, 3]))
    assert [(e.repo, e.number, e.issues[0].known) for e in found] == [("o/r", n, True) for n in (1, 2, 3)]
    assert len([r for r in forge.log if r.status == 301]) == 1
    assert said.count("o/r has moved; following") == 1
    forge.log.clear()
    list(github(forge, tmp_path).enrich([1, 2, 3]))
    assert not forge.log


def test_a_transferred_issue_is_followed_by_itself(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1, body="fixes #5, fixes #6")
    forge.issue(6)
    place = f"{forge.url}/repositories/2/issues/5"
    forge.always("/repos/o/r/issues/5", Reply.json({"message": "Moved Permanently"}, 301, location=place))
    forge.always("/repositories/2/issues/5", Reply.json({"number": 5, "title": "Elsewhere"}))
    assert [issue.title for issue in one(forge, tmp_path).issues] == ["Elsewhere", "Issue 6"]


def test_redirects_in_circles_end(forge: Forge, tmp_path: Path) -> None:
    forge.always("/pulls/1", Reply(302, b"", {"location": "/repos/o/r/pulls/1"}))
    with pytest.raises(Unavailable, match="in circles"):
        one(forge, tmp_path)


@pytest.mark.parametrize("how", ["redirect", "link"])
def test_no_other_host_is_asked(forge: Forge, tmp_path: Path, how: str) -> None:
    with serving(Forge()) as other:
        elsewhere = f"{other.url}/repos/o/r/pulls?page=2"
        if how == "redirect":
            forge.always("/pulls", Reply.json({}, 301, location=elsewhere))
        else:
            forge.always("/pulls\\?", Reply.json([{"number": 1}], link=f'<{elsewhere}>; rel="next"'))
        with pytest.raises(Unavailable, match="another host"):
            list(github(forge, tmp_path).enrich(range(1, 20)))
        assert not other.log


def test_a_bad_token_is_one_line(forge: Forge, tmp_path: Path) -> None:
    forge.always("", Reply.json({"message": "Bad credentials"}, 401))
    with pytest.raises(BadInput, match="does not accept the token of a test") as caught:
        one(forge, tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="without a token"):
        one(forge, tmp_path, token=None)
    assert len(forge.log) == 2 and not forge.clock.slept


def test_single_sign_on_is_told(forge: Forge, tmp_path: Path) -> None:
    forge.always("/pulls", Reply.json({"message": "no"}, 403, x_github_sso="required; url=https://github.com/x"))
    with pytest.raises(BadInput, match="single sign-on"):
        one(forge, tmp_path)


def test_other_refusals_are_told_in_githubs_words(forge: Forge, tmp_path: Path) -> None:
    forge.always("/pulls", Reply.json({"message": "Resource not\naccessible"}, 403))
    with pytest.raises(BadInput, match="status 403: Resource not accessible"):
        one(forge, tmp_path)


@pytest.mark.parametrize("count", [1, 50])
def test_a_repository_that_is_not_there(forge: Forge, tmp_path: Path, count: int) -> None:
    with pytest.raises(BadInput, match="has no repository o/nothing"):
        client = GitHub(
            "o/nothing",
            token=None,
            cache=tmp_path / "github.db",
            base_url=forge.url,
            say=lambda _: None,
            clock=forge.clock,
            transport=httpx.HTTPTransport(),
        )
        client.enrich(range(1, count + 1))
    forge.repo = "o/nothing"
    for number in range(1, count + 1):
        forge.pull(number)
    forge.clock.now += 1000
    assert len(list(github(forge, tmp_path).enrich(range(1, count + 1)))) == count


def test_an_enterprise_server_below_a_path(tmp_path: Path) -> None:
    with serving(Forge(prefix="/api/v3")) as forge:
        for number in range(1, 151):
            forge.pull(number)
        assert len(list(github(forge, tmp_path, base_url=f"{forge.url}/").enrich(range(1, 151)))) == 150
        assert all(path.startswith("/api/v3/repo") for path in forge.asked())


def test_addresses() -> None:
    assert checked("https://ghe.example/api/v3/", secret=True) == "https://ghe.example/api/v3"
    assert [web_host(u) for u in ("https://api.github.com", "https://g.example/api/v3", "https://api.x.ghe.com")] == [
        "github.com",
        "g.example",
        "x.ghe.com",
    ]
    with pytest.raises(BadInput, match="in the clear"):
        checked("http://ghe.example/api/v3", secret=True)
    assert checked("http://ghe.example/api/v3", secret=False)
    for bad in ("api.github.com", "ftp://x", "https://user:pw@x", "https://x?y", "https://[", "https://x:y", ""):
        with pytest.raises(BadInput) as caught:
            checked(bad, secret=False)
        assert "pw" not in str(caught.value)


@given(st.text(), st.text())
def test_no_url_is_an_error(url: str, header: str) -> None:
    urls.origin(url)
    following, last = urls.links("https://h/x?page=1", f"<{url}>; rel=next, {header}")
    assert following is None or isinstance(following, str)
    assert last is None or last >= 0


@pytest.mark.parametrize("repo", ["owner", "a/b/c", "a/..", "../b", "a/b?x", "https://github.com/a/b", "a/b\n", ""])
def test_what_is_no_repository(tmp_path: Path, repo: str) -> None:
    with pytest.raises(BadInput, match="owner/name"):
        GitHub(repo, token=None, cache=tmp_path / "github.db", say=lambda _: None)


# The token


def gh(folder: Path, script: str) -> dict[str, str]:
    """An environment with a ``gh`` of our own."""
    folder.mkdir()
    (folder / "gh").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "gh").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_where_the_token_comes_from(tmp_path: Path) -> None:
    path = gh(tmp_path / "bin", 'echo "$*" >"$0.asked"; echo from-gh')
    both = {**path, "GITHUB_TOKEN": " first\n", "GH_TOKEN": "second"}

    def found(given: str | None, environ: Mapping[str, str], **how: str) -> tuple[str, str] | None:
        token = find_token(given, environ=environ, **how)
        return None if token is None else (token.secret.get_secret_value(), token.source)

    assert found("given", both) == ("given", "the command line")
    assert found(None, both) == ("first", "GITHUB_TOKEN")
    assert found(None, {**both, "GITHUB_TOKEN": ""}) == ("second", "GH_TOKEN")
    assert found(None, path) == ("from-gh", "gh auth token")
    assert (tmp_path / "bin" / "gh.asked").read_text() == "auth token --hostname github.com\n"
    found(None, path, base_url="https://ghe.example/api/v3")
    assert (tmp_path / "bin" / "gh.asked").read_text() == "auth token --hostname ghe.example\n"
    assert found(None, {"PATH": str(tmp_path)}) is None
    assert found(None, gh(tmp_path / "out", "echo nobody is logged in >&2; exit 1")) is None


@pytest.mark.parametrize("text", ["", "two words", "line\nbreak", "höher", "nul\0"])
def test_what_cannot_be_a_token(text: str) -> None:
    with pytest.raises(BadInput, match="the token of GH_TOKEN") as caught:
        Token.parse(text, "GH_TOKEN")
    assert not text or text not in str(caught.value)


CHILD = """
import json, logging, os, sys
from pathlib import Path
import httpx
from smith.mine.github import GitHub, find_token
logging.basicConfig(level=logging.DEBUG)
url, cache, first, last, at = sys.argv[1:]
transport = None if "ALL_PROXY" in os.environ else httpx.HTTPTransport()
token = find_token()
client = GitHub("o/r", token=token, cache=Path(cache), base_url=url, say=print, sleep=lambda s: None,
                clock=lambda: float(at), transport=transport)
print(repr(token), str(token), repr(vars(client)))
for found in client.enrich(range(int(first), int(last) + 1)):
    print(found.dumps().decode())
print("done")
"""


def child(forge: Forge, folder: Path, first: int, last: int, **environ: str) -> subprocess.Popen[bytes]:
    """A process of its own that enriches the numbers from ``first`` to ``last``."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, forge.url, str(folder / "github.db"), str(first), str(last), str(START)],
        env={**os.environ, "GITHUB_TOKEN": CANARY, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def whole(folder: Path) -> bytes:
    """All that lies in ``folder``, with what the cache has packed."""
    files = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    with sqlite3.connect(folder / "github.db") as db:
        rows = db.execute("SELECT * FROM pages").fetchall()
    cells = [zlib.decompress(v) if isinstance(v, bytes) else str(v).encode() for row in rows for v in row]
    return b"\n".join([*files, *cells])


def test_the_token_shows_nowhere(forge: Forge, tmp_path: Path) -> None:
    """Not even where the server quotes all that it was sent."""
    forge.pull(1, body="fixes #2")
    forge.issue(2)

    def parrot(path: str, headers: Mapping[str, str]) -> Reply | None:
        sent = headers.get("authorization", "")
        if path.endswith("/pulls/1"):
            return Reply.json({**forge.pulls[1], "title": sent}, etag=f'"{sent}"', last_modified=sent)
        if path.endswith("/issues/2"):
            link = f'<{forge.url}/x?access={sent[-20:]}>; rel="last", <{forge.url}/{sent.split()[-1]}>; rel="next"'
            return Reply.json({"number": 2, "title": "t", "body": f"{sent} {sent}"}, link=link)
        if path.endswith("/pulls/3"):
            return Reply.json({"message": f"go away, {sent}"}, 403)
        if path.endswith("/pulls/4"):
            return Reply(302, b"", {"location": f"http://{sent.split()[-1]}.example/"})
        if path.endswith("/pulls/5"):
            return Reply(200, b"{}", {"content-encoding": sent, sent.split()[-1]: "x\x01"})
        return None

    forge.rules.append(parrot)
    output = b""
    for number in (1, 3, 4, 5):
        output += child(forge, tmp_path, number, number).communicate(timeout=120)[0]
    assert [r.headers["authorization"] for r in forge.log if r.path.endswith("/pulls/1")] == [f"Bearer {CANARY}"]
    assert b"done" in output and b'"title": "Bearer ***"' in output
    assert b"go away, Bearer ***" in output and b"another host" in output
    assert b"DEBUG:httpcore" in output
    kept = whole(tmp_path)
    assert b"/repos/o/r/issues/2" in kept
    assert CANARY.encode() not in kept
    # The library's own debug log quotes what servers send, which is not ours to change; nothing of smith's does.
    ours = b"\n".join(line for line in output.splitlines() if not line.startswith(b"DEBUG:httpcore"))
    assert CANARY.encode() not in ours
    assert CANARY.lower().encode() not in ours.lower()


def test_no_error_holds_the_token(forge: Forge, tmp_path: Path) -> None:
    forge.pull(1)
    replies = [
        Reply.json({"message": f"bad {CANARY}"}, 401),
        Reply.json({"message": f"rate limit of {CANARY}"}, 403, retry_after="9999"),
        Reply.json({"message": CANARY}, 418),
        Reply(500, CANARY.encode()),
        Reply(301, b"", {"location": f"http://{CANARY}/"}),
        Reply(200, f"not json {CANARY}".encode()),
        Reply(200, b"{}", {"content-encoding": "gzip", "x": CANARY}),
        Reply(200, b"{}", {f"no header {CANARY}": "x"}),
        Reply(200, b"{}", {"transfer-encoding": CANARY}),
    ]
    for reply in replies:
        forge.rules.clear()
        forge.always("/pulls/1", reply)
        with pytest.raises(SmithError) as caught:
            one(forge, tmp_path)
        assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_proxy_settings_that_cannot_be_used_are_told_without_their_password(forge: Forge, tmp_path: Path) -> None:
    output = child(forge, tmp_path, 1, 1, ALL_PROXY="nothing://user:hidden@h:1").communicate(timeout=120)[0].decode()
    assert "Unavailable: the proxy or certificate settings of this machine cannot be used" in output
    assert "hidden" not in output


# Kills and company


def test_a_killed_process_leaves_what_it_has_and_the_next_goes_on(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 501):
        forge.pull(number)
        forge.comment(number)
    reached = threading.Event()
    killed = threading.Event()

    def hold(path: str, _: Mapping[str, str]) -> None:
        if len(forge.log) == 5 and not killed.is_set():
            reached.set()
            killed.wait(60)

    forge.rules.append(hold)
    first = child(forge, tmp_path, 1, 500)
    assert reached.wait(60)
    first.kill()
    first.communicate(timeout=60)
    killed.set()
    before = list(dict.fromkeys(forge.asked()))
    forge.rules.clear()
    with forge.lock:
        forge.log.clear()
    found = list(github(forge, tmp_path).enrich(range(1, 501)))
    assert [(e.number, e.comments[0].body) for e in found] == [(n, f"Comment {n}") for n in range(1, 501)]
    # Ten pages in all: four were there, the fifth was on its way.
    assert len(forge.asked()) == 6
    assert set(forge.asked()) & set(before) <= {before[-1]}


def test_several_processes_share_one_cache(forge: Forge, tmp_path: Path) -> None:
    for number in range(1, 301):
        forge.pull(number)
    running = [child(forge, tmp_path, 1 + 50 * index, 250 + 10 * index) for index in range(4)]
    outputs = [process.communicate(timeout=200)[0].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0], outputs
    assert [len(re.findall(r'^  "number": \d+', text, re.MULTILINE)) for text in outputs] == [250, 210, 170, 130]
    forge.log.clear()
    assert len(list(github(forge, tmp_path).enrich(range(1, 281)))) == 280
    assert not forge.log
