"""Traces for OpenTelemetry: the spans of a run, how they nest, and that nothing is said in them unless requested."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from server.chat.service import Service
from server.telemetry.spans import Spans
from tests.server.live import QUESTION, in_memory, make_service
from tests.server.test_telemetry import Failing

CHAT = "/v1/chat/completions"


def spans_of(service: Service, *, text: bool = False, headers: dict[str, str] | None = None) -> list[ReadableSpan]:
    async def run() -> Sequence[ReadableSpan]:
        exporter = InMemorySpanExporter()
        spans = Spans(exporter, text=text)
        async with asyncio.timeout(20), in_memory(replace(service, observers=(spans,))) as client:
            await client.post(CHAT, json={"messages": QUESTION}, headers=headers)
        await spans.flush()
        found = exporter.get_finished_spans()
        await spans.aclose()
        return found

    return sorted(asyncio.run(run()), key=lambda span: span.start_time or 0)


def parent(span: ReadableSpan, spans: list[ReadableSpan]) -> str:
    above = [other for other in spans if span.parent and context(other).span_id == span.parent.span_id]
    return above[0].name if above else ""


def context(span: ReadableSpan) -> SpanContext:
    assert span.context is not None
    return span.context


def test_a_run_is_an_agent_with_turns_of_its_model_a_tool_and_its_retrievals() -> None:
    spans = spans_of(make_service())
    assert [(span.name, parent(span, spans)) for span in spans if "retrieval" not in span.name] == [
        ("invoke_agent cairn", ""),
        ("chat scripted", "invoke_agent cairn"),
        ("execute_tool search", "invoke_agent cairn"),
        ("chat scripted", "invoke_agent cairn"),
    ]
    found = [span for span in spans if "retrieval" in span.name]
    assert {(span.name, parent(span, spans)) for span in found} == {
        ("retrieval web", "execute_tool search"),
        ("retrieval kg", "execute_tool search"),
    }
    assert len({context(span).trace_id for span in spans}) == 1
    root = dict(spans[0].attributes or {})
    assert root["gen_ai.operation.name"] == "invoke_agent"
    assert root["gen_ai.usage.output_tokens"]
    assert root["cairn.stopped"] == "answered"
    assert all((span.end_time or 0) >= (span.start_time or 0) for span in spans)


def test_what_was_said_stands_in_them_only_on_request() -> None:
    said = "".join(span.to_json() for span in spans_of(make_service()))
    assert not any(word in said for word in ("Aurora", "Trieste", "Lina"))
    text = "".join(span.to_json() for span in spans_of(make_service(), text=True))
    assert all(word in text for word in ("Aurora", "Trieste", "Lina"))


def test_the_callers_trace_goes_on() -> None:
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    spans = spans_of(make_service(), headers={"traceparent": f"00-{trace}-{span}-01"})
    assert {context(found).trace_id for found in spans} == {int(trace, 16)}
    assert spans[0].parent is not None
    assert spans[0].parent.span_id == int(span, 16)


@pytest.mark.parametrize("given", ["", "nonsense", "00-0-0-00"])
def test_a_broken_parent_begins_a_trace_of_its_own(given: str) -> None:
    assert spans_of(make_service(), headers={"traceparent": given})[0].parent is None


def test_what_fails_is_marked() -> None:
    service = make_service()
    failing: Any = {name: Failing() for name in ("web", "kg", "all")}
    spans = spans_of(replace(service, agent=replace(service.agent, sources=failing)))
    failed = [(span.attributes or {}).get("error.type") for span in spans if "retrieval" in span.name]
    assert failed == ["quota", "quota"]
    broken = spans_of(make_service((ZeroDivisionError("a bug"),)))
    assert (broken[0].attributes or {}).get("error.type") == "internal"
