"""A rollout as a person watches it: closed steps stay on the page, what is still open is redrawn below them."""

import re
from collections.abc import Iterable, Iterator
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.spinner import Spinner
from rich.text import Text

from agent.checks.claims import cited_by, shown_under
from agent.cli.console import printable
from agent.evidence import Passage
from agent.plan import Node, Plan
from agent.trace import (
    DOUBTED,
    Answered,
    Claim,
    Delta,
    Event,
    Evidenced,
    Gathered,
    Merged,
    Planned,
    PlanRejected,
    Reflected,
    Restated,
    Searched,
    SearchFailed,
    Skipped,
    Step,
    Stopped,
    Thought,
    Trace,
)
from agent.trace.attempts import UNSEARCHED, not_in_passages, nothing_found, unsearched

_CITE = re.compile(r"\[(\d+)\]")

_BUDGETS = {
    "rounds": "no more rounds were allowed",
    "searches": "no more searches were allowed",
    "passages": "no more passages were allowed",
    "policy_tokens": "it had used up its tokens",
    "context": "its context was full",
    "seconds": "its time was over",
    "credits": "the paid searches were used up",
    "user": "you requested the answer",
}
_ENDS = {
    "bad_format": "no answer: the policy did not keep to its format",
    "cancelled": "cancelled",
    "engine": "no answer: the engine failed",
    "interrupted": "interrupted",
}

_OPEN_CHARS = 600
"""How much of an open block is redrawn; a longer one shows its end."""
_SNIPPET_CHARS = 120
_LABELS = {"thought": "thinking", "search": "planning", "merge": "merging", "evidence": "evidence", "answer": "answer"}

Ended = Searched | SearchFailed | Skipped


