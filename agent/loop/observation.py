"""What the policy is shown of what was found: gathered, cut to fit, sanitized, and put into the protocol's words."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from agent.checks.imitation import imitated
from agent.checks.relevance import about, without_irrelevant
from agent.evidence import Passage, gather
from agent.plan import Node
from agent.plan.graph import GRAPH
from agent.protocols.base import TextProtocol
from agent.protocols.templates import QueryObservation, as_json
from agent.sanitize.sanitize import indented, on_one_line, sanitize
from agent.trace import SearchFailed

Fits = Callable[[str], bool]
"""Whether a text, wrapped as it is, fits."""

PARENT_PASSAGES: Final = 2
"""Passages of each parent that a fill is shown."""
_GRAIN: Final = 8
"""Characters; how near to the most that fits the cut is."""


@dataclass(frozen=True)
class Observation:
    """Text for the context and the passages in it. `text` is empty if not even one passage fits."""

    text: str
    passages: tuple[Passage, ...]
    imitated: tuple[int, ...] = ()
    """Numbers that a passage imitates (see `agent.checks.imitation`)."""


def show(
    found: Mapping[str, Sequence[Passage]],
    failed: Sequence[SearchFailed],
    *,
    protocol: TextProtocol,
    seen: Sequence[Passage],
    limit: int,
    fits: Fits,
    queries: Mapping[str, str] | None = None,
    nodes: Sequence[Node] = (),
    question: str = "",
    tokens: Sequence[str] = (),
) -> Observation:
    """Say what a round of searches gave. Passages are cut until the wrapped text fits; the text itself is never cut.

    Args:
        found: one list for each node, in the plan's order; each list is best first.
        failed: searches that failed.
        protocol: says how it is said.
        seen: passages that were shown before.
        limit: passages that may be shown.
        fits: whether there is room for a text.
        queries: of the nodes whose queries the policy filled in.
        nodes: of the plan.
        question: that is to be answered.
        tokens: of the policy's tokenizer, which a passage must not spell either.
    """
    marks = (*protocol.tag_names, *tokens)
    filled = {node: sanitize(query, marks) for node, query in (queries or {}).items()}
    failures = [(f.node, sanitize(protocol.failed.format(node=f.node, source=f.source), marks)) for f in failed]
    words = {node.id: node.query for node in nodes} | dict(queries or {})
    if protocol.relevant:
        found = without_irrelevant(found, words, question)
    if protocol.graph_chars:
        found = _apart(found, graph={node.id for node in nodes if node.source == GRAPH}, protocol=protocol)
    again = protocol.shows_again or protocol.numbering != "rollout"
    named = [protocol.show(_safe(p, protocol, marks)) for p in _named(found, words, seen, protocol.reminders)]
    reminders = named if named and fits(protocol.wrap(named)) else []

    def within(budget: int) -> Observation:
        passages = gather(
            list(found.values()),
            budget=budget,
            limit=limit,
            seen=() if again else seen,
            first_number=len(seen) + 1 if protocol.numbering == "rollout" else 1,
            apart=protocol.numbering == "query",
        )
        lines = [(p.node, protocol.show(_safe(p, protocol, marks), query=filled.get(p.node, ""))) for p in passages]
        lines += failures
        if protocol.each:
            queries = [_of_query(node, lines, filled, marks) for node in nodes]
            return Observation(protocol.observation(queries), passages)
        if not lines and any(found.values()):
            return Observation(protocol.wrap(reminders or [protocol.repeated]), passages)
        return Observation(protocol.wrap([line for _, line in lines]), passages)

    whole = _largest(within, protocol.budget_chars + protocol.graph_chars, fits)
    return replace(whole, imitated=imitated(whole.passages, protocol))


def _named(
    found: Mapping[str, Sequence[Passage]], queries: Mapping[str, str], seen: Sequence[Passage], most: int
) -> list[Passage]:
    """Of what was found, as it was shown before, what the queries name: so many at most, the best of each node first.

    All that was found would be too much: a policy then reads an answer into what only looks like one.
    """
    before = {passage.identity: passage for passage in seen} if most else {}
    own = [
        [p for p in passages if p.identity in before and about(p, queries.get(node, ""))]
        for node, passages in found.items()
    ]
    ranks = (passage for rank in zip_longest(*own) for passage in rank if passage is not None)
    return list({p.identity: before[p.identity] for p in ranks}.values())[:most]


def _apart(
    found: Mapping[str, Sequence[Passage]], *, graph: Collection[str], protocol: TextProtocol
) -> dict[str, list[Passage]]:
    """What fits of the documents and, beside them, of the graph: neither takes from the other's budget."""
    kept: dict[str, list[Passage]] = {node: [] for node in found}
    for own, budget in ((True, protocol.graph_chars), (False, protocol.budget_chars)):
        lists = [passages for node, passages in found.items() if (node in graph) == own]
        for passage in gather(lists, budget=budget, apart=True):
            kept[passage.node].append(passage)
    return kept


