"""A reply as the items of a response, and the events that build them. It knows no socket.

Reasoning becomes `reasoning` items, each round of searches a `web_search_call`, the answer a `message`. Events have
OpenAI's names and count from 0.
"""

import time
from collections.abc import Iterable
from typing import Any

from agent.trace import Filled, Gathered, Planned, Searched, SearchFailed, Trace
from server.chat.reply import Content, Part, Reasoning, RolloutReply, finish_reason, usage
from server.http.encoding import as_json, dumped
from server.http.errors import ApiError, server_stops
from server.http.schema import Summary
from server.responses.schema import (
    IncompleteDetails,
    ItemStatus,
    MessageItem,
    OutputDetails,
    OutputText,
    ReasoningItem,
    ResponseFailure,
    ResponseObject,
    ResponseUsage,
    SearchAction,
    SearchedPage,
    SearchItem,
    SummaryText,
    UrlCitation,
)

Event = dict[str, Any]


class Output:
    """Builds one response. Items begin and end one after another; only a search may go on beside reasoning."""

    def __init__(self, response: ResponseObject) -> None:
        """Take a response that has no output yet."""
        self.response = response
        self._items: list[ReasoningItem | SearchItem | MessageItem] = []
        self._reasoning: tuple[int, ReasoningItem] | None = None
        self._search: tuple[int, SearchItem] | None = None
        self._message: tuple[int, MessageItem] | None = None
        self._queries: dict[str, str] = {}
        """Of the round that runs, by node."""
        self._count = 0

    def begin(self) -> list[Event]:
        return [self._of_response("response.created"), self._of_response("response.in_progress")]

    def feed(self, part: Part) -> list[Event]:
        """What this part of the reply adds."""
        match part:
            case Reasoning(text):
                text = text if self._reasoning else text.lstrip("\n")  # each item begins again
                return [*self._begin_reasoning(), self._reasoned(text)] if text else []
            case Content(text):
                return [*self._begin_message(), self._wrote(text)]
            case Planned():
                self._queries = {node.id: node.query for node in part.plan.nodes}
                return [*self._end_reasoning(), *self._end_search(), *self._begin_search()]
            case Filled() | Searched() | SearchFailed():
                self._queries[part.node] = part.query
                return []
            case Gathered():
                urls = dict.fromkeys(passage.url for passage in part.passages if passage.url)
                return self._end_search(urls)
            case _:
                return []

    def end(self, reply: RolloutReply, trace: Trace) -> list[Event]:
        """Close what is open, and the response."""
        cut = finish_reason(trace) == "length"
        events = self._end_all(reply, "incomplete" if cut else "completed")
        self.response.status = "incomplete" if cut else "completed"
        self.response.incomplete_details = IncompleteDetails() if cut else None
        self.response.usage = usage_of(trace)
        self.response.citations = reply.sources()["citations"]
        self.response.cairn = Summary.model_validate(reply.summary(trace))
        return [*events, self._close(f"response.{self.response.status}")]

    def fail(self, why: ApiError, reply: RolloutReply) -> list[Event]:
        """Close what is open as it is: there will be no more of it."""
        events = self._end_all(reply, "incomplete")
        self.response.status = "failed"
        self.response.error = ResponseFailure(message=why.detail)
        return [*events, self._close("response.failed")]

    def cancel(self, reply: RolloutReply) -> None:
        """Close what is open as it is; no client is left to see it."""
        count = self._count
        self._end_all(reply, "incomplete")
        self.response.status = "cancelled"
        self._close("response.cancelled")
        self._count = count  # what was not sent has no number

    def as_json(self) -> str:
        """The response as far as it is."""
        return dumped(self.response.model_copy(update={"output": list(self._items)}))

    def last_words(self) -> bytes:
        """The frame of a server that stops."""
        why = server_stops()
        code = why.body["error"]["code"]
        return frame(self._event("error", code=code, message=why.detail, param=None))

    # Items

    def _begin_reasoning(self) -> list[Event]:
        if self._reasoning:
            return []
        item = ReasoningItem(id=self._id("rs"))
        at, added = self._add(item)
        self._reasoning = at, item
        item.summary = [SummaryText()]
        part = self._of_item("response.reasoning_summary_part.added", at, item, summary_index=0)
        return [added, part | {"part": SummaryText().model_dump()}]

    def _reasoned(self, text: str) -> Event:
        assert self._reasoning is not None
        at, item = self._reasoning
        item.summary[0].text += text
        return self._of_item("response.reasoning_summary_text.delta", at, item, summary_index=0, delta=text)

    def _end_reasoning(self) -> list[Event]:
        if not self._reasoning:
            return []
        (at, item), self._reasoning = self._reasoning, None
        (part,) = item.summary
        return [
            self._of_item("response.reasoning_summary_text.done", at, item, summary_index=0, text=part.text),
            self._of_item("response.reasoning_summary_part.done", at, item, summary_index=0, part=part.model_dump()),
            self._done(at, item),
        ]

    def _begin_search(self) -> list[Event]:
        item = SearchItem(id=self._id("ws"), action=self._action())
        at, added = self._add(item)
        self._search = at, item
        calls = [self._of_item(f"response.web_search_call.{name}", at, item) for name in ("in_progress", "searching")]
        item.status = "searching"
        return [added, *calls]

    def _end_search(self, urls: Iterable[str] = ()) -> list[Event]:
        if not self._search:
            return []
        (at, item), self._search = self._search, None
        item.action = self._action()
        item.action.sources = [SearchedPage(url=url) for url in urls]
        return [self._of_item("response.web_search_call.completed", at, item), self._done(at, item)]

    def _begin_message(self) -> list[Event]:
        if self._message:
            return []
        closed = [*self._end_search(), *self._end_reasoning()]
        item = MessageItem(id=self._id("msg"))
        at, added = self._add(item)
        self._message = at, item
        item.content = [OutputText()]
        part = self._of_item("response.content_part.added", at, item, content_index=0, part=OutputText().model_dump())
        return [*closed, added, part]

    def _wrote(self, text: str) -> Event:
        assert self._message is not None
        at, item = self._message
        item.content[0].text += text
        return self._of_item("response.output_text.delta", at, item, content_index=0, delta=text, logprobs=[])

    def _end_message(self, reply: RolloutReply, status: ItemStatus) -> list[Event]:
        if not self._message:
            return []
        (at, item), self._message = self._message, None
        (text,) = item.content
        text.annotations = [UrlCitation(**annotation["url_citation"]) for annotation in reply.annotations]
        added = [
            self._of_item("response.output_text.annotation.added", at, item, content_index=0, annotation_index=place)
            | {"annotation": annotation.model_dump()}
            for place, annotation in enumerate(text.annotations)
        ]
        written = self._of_item("response.output_text.done", at, item, content_index=0, text=text.text, logprobs=[])
        part = self._of_item("response.content_part.done", at, item, content_index=0, part=text.model_dump())
        return [*added, written, part, self._done(at, item, status=status)]

    def _end_all(self, reply: RolloutReply, status: ItemStatus) -> list[Event]:
        return [*self._end_search(), *self._end_reasoning(), *self._end_message(reply, status)]

    def _action(self) -> SearchAction:
        queries = list(self._queries.values())
        return SearchAction(query=queries[0] if queries else "", queries=queries)

    # Events

    def _add(self, item: ReasoningItem | SearchItem | MessageItem) -> tuple[int, Event]:
        at = len(self._items)
        self._items.append(item)
        return at, self._event("response.output_item.added", output_index=at, item=item.model_dump())

    def _done(self, at: int, item: ReasoningItem | SearchItem | MessageItem, *, status: Any = "completed") -> Event:
        item.status = status
        return self._event("response.output_item.done", output_index=at, item=item.model_dump())

    def _of_item(self, name: str, at: int, item: ReasoningItem | SearchItem | MessageItem, **more: Any) -> Event:
        return self._event(name, item_id=item.id, output_index=at, **more)

    def _of_response(self, name: str) -> Event:
        return self._event(name, response=self.response.model_dump())

    def _close(self, name: str) -> Event:
        self.response.output = list(self._items)
        self.response.completed_at = round(time.time(), 3)
        return self._of_response(name)

    def _event(self, name: str, **more: Any) -> Event:
        number, self._count = self._count, self._count + 1
        return {"type": name, "sequence_number": number, **more}

    def _id(self, kind: str) -> str:
        return f"{kind}_{self.response.id.removeprefix('resp_')}_{len(self._items)}"


def usage_of(trace: Trace) -> ResponseUsage:
    """The same figures as a completion's usage, under this address's names."""
    used = usage(trace)
    return ResponseUsage(
        input_tokens=used["prompt_tokens"],
        output_tokens=used["completion_tokens"],
        output_tokens_details=OutputDetails(**used["completion_tokens_details"]),
        total_tokens=used["total_tokens"],
        num_search_queries=used["num_search_queries"],
    )


def frame(event: Event) -> bytes:
    """An event as it is sent: this address names its events, as its clients expect."""
    return f"event: {event['type']}\ndata: {as_json(event)}\n\n".encode()