class TraceView:
    """Draws events as they come. In a terminal the open block and the running plan move; elsewhere nothing does."""

    def __init__(self, console: Console, *, moving: bool = True) -> None:
        """Draw on `console`; without `moving` only what is closed is drawn, also in a terminal."""
        self._console = console
        self._terminal = console.is_terminal
        moves = moving and console.is_terminal
        self._live = Live(console=console, refresh_per_second=12, transient=True) if moves else None
        self._delta: Delta | None = None
        self._plan: Plan | None = None
        self._ended: dict[str, Ended] = {}
        self._over = False

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._live.update(Group())
            self._live.stop()

    def show(self, event: Event) -> None:
        """Draw one event; what it closes is printed for good."""
        if isinstance(event, Delta):
            grown = self._delta.text if self._delta and self._delta.role == event.role else ""
            self._delta = Delta(role=event.role, text=grown + event.text)
            self._redraw()
            return
        self._delta = None
        self._over = isinstance(event, Stopped)
        closed = list(self._closed(event))
        self._redraw(at_once=True)
        for piece in closed:
            self._print(piece)

    def finish(self, trace: Trace) -> None:
        """What stands below the answer: the cited passages, or what was tried in vain; how it ended, what it used."""
        if cited := cited_passages(trace):
            self._print(Text("Sources", style="bold"))
            for passage in cited:
                self._print(_indented(_source_line(passage)))
        if empty := nothing_found(trace.steps) or not_in_passages(trace.answer or "", trace.steps):
            self._print(Text(_clean(empty), style="yellow"))
        elif unsearched(trace.steps):
            self._print(Text(UNSEARCHED, style="dim"))
        if rung := rung_line(trace):
            self._print(Text(_clean(rung), style="dim"))
        self._print(Text(closing_line(trace), style="dim"))

    def _redraw(self, *, at_once: bool = False) -> None:
        """Draw the open part again: at the next tick, or at once where lines are about to be printed above it."""
        if self._live:
            self._live.update(self.open_part(), refresh=at_once)

    def _print(self, piece: RenderableType) -> None:
        if self._terminal:
            self._console.print(piece)
            return
        for line in _lines(piece):
            self._console.print(line, soft_wrap=True)

    def _closed(self, step: Step) -> Iterator[RenderableType]:
        match step:
            case Thought():
                yield Text(_clean(step.text), style="dim italic")
            case Restated():
                yield Text.assemble(("Question: ", "bold"), _clean(step.text))
            case Planned():
                self._plan, self._ended = step.plan, {}
            case PlanRejected():
                yield Text(f"The plan was rejected: {_clean(step.why)}", style="yellow")
            case Searched() | SearchFailed() | Skipped():
                self._ended[step.node] = step
            case Gathered():
                yield from self._gathered(step)
            case Merged() | Reflected():
                doubted = [_claim(claim) for claim in step.claims if claim.check in DOUBTED]
                lines = [Text(_clean(step.text)), *doubted]
                yield _block("Merge" if isinstance(step, Merged) else "Reflect", lines)
            case Evidenced():
                yield _block("Evidence", [_claim(claim) for claim in step.claims] or [Text(_clean(step.text))])
            case Answered():
                yield self._answer(step)
            case _:
                pass

    def _gathered(self, step: Gathered) -> Iterator[RenderableType]:
        if self._plan:
            yield _block(f"Search {step.round}", [self._row(node) for node in self._plan.nodes])
            self._plan = None
        lines: list[RenderableType] = [_passage_line(passage) for passage in step.passages]
        if step.dropped:
            lines.append(Text(f"{step.dropped} more not shown (repeats, or no room)", style="dim"))
        yield _block("Found", lines or [Text("nothing", style="yellow")])

    def _answer(self, step: Answered) -> RenderableType:
        if not self._terminal:
            return Text(f"Answer: {_clean(step.text)}")
        return Panel(Text(_clean(step.text), style="bold"), title="Answer", title_align="left", border_style="green")

    def open_part(self) -> RenderableType:
        """What is not closed yet: the plan that runs and the block that is being written."""
        parts: list[RenderableType] = []
        if self._plan:
            parts.append(_block("Searching", [self._row(node) for node in self._plan.nodes]))
        if self._delta:
            label = _LABELS.get(self._delta.role, self._delta.role)
            parts.append(Spinner("dots", Text(f" {label}", style="cyan")))
            parts.append(_indented(Text(_clean(self._delta.text[-_OPEN_CHARS:]), style="dim")))
        elif not self._plan and not self._over:
            parts.append(Spinner("dots", Text(" waiting for the policy", style="dim")))
        return Group(*parts)

    def _row(self, node: Node) -> RenderableType:
        """One node of the plan in its state: waiting for its parents, running, or how it ended."""
        ended = self._ended.get(node.id)
        if ended is None:
            waits = [parent for parent in node.parents if parent not in self._ended]
            if waits or self._live is None:
                state = Text(f"waits for {', '.join(waits)}" if waits else "", style="dim")
                return Text.assemble(("· ", "dim"), _query(node), "  ", state)
            return _Running(_query(node))
        match ended:
            case Searched():
                mark, state = Text("✓", style="green"), _found(ended)
            case SearchFailed():
                mark, state = Text("✗", style="red"), Text(f"{ended.error}: {_clean(ended.why)}", style="red")
            case Skipped():
                mark, state = Text("-", style="dim"), Text(f"skipped: {_clean(ended.why)}", style="dim")
        return Text.assemble(mark, " ", _query(node, getattr(ended, "query", "")), "  ", state)


class _Running:
    """A line with a mark that turns; each time it is drawn the mark is a little further."""

    def __init__(self, line: Text) -> None:
        self._line = line
        self._spinner = Spinner("dots")

    def __rich__(self) -> Text:
        return Text.assemble(str(self._spinner.render(monotonic())), " ", self._line)


def _found(step: Searched) -> Text:
    """What came of a search, and how: which backend, from the cache, what failed before."""
    how = {"fresh": "cached", "stale": "cached, out of date"}.get(step.cached, "")
    cost = f"${step.usd:.3f}" if step.usd else ""
    some = f"{len(step.passages)} found" if step.passages else "nothing found"
    parts = (some, step.backend if step.failures or cost else "", how, _span(step.took), cost, step.note)
    line = Text(" · ".join(_clean(part) for part in parts if part), style="green" if step.passages else "yellow")
    failed = dict.fromkeys(f"{failure.backend} failed ({failure.kind})" for failure in step.failures)
    return line.append(f" · {_clean(', '.join(failed))}", style="yellow") if failed else line


def _span(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.{0 if seconds >= 0.01 else 1}f} ms"


def _query(node: Node, query: str = "") -> Text:
    filters = "".join(f", {condition.name} {condition.value}" for condition in node.filters)
    tail = f" ({_clean(node.source + filters)})"
    return Text.assemble((f"{_clean(node.id)}: ", "bold cyan"), _clean(query or node.query), (tail, "cyan"))


def _block(title: str, lines: list[RenderableType]) -> RenderableType:
    return Group(Text(title, style="bold"), *(_indented(line) for line in lines))