def _of_query(
    node: Node, lines: Sequence[tuple[str, str]], filled: Mapping[str, str], marks: Sequence[str]
) -> QueryObservation:
    """What one node found, from the lines of all; the policy's own words are sanitized like any other."""
    query, written = (sanitize(text, marks) for text in (node.query, node.written))
    own = tuple(line for owner, line in lines if owner == node.id)
    return QueryObservation(filled.get(node.id, query), own, written=written)


def show_parents(
    parents: Mapping[str, Sequence[Passage]], *, protocol: TextProtocol, fits: Fits, tokens: Sequence[str] = ()
) -> str:
    """What a fill is shown: each parent's best passages, without numbers. Empty where there is no room for it.

    Args:
        parents: what each parent found, best first; nothing where it failed or was skipped.
        protocol: says how it is said.
        fits: whether there is room for a text.
        tokens: of the policy's tokenizer, which a passage must not spell either.
    """
    marks = (*protocol.tag_names, *tokens)

    def within(budget: int) -> Observation:
        best = [list(passages[:PARENT_PASSAGES]) for passages in parents.values()]
        kept = gather(best, budget=budget, apart=True)
        lines: list[str] = []
        for node in parents:
            own = [protocol.show_parent(_safe(passage, protocol, marks)) for passage in kept if passage.node == node]
            lines += own or [protocol.parent_nothing.format(node=node)]
        return Observation(protocol.parents.replace("{passages}", protocol.joiner.join(lines)), kept)

    return _largest(within, protocol.budget_chars, fits).text


def say_rejected(why: str, *, protocol: TextProtocol, written: str = "") -> str:
    """Say that a plan cannot run. The sentence and what was `written` hold the policy's own text: sanitize both."""
    said, repeated = (sanitize(text, protocol.tag_names) for text in (why, written.strip()))
    return protocol.wrap([protocol.rejected.format(why=said, why_json=as_json(said), written=repeated)])


def _largest(within: Callable[[int], Observation], budget: int, fits: Fits) -> Observation:
    """As many characters of passages as fit, up to `budget`; nothing if some were found and none fits."""
    whole = within(budget)
    if fits(whole.text):
        return whole
    best = Observation("", ())
    low, high = 0, sum(len(passage.title) + len(passage.text) for passage in whole.passages)
    while high - low > _GRAIN:
        middle = (low + high) // 2
        smaller = within(middle)
        if not fits(smaller.text):
            high = middle
            continue
        low = middle
        best = smaller if smaller.passages else best
    return best


def _safe(passage: Passage, protocol: TextProtocol, marks: Sequence[str]) -> Passage:
    """The passage without marks and, where the protocol's format is ours, without a line that looks like the loop's."""
    strange = {name: getattr(passage, name) for name in ("source", "title", "text", "url", "date")}
    if protocol.lines == "indented":
        strange = {
            name: (indented(text) if name == "text" else on_one_line(text)).text for name, text in strange.items()
        }
    return passage.model_copy(update={name: sanitize(text, marks) for name, text in strange.items()})
