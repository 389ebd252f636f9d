"""The parts of the agent ``tools``: what is done in the sandbox, the conversation, and the watch over it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.evaluate.agents.conversation import Conversation, Watchdog, arguments_of
from smith.evaluate.agents.toolbox import TOOLS, fault_of
from smith.inside.act import act


def do(tool: str, scratch: Path, most: int = 2000, **given: Any) -> str:
    return act({"tool": tool, "given": given, "most": most, "scratch": str(scratch)})


def test_a_long_output_keeps_head_and_tail_and_the_whole_in_a_file(tmp_path: Path) -> None:
    text = do("bash", tmp_path, command="seq 20000; echo the end >&2; exit 3", timeout_s=20)
    assert text.startswith("1\n2\n3\n")
    assert "the end" in text
    assert "[exit status 3, " in text
    path = Path(text.partition("all of it is in ")[2].partition(" ")[0])
    assert path.read_text().splitlines()[-2:] == ["20000", "the end"]
    assert len(text) < 2300
    assert do("bash", tmp_path, command="echo short; cat", timeout_s=20).startswith("short\n[exit status 0")
    assert list((tmp_path / "outputs").iterdir()) == [path]


def test_time_and_left_children_end(tmp_path: Path) -> None:
    text = do("bash", tmp_path, command="echo before; sleep 60 & sleep 60", timeout_s=1)
    assert text == "before\n[timed out after 1 s and was killed]"


def test_files_are_read_in_parts_written_and_edited(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.py"
    assert do("write", tmp_path, path=str(path), content="one\ntwo\nthree\n") == f"wrote 14 bytes to {path}"
    assert do("read", tmp_path, path=str(path), first=2, last=2) == "     2  two\n[lines 2 to 2 of 3]"
    assert do("read", tmp_path, path=str(tmp_path / "new")) == "a.py"
    assert do("edit", tmp_path, path=str(path), old="two", new="2").startswith("replaced 1 occurrence in")
    assert path.read_text() == "one\n2\nthree\n"
    for edits, words in (
        ({"old": "zwei", "new": ""}, "not in the file"),
        ({"old": "e", "new": ""}, "occurs 3 times"),
        ({"old": "", "new": "x"}, "not in the file"),
    ):
        assert words in do("edit", tmp_path, path=str(path), **edits)
    assert do("edit", tmp_path, path=str(path), old="e", new="E", all=True).startswith("replaced 3")
    assert "No such file" in do("read", tmp_path, path="/no/where")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert do("edit", tmp_path, path=str(tmp_path / "binary"), old="a", new="b").startswith("error: ")
    lines = do("read", tmp_path, most=50, path=str(path))
    assert lines.endswith("[lines 1 to 3 of 3]") or "thrEE" in lines


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@given(st.dictionaries(st.text(), JSON) | st.just({}), st.text() | JSON)
def test_a_malformed_call_is_words_and_never_an_exception(call: dict[str, Any], arguments: Any) -> None:
    for one in (call, {"function": {"name": "bash", "arguments": arguments}}):
        name, given, fault = arguments_of(one)
        assert (given is None) == bool(fault)
        if given is not None:
            fault_of(name, given)


@pytest.mark.parametrize("tool", [tool["function"]["name"] for tool in TOOLS])
def test_a_call_is_checked_against_what_the_model_was_told(tool: str) -> None:
    parameters = next(t["function"]["parameters"] for t in TOOLS if t["function"]["name"] == tool)
    examples = {"string": "x", "integer": 3, "number": 2.5, "boolean": True}
    whole = {key: examples[value["type"]] for key, value in parameters["properties"].items()}
    assert fault_of(tool, whole) == ""
    assert "knows no" in fault_of(tool, {**whole, "extra": 1})
    for key in parameters["required"]:
        assert key in fault_of(tool, {k: v for k, v in whole.items() if k != key})
        assert key in fault_of(tool, {**whole, key: [1]})


def turn(size: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c", "content": "x" * size}


@given(st.lists(st.integers(0, 9000), max_size=25), st.integers(2000, 20000))
def test_compacting_keeps_the_newest_outputs_and_never_the_prompt_out(sizes: list[int], room: int) -> None:
    talk = Conversation(room)
    talk.add({"role": "user", "content": "the task"})
    for size in sizes:
        talk.add(turn(size))
        talk.compact()
    kept = [t["content"] for t in talk.turns if t["role"] == "tool"]
    assert talk.turns[0]["content"] == "the task"
    assert [len(text) for text in kept[-6:]] == sizes[-6:]
    assert len(kept) == len(sizes)
    if talk.size > room * 0.85:
        assert all(len(text) <= 400 for text in kept[:-6])
    assert talk.size >= sum(len(text) for text in kept) // 3


def test_the_endpoints_count_is_believed() -> None:
    talk = Conversation(1000)
    talk.add({"role": "user", "content": "x" * 300})
    assert talk.size > 100
    talk.counted(40)
    assert talk.size == 40
    talk.add({"role": "assistant", "content": None, "refusal": None, "reasoning_content": "r"})
    assert talk.turns[-1] == {"role": "assistant", "reasoning_content": "r"}
    assert talk.size > 40


def test_the_watchdog_lets_work_pass() -> None:
    dog = Watchdog()
    assert [dog.saw(f"read {n}", "lines") for n in range(60)] == [""] * 60
    dog = Watchdog()
    assert [dog.saw("make", f"error {n}") for n in range(60)] == [""] * 60
    dog = Watchdog()
    assert [dog.saw("ls", "a") for _ in range(6)] == ["", "", "warn", "", "", "stuck"]
    dog = Watchdog()
    turns = [dog.saw(f"cat {n % 2}", "a") for n in range(18)]
    assert turns[-1] == "stuck"
    assert "stuck" not in turns[:-1]
    assert json.dumps(turns)
