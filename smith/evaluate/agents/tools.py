"""smith's own agent: a loop of tool calls over any endpoint that speaks chat completions."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx

from smith import __version__
from smith.errors import PatchError
from smith.evaluate.agents.base import Desk, Ending, Workspace
from smith.evaluate.agents.conversation import Conversation, Watchdog, arguments_of, calls_of
from smith.evaluate.agents.settings import Settings
from smith.evaluate.agents.start import begin_history, build_words, rendered
from smith.evaluate.agents.toolbox import TOOLS, Toolbox, fault_of
from smith.evaluate.agents.trajectory import Trajectory
from smith.gateway.dialects import CHAT
from smith.git.folder import snapshot
from smith.git.patches import diff
from smith.grade.grader import checked_tree
from smith.grade.trial import Bench
from smith.models.usage import chat_usage
from smith.records.attempt import Ended
from smith.sandbox.base import Limits

NUDGES, CUT_OFF = 3, 3
"""Replies in a row without a tool call, or cut off at the cap, after which it is over."""
ON_SUBMIT = 3
"""Times that a submission without its deliverables is refused."""


class Tools:
    """``bash``, ``read``, ``write``, ``edit``, ``submit``."""

    name = "tools"
    dialect = CHAT

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def describe(self) -> dict[str, str]:
        """Version, settings, and the digest of what the model is told of its tools."""
        tools = hashlib.sha256(json.dumps(TOOLS, sort_keys=True).encode()).hexdigest()
        return {
            "version": __version__,
            "steps": str(self.settings.steps),
            "context_tokens": str(self.settings.context_tokens),
            "tools_sha256": tools,
            "sampling": json.dumps(self.settings.sampling, sort_keys=True),
        }

    def run(self, workspace: Workspace) -> Ending:
        """Work until the model submits, or something ends it."""
        desk = workspace.desk
        assert desk is not None
        begin_history(desk)
        return _Work(self.settings, workspace, desk).run()


class _Work:
    """One attempt."""

    def __init__(self, settings: Settings, workspace: Workspace, desk: Desk) -> None:
        self.settings, self.workspace, self.desk = settings, workspace, desk
        self.session = desk.gateway.session
        self.deadline = time.monotonic() + desk.timeout_s
        self.toolbox = Toolbox(desk.stage, Limits(wall_s=desk.timeout_s))
        self.talk = Conversation(settings.context_tokens)
        self.dog = Watchdog()
        self.cut = self.refused = 0
        agent = {"name": "tools", "version": __version__, "model_name": self.session.model}
        session = f"{workspace.bundle.id}/{desk.evidence.name}"
        self.trajectory = Trajectory(desk.evidence, session, agent, self.session.redactor.data)

    def run(self) -> Ending:
        try:
            with httpx.Client(
                transport=httpx.HTTPTransport(uds=self.desk.gateway.address),
                base_url="http://gateway",
                headers={"authorization": f"Bearer {self.session.token.secret.get_secret_value()}"},
                timeout=httpx.Timeout(None, connect=30),
            ) as http:
                ending = self._loop(http)
        except httpx.HTTPError as error:
            ending = Ending(Ended.PROVIDER_ERROR, f"the gateway broke off: {type(error).__name__}")
        finally:
            totals = self.session.count()
            final = {
                "total_prompt_tokens": totals.usage.input_tokens,
                "total_completion_tokens": totals.usage.output_tokens,
                "total_cached_tokens": totals.usage.cached_tokens,
            }
            self.trajectory.close(final, {"compacted_outputs": self.talk.compacted})
        return ending

    def _loop(self, http: httpx.Client) -> Ending:
        self._open()
        for _ in range(self.settings.steps):
            if time.monotonic() > self.deadline:
                return Ending(Ended.OUT_OF_TIME, f"{self.desk.timeout_s:g} s are over")
            left_out = self.talk.compact()
            if left_out:
                self.trajectory.step("system", f"[{left_out} old outputs left out of the conversation]")
            if self.talk.full:
                return Ending(
                    Ended.STOPPED, f"the conversation does not fit into {self.settings.context_tokens} tokens"
                )
            answer = self._ask(http)
            if isinstance(answer, Ending):
                return answer
            ending = self._take(answer)
            if ending is not None:
                return ending
        return Ending(Ended.STOPPED, f"{self.settings.steps} replies were not enough")

    def _open(self) -> None:
        stage, override = self.desk.stage, self.workspace.store.layout.prompts
        system = rendered(
            "tools-agent-system.md.j2",
            override,
            steps=self.settings.steps,
            minutes=int(self.desk.timeout_s // 60),
            device=_device_words(stage.kind),
        )
        task = rendered(
            "tools-agent-task.md.j2",
            override,
            instruction=self.workspace.instruction,
            source=stage.source,
            build=build_words(self.desk),
            scratch=stage.tmp,
        )
        for role, text in (("system", system), ("user", task)):
            self.talk.add({"role": role, "content": text})
            self.trajectory.step(role, text)

    def _ask(self, http: httpx.Client) -> dict[str, Any] | Ending:
        body = {
            "model": self.session.model,
            "messages": self.talk.turns,
            "tools": TOOLS,
            "max_tokens": min(self.session.most_output, max(1024, self.settings.context_tokens // 3)),
            **self.settings.sampling,
        }
        answer = http.post(CHAT.served, json=body)
        if answer.status_code == 200:
            try:
                data = answer.json()
                if isinstance(data["choices"][0]["message"], dict):
                    return dict(data)
            except (ValueError, KeyError, IndexError, TypeError):
                pass
            return Ending(Ended.PROVIDER_ERROR, "an answer that is no chat completion")
        said = answer.text[:300]
        if self.session.why == "budget":
            return Ending(Ended.OUT_OF_BUDGET, self.session.detail)
        if answer.status_code == 400:
            return Ending(Ended.STOPPED, f"the endpoint refused the conversation: {said}")
        return Ending(Ended.PROVIDER_ERROR, self.session.detail or said)

    def _take(self, data: Mapping[str, Any]) -> Ending | None:
        """Take in a reply and do what it asks for; an ending where it is the last."""
        choice = data["choices"][0]
        message = choice["message"]
        usage = chat_usage(data.get("usage"))
        # The next prompt is at most this one and the reply: endpoints drop reasoning, but never add to it.
        self.talk.add({**message, "role": "assistant"})
        if usage is not None:
            self.talk.counted(usage.input_tokens + usage.output_tokens)
        calls = calls_of(message)
        cap = min(self.session.most_output, max(1024, self.settings.context_tokens // 3))
        cut = choice.get("finish_reason") == "length" or (usage is not None and usage.output_tokens >= cap)
        results: list[dict[str, Any]] = []
        ending: Ending | None = None
        for call in calls:
            result, over = self._do(call, cut)
            ending = ending or over
            results.append({"source_call_id": str(call.get("id", "")), "content": result})
            self.talk.add({"role": "tool", "tool_call_id": call.get("id"), "content": result})
        self._write(message, calls, results, usage, choice.get("finish_reason"))
        if ending is not None:
            return ending
        return self._without_calls(cut) if not calls else self._after_calls(cut)

    def _do(self, call: Mapping[str, Any], cut: bool) -> tuple[str, Ending | None]:
        """What came of one call, and the ending where it is the last."""
        name, given, fault = arguments_of(call)
        fault = fault or fault_of(name, given or {})
        if fault:
            hint = " (your reply was cut off at its cap: do less in one reply)" if cut else ""
            result = f"error: {fault}{hint}"
        elif name == "submit":
            missing = self._missing()
            if not missing:
                return "handed in", Ending(Ended.SUBMITTED)
            self.refused += 1
            if self.refused >= ON_SUBMIT:
                return missing, Ending(Ended.SUBMITTED, f"handed in all the same: {missing}")
            result = f"not handed in: {missing}"
        else:
            assert given is not None
            result = self.toolbox.use(name, given, max(1.0, self.deadline - time.monotonic()))
        state = self.dog.saw(json.dumps([name, given], sort_keys=True, default=str), _without_time(result))
        if state == "stuck":
            return result, Ending(Ended.STUCK, "the same actions again and again, with the same results")
        if state == "warn":
            result += "\n[you have done exactly this several times, with the same result: try something else]"
        return result, None

    def _missing(self) -> str:
        """What a submission lacks; empty where it can be graded."""
        workspace = self.workspace
        scratch, base = workspace.store.scratch, workspace.bundle.spec.source.tree
        try:
            tree = snapshot(scratch, workspace.folder, base=base)
            if tree == base:
                return "nothing is changed"
            bench = Bench(workspace.store, self.desk.stage.sandbox, self.desk.stage.device)
            checked_tree(workspace.bundle, diff(scratch, base, tree), bench)
        except PatchError as error:
            # In the same words for every path: where hidden tests lie is not told.
            said = "is not among the paths that the task lets you change" if error.path else error.message
            return f"{error.path} {said}".strip()
        return ""

    def _without_calls(self, cut: bool) -> Ending | None:
        self.dog.idle += 1
        if self.dog.idle >= NUDGES:
            return Ending(Ended.STUCK, f"{NUDGES} replies in a row without a tool call")
        said = "Your reply was cut off at its cap. Go on in smaller steps" if cut else "You called no tool. Go on"
        self._say(f"{said}, or call submit when the task is done.")
        return None

    def _after_calls(self, cut: bool) -> Ending | None:
        self.dog.idle = 0
        self.cut = self.cut + 1 if cut else 0
        return Ending(Ended.STUCK, f"{CUT_OFF} replies in a row cut off at their cap") if self.cut >= CUT_OFF else None

    def _say(self, text: str) -> None:
        self.talk.add({"role": "user", "content": text})
        self.trajectory.step("user", text)

    def _write(
        self,
        message: Mapping[str, Any],
        calls: Any,
        results: list[dict[str, Any]],
        usage: Any,
        finish: Any,
    ) -> None:
        told = [(str(call.get("id", "")), *arguments_of(call)) for call in calls]
        self.trajectory.step(
            "agent",
            _text(message.get("content")),
            model_name=self.session.model,
            reasoning_content=next((message[k] for k in ("reasoning_content", "reasoning") if message.get(k)), None),
            tool_calls=[{"tool_call_id": i, "function_name": n, "arguments": g or {}} for i, n, g, _ in told] or None,
            observation={"results": results} if results else None,
            metrics={
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_tokens,
            }
            if usage is not None
            else None,
            extra={"finish_reason": finish},
        )


def _device_words(kind: str) -> str:
    if kind == "interpreter":
        return (
            "There is no GPU: under pytest kernels run in Triton's interpreter on the CPU, slowly; keep shapes small."
        )
    return "A GPU is there." if kind in ("rocm", "cuda") else "Everything runs on the CPU."


def _without_time(result: str) -> str:
    head, _, tail = result.rpartition("\n[exit status ")
    return f"{head}\n{tail.partition(',')[0]}" if tail else result


def _text(content: Any) -> str:
    return content if isinstance(content, str) else ""
