"""OpenTelemetry traces of runs (extra `otel`): invoke_agent, in it chat and execute_tool, in that one retrieval each.

Spans are made from the events of a run. They hold what was said only on request. The names of attributes are our
own strings: the GenAI conventions have moved and their constants are deprecated.
"""

import asyncio
from dataclasses import dataclass
from time import time_ns
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agent import __version__
from agent.trace import Answered, Gathered, Planned, PlanRejected, Searched, SearchFailed, Step, Stopped
from server.telemetry.watch import Observer, WatchedRun

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

OPERATION: Final = "gen_ai.operation.name"
MODEL: Final = "gen_ai.request.model"
SOURCE: Final = "gen_ai.data_source.id"
_PROPAGATOR: Final = TraceContextTextMapPropagator()


@dataclass
class _Open:
    """The spans of one run that have not ended."""

    agent: Span
    chat: Span | None = None
    tool: Span | None = None


class Spans(Observer):
    """Writes the spans of every run."""

    def __init__(self, exporter: "SpanExporter", *, text: bool = False) -> None:
        """Open a tracer.

        Args:
            exporter: where spans go, in the background.
            text: whether they hold questions, queries and answers.
        """
        resource = Resource.create({"service.name": "cairn", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer: Tracer = self._provider.get_tracer("cairn", __version__)
        self._text = text
        self._open: dict[int, _Open] = {}

    def began(self, run: WatchedRun) -> None:
        parent = _PROPAGATOR.extract({"traceparent": run.caller.parent}) if run.caller.parent else Context()
        facts = {
            OPERATION: "invoke_agent",
            "gen_ai.agent.name": "cairn",
            MODEL: run.trace.policy,
            "cairn.protocol": run.trace.protocol,
            "cairn.run": run.trace.id,
            "cairn.request_id": run.caller.request_id,
        }
        if run.trace.conversation:
            facts["gen_ai.conversation.id"] = run.trace.conversation
        if self._text:
            facts["cairn.question"] = run.trace.question
        agent = self._tracer.start_span("invoke_agent cairn", context=parent, attributes=facts)
        self._open[id(run)] = _Open(agent)
        self._chat(run)

    def saw(self, run: WatchedRun, step: Step) -> None:
        spans = self._open[id(run)]
        match step:
            case Planned():
                self._end_chat(spans)
                facts = {OPERATION: "execute_tool", "gen_ai.tool.name": "search", "cairn.round": step.round}
                spans.tool = self._child(spans.agent, "execute_tool search", facts)
            case PlanRejected():
                self._end_chat(spans)
                self._chat(run)
            case Searched() | SearchFailed():
                self._retrieval(spans.tool or spans.agent, step)
            case Gathered():
                self._end_tool(spans)
                self._chat(run)
            case Answered():
                if self._text:
                    spans.agent.set_attribute("cairn.answer", step.text)
                self._end_chat(spans)
            case _:
                pass

    def ended(self, run: WatchedRun) -> None:
        spans = self._open.pop(id(run))
        self._end_tool(spans)
        self._end_chat(spans)
        used, stopped = run.trace.usage, run.trace.stopped
        spans.agent.set_attributes(
            {
                "gen_ai.usage.input_tokens": used.prompt_tokens + used.environment_tokens,
                "gen_ai.usage.output_tokens": used.policy_tokens,
                "cairn.searches": used.searches,
                "cairn.stopped": stopped.reason if stopped else "broken",
            }
        )
        if why := _failure(run, stopped):
            spans.agent.set_attribute("error.type", why)
            spans.agent.set_status(Status(StatusCode.ERROR))
        spans.agent.end()

    async def flush(self) -> None:
        """Send what has ended."""
        await asyncio.to_thread(self._provider.force_flush)

    async def aclose(self) -> None:
        """Send what is left."""
        await asyncio.to_thread(self._provider.shutdown)

    def _chat(self, run: WatchedRun) -> None:
        spans = self._open[id(run)]
        facts = {OPERATION: "chat", MODEL: run.trace.policy}
        spans.chat = self._child(spans.agent, f"chat {run.trace.policy}", facts)

    def _retrieval(self, parent: Span, step: Searched | SearchFailed) -> None:
        end = time_ns()
        facts: dict[str, Any] = {OPERATION: "retrieval", SOURCE: step.source, "cairn.node": step.node}
        if self._text:
            facts["cairn.query"] = step.query
        if isinstance(step, Searched):
            facts |= {"cairn.passages": len(step.passages), "cairn.cached": step.cached or "no"}
        span = self._child(parent, f"retrieval {step.source}", facts, start=end - int(step.took * 1e9))
        if isinstance(step, SearchFailed):
            span.set_attribute("error.type", step.error)
            span.set_status(Status(StatusCode.ERROR))
        span.end(end)

    def _child(self, parent: Span, name: str, facts: dict[str, Any], *, start: int | None = None) -> Span:
        return self._tracer.start_span(
            name, context=otel.set_span_in_context(parent, Context()), attributes=facts, start_time=start
        )

    def _end_chat(self, spans: _Open) -> None:
        if spans.chat:
            spans.chat.end()
            spans.chat = None

    def _end_tool(self, spans: _Open) -> None:
        if spans.tool:
            spans.tool.end()
            spans.tool = None


def _failure(run: WatchedRun, stopped: Stopped | None) -> str:
    if run.broke:
        return "internal"
    return stopped.reason if stopped and stopped.reason in ("engine", "cancelled", "interrupted") else ""