def _indented(piece: RenderableType) -> RenderableType:
    return Padding(piece, (0, 0, 0, 2), expand=False)


def _lines(piece: RenderableType, indent: int = 0) -> Iterator[Text]:
    """The lines of a piece, for a page that has no width: nothing on them is cut."""
    match piece:
        case Group():
            for part in piece.renderables:
                yield from _lines(part, indent)
        case Padding():
            yield from _lines(piece.renderable, indent + piece.left)
        case Text():
            yield Text.assemble(" " * indent, piece)
        case _:
            yield Text.assemble(" " * indent, str(piece))


def _claim(claim: Claim) -> RenderableType:
    """A claim with its numbers, and whether the passages say it."""
    line = Text.assemble("• ", _clean(claim.text))
    if claim.cites:
        line.append(f" {' '.join(f'[{number}]' for number in claim.cites)}", style="cyan")
    cites = bool(claim.cites or claim.ambiguous)
    match claim.check:
        case "not_found":
            line.append(" not found in what it cites" if cites else " no passage cited", style="yellow")
        case "contradicted":
            line.append(" contradicted by what it cites", style="red")
        case "verbatim" | "close":
            line.append(f" {claim.check}", style="dim green")
        case "unchecked":
            line.append("" if cites else " no passage cited", style="yellow")
    return line


def _passage_line(passage: Passage) -> Text:
    text = _clean(passage.text).replace("\n", " ")
    short = text if len(text) <= _SNIPPET_CHARS else text[: _SNIPPET_CHARS - 1] + "…"
    line = Text.assemble((f"[{passage.number}] ", "cyan"), _place(passage), (f" — {short}", "dim"))
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _source_line(passage: Passage) -> Text:
    url = f"  {_clean(passage.url)}" if passage.url else ""
    return Text.assemble((f"[{passage.number}] ", "cyan"), _place(passage), (url, "dim"))


def _place(passage: Passage) -> str:
    return _clean(" · ".join(part for part in (passage.source, passage.date, passage.title) if part))


def _clean(text: str) -> str:
    return printable(text).strip()


def cited_passages(trace: Trace) -> list[Passage]:
    """The passages behind the answer: what the evidence cites, or, without evidence, what merges and reflections do.

    A number means what it meant when it was cited, and where that is several passages, those that the claim quotes.
    """
    by_evidence: list[Passage] = []
    by_merges: list[Passage] = []
    for place, step in enumerate(trace.steps):
        shown = shown_under(trace.steps[:place])
        match step:
            case Evidenced():
                by_evidence += [passage for claim in step.claims for passage in cited_by(claim, shown)]
            case Merged() | Reflected():
                whole = Claim(text=step.text, cites=tuple(map(int, _CITE.findall(step.text))))
                by_merges += [passage for claim in step.claims or (whole,) for passage in cited_by(claim, shown)]
            case _:
                pass
    return _once(by_evidence or by_merges)


def _once(passages: Iterable[Passage]) -> list[Passage]:
    return list({passage.identity: passage for passage in passages}.values())


def closing_line(trace: Trace) -> str:
    """How it ended and what it used, in one line."""
    usage = trace.usage
    parts = [
        ending(trace),
        _count(usage.rounds, "round"),
        _count(usage.searches, "search"),
        _count(usage.policy_tokens, "token"),
        *([f"${usage.usd:.3f}"] if usage.usd else []),
        f"{trace.timings.total:.2f} s",
    ]
    return " · ".join(parts)


def rung_line(trace: Trace) -> str:
    """How the model was spoken to and why, in a sentence; empty for one that speaks the protocol."""
    used = [f"{each.rung} ({each.why})" if each.why else each.rung for each in trace.rungs]
    return f"The model was spoken to on the rung {', then '.join(used)}." if used else ""


def ending(trace: Trace) -> str:
    """Why the rollout stopped, in words."""
    stopped = trace.stopped
    if stopped is None:
        return "not finished"
    if stopped.reason == "answered":
        return stopped.detail or "answered"
    if stopped.reason == "forced" and stopped.budget:
        if trace.answer is None:
            return f"ended without an answer because {_BUDGETS[stopped.budget]}"
        return f"answered because {_BUDGETS[stopped.budget]}"
    said = _ENDS.get(stopped.reason, stopped.reason)
    return f"{said} ({stopped.detail})" if stopped.detail else said


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
