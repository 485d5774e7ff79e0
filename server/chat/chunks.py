"""What `/v1/chat/completions` sends: chunks as server-sent events, or one completion. Named events break clients."""

import time
from typing import Any, Final

from agent.trace import Trace
from server.chat.profiles import DEFAULT, Profile, Statuses
from server.chat.reply import CAIRN_VERSION, Content, Part, Reasoning, RolloutReply, finish_reason, usage
from server.http.encoding import as_json, dumped

DONE: Final = b"data: [DONE]\n\n"


class ChunkFrames:
    """Makes the chunks of one stream."""

    def __init__(self, *, trace: Trace, model: str, profile: Profile = DEFAULT) -> None:
        self._profile = profile
        self._statuses = Statuses()
        self._head = (
            f'data: {{"id":{as_json(completion_id(trace))},"object":"chat.completion.chunk",'
            f'"created":{int(time.time())},"model":{as_json(model)},'
        )

    def role(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def part(self, part: Part) -> bytes:
        match part:
            case Reasoning(text):
                return self._chunk({"reasoning_content": text, "reasoning": text})
            case Content(text):
                return self._chunk({"content": text})
            case step:
                body = dumped(step)
                status = self._statuses.feed(step) if self._profile.statuses else None
                event = f',"event":{as_json(status)}' if status else ""
                return self._chunk({}, extra=f',"cairn":{{"v":{CAIRN_VERSION},{body[1:]}{event}')

    def ending(self, reply: RolloutReply, trace: Trace, *, include_usage: bool) -> bytes:
        """All chunks after the answer: citations, the end, usage where it was requested, `[DONE]`."""
        frames: list[bytes] = []
        if annotations := reply.annotations:
            frames.append(self._chunk({"annotations": [{"index": i, **a} for i, a in enumerate(annotations)]}))
        sources = {"usage": usage(trace), **reply.sources()} if self._profile.sources_at_end else {}
        more = f",{as_json(sources)[1:-1]}" if sources else ""
        frames.append(self._chunk({}, finish=finish_reason(trace), extra=more))
        if include_usage:
            tail: dict[str, Any] = {
                "choices": [],
                "usage": usage(trace),
                **reply.sources(),
                "cairn": reply.summary(trace),
            }
            frames.append(f"{self._head}{as_json(tail)[1:]}\n\n".encode())
        return b"".join([*frames, DONE])

    def _chunk(self, delta: dict[str, Any], *, finish: str | None = None, extra: str = "") -> bytes:
        choice = f'"choices":[{{"index":0,"delta":{as_json(delta)},"finish_reason":{as_json(finish)}}}]'
        return f"{self._head}{choice}{extra}}}\n\n".encode()


def error_frame(body: dict[str, Any]) -> bytes:
    """An error after the start. It has no `choices`: clients know it by that."""
    return f"data: {as_json(body)}\n\n".encode()


def completion(reply: RolloutReply, trace: Trace, *, model: str, reasoning: str) -> dict[str, Any]:
    """The whole answer, not streamed: the same as all chunks together."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.content,
        "reasoning_content": reasoning,
        "reasoning": reasoning,
        "annotations": reply.annotations,
    }
    return {
        "id": completion_id(trace),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(trace)}],
        "usage": usage(trace),
        **reply.sources(),
        "cairn": reply.summary(trace),
    }


def completion_id(trace: Trace) -> str:
    return f"chatcmpl-{trace.id}"
