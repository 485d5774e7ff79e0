"""What must hold of every trace, whatever the policy, the sources and the user did. Written again from the format alone:
it shares no line with the loop, so that a bug there is not a bug here, too.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from agent.evidence import Passage
from agent.protocols.answers import answer_in
from agent.protocols.base import Role, TextProtocol
from agent.protocols.parse import Block, TagReader
from agent.trace import (
    Evidenced,
    Filled,
    Gathered,
    Planned,
    PlanRejected,
    Searched,
    SearchFailed,
    Segment,
    Skipped,
    Step,
    Trace,
)
from agent.trace.samples import to_samples
from tests.rendered import gathered, safe, wrapped

Decode = Callable[[Sequence[int]], str]
_BLOCKS: Mapping[str, Role] = {
    "thought": "thought",
    "restated": "restated",
    "merged": "merge",
    "reflected": "reflect",
    "evidenced": "evidence",
}
"""Kind of step → role of the block that it was read from."""
_BLINK = 1e-6
"""Seconds; two clocks that were read one after the other."""


def of_bytes(ids: Sequence[int]) -> str:
    """The text of the scripted engine's ids."""
    return bytes(ids).decode(errors="replace")


def violations(
    trace: Trace, protocol: TextProtocol, *, decode: Decode | None = of_bytes, templated: bool = False
) -> list[str]:
    """Everything that is wrong with a trace, as sentences.

    Args:
        trace: of a policy that was trained on the protocol; not of a chat engine.
        protocol: its.
        decode: ids to text; None for an engine that gives no ids.
        templated: whether the environment speaks in turns of the chat's template.
    """
    found = [
        *_prompt(trace, protocol),
        *_environment(trace, protocol),
        *_numbers(trace, protocol),
        *_order(trace),
        *_queries(trace),
    ]
    found += [*_parsed(trace, protocol), *_branches(trace, protocol), *_places(trace), *_usage(trace)]
    found += [*_loop(trace, protocol)] if not templated else []
    if decode is not None:
        found += [*_ids(trace, decode), *mask_violations(trace)]
    return found


def main_of(trace: Trace) -> list[Segment]:
    return [segment for segment in trace.segments if segment.branch == "main"]


# Tokens


def _ids(trace: Trace, decode: Decode) -> Iterator[str]:
    for at, segment in enumerate(trace.segments):
        if segment.ids is None or decode(segment.ids) != segment.text:
            yield f"the ids of segment {at} do not say its text"
        if (segment.logprobs is not None) != (segment.by == "policy"):
            yield f"segment {at}, by {segment.by}, has log-probabilities or lacks them"
        if segment.logprobs is not None and len(segment.logprobs) != len(segment.ids or ()):
            yield f"segment {at} has not one log-probability for each id"


def mask_violations(trace: Trace) -> list[str]:
    """Whether the rows of a trace train exactly what the policy sampled, each token once."""
    found: list[str] = []
    trained = 0
    for row in to_samples(trace):
        own = [s for s in trace.segments if s.branch == row.branch and s.by == "policy"]
        sampled = [number for segment in own for number in segment.ids or ()]
        logprobs = [value for segment in own for value in segment.logprobs or ()]
        lengths = {len(row.ids), len(row.mask), len(row.logprobs)}
        trained += sum(row.mask)
        if len(lengths) != 1:
            found.append(f"the row of {row.branch} has columns of different lengths")
        if [n for n, yes in zip(row.ids, row.mask, strict=False) if yes] != sampled:
            found.append(f"the row of {row.branch} does not train what the policy sampled in it")
        if [n for n, yes in zip(row.logprobs, row.mask, strict=False) if yes] != logprobs:
            found.append(f"the row of {row.branch} has the log-probabilities of other tokens")
        if any(value for value, yes in zip(row.logprobs, row.mask, strict=False) if not yes):
            found.append(f"the row of {row.branch} has log-probabilities where nothing was sampled")
    if trained != sum(len(s.ids or ()) for s in trace.segments if s.by == "policy"):
        found.append("not every sampled token is trained once")
    return found


# What was said to the policy


def _prompt(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    if trace.segments and trace.segments[0].text != protocol.prompt_text(trace.question, history=trace.history):
        yield "the first segment is not the protocol's prompt"
    if [at for at, segment in enumerate(trace.segments) if segment.by == "prompt"] != ([0] if trace.segments else []):
        yield "there is not one prompt, or it is not first"


def _environment(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    """Each word of the environment is one round's passages, whole and in the protocol's white space, or a rejection."""
    main = main_of(trace)
    said = [(main[at - 1], segment.text) for at, segment in enumerate(main) if segment.by == "environment"]
    wanted = list(_wanted(trace, protocol))
    ended = trace.stopped is not None and (trace.stopped.budget == "context" or trace.stopped.reason == "engine")
    if ended and len(said) == len(wanted) - 1:
        wanted.pop()  # there was no room for the last one, and what is forced then may fail
    if len(said) != len(wanted):
        yield f"the environment spoke {len(said)} times instead of {len(wanted)}"
    for (before, text), expected in zip(said, wanted, strict=False):
        left_out = expected[: max(len(expected) - len(text), 0)]
        there = left_out.isspace() and before.by == "policy" and before.text.endswith(left_out)
        if left_out + text != expected or (left_out and not there):
            yield f"the environment said {text!r} instead of {expected!r}"
        if not left_out and _overlap(before, text, protocol):
            yield f"white space that the policy had sampled was said again: {text!r}"


def _overlap(before: Segment, text: str, protocol: TextProtocol) -> bool:
    stopped = before.text.rstrip().endswith(tuple(mark.close for mark in protocol.policy_marks.values()))
    first = text[:1]
    return before.by == "policy" and stopped and first.isspace() and before.text.endswith(first)


def _wanted(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    for step in trace.steps:
        if isinstance(step, PlanRejected) and step.why.endswith("neither a search nor an answer"):
            yield protocol.invalid
        elif isinstance(step, PlanRejected) and protocol.plans != 1:
            why, written = safe(step.why, protocol), safe(step.text.strip(), protocol)
            said = protocol.rejected.format(why=why, why_json=json.dumps(why, ensure_ascii=False), written=written)
            yield wrapped([said], protocol)
        elif isinstance(step, Gathered) and step.segments:
            yield gathered(step, trace, protocol)


def _numbers(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    shown = 0
    for step in trace.steps:
        if not isinstance(step, Gathered):
            continue
        for lists in _numbered_together(step, protocol):
            first = shown + 1 if protocol.numbering == "rollout" else 1
            if [passage.number for passage in lists] != list(range(first, first + len(lists))):
                yield f"the passages of round {step.round} have wrong numbers"
        shown += len(step.passages)
    if shown != len(trace.passages):
        yield "the trace's passages are not those that were shown"


def _numbered_together(step: Gathered, protocol: TextProtocol) -> list[list[Passage]]:
    if protocol.numbering != "query":
        return [list(step.passages)]
    nodes = dict.fromkeys(passage.node for passage in step.passages)
    return [[passage for passage in step.passages if passage.node == node] for node in nodes]


# Who waited for whom


def _order(trace: Trace) -> Iterator[str]:
    """A node begins when its parents are done."""
    for step in trace.steps:
        if not isinstance(step, Planned):
            continue
        ends: dict[str, float] = {}
        starts: dict[str, float] = {}
        for other in trace.steps:
            if getattr(other, "round", 0) != step.round:
                continue
            if isinstance(other, Searched | SearchFailed):
                starts.setdefault(other.node, other.seconds - other.took)
                ends[other.node] = other.seconds
            elif isinstance(other, Filled):
                starts[other.node] = other.seconds
        for node in step.plan.nodes:
            for parent in node.parents:
                if node.id in starts and parent in ends and starts[node.id] < ends[parent] - _BLINK:
                    yield f"{node.id} began before its parent {parent} was done"


def _queries(trace: Trace) -> Iterator[str]:
    """A node searches what the plan says, or what its fill says; and the steps are in the plan's order."""
    for plan in (step for step in trace.steps if isinstance(step, Planned)):
        ran = [s.node for s in trace.steps if isinstance(s, Searched | SearchFailed) and s.round == plan.round]
        if ran != [node.id for node in plan.plan.nodes if node.id in ran]:
            yield f"the steps of round {plan.round} are not in the plan's order"
    written = {(s.round, node.id): node.query for s in trace.steps if isinstance(s, Planned) for node in s.plan.nodes}
    filled = {(s.round, s.node): s.query for s in trace.steps if isinstance(s, Filled)}
    for step in trace.steps:
        if isinstance(step, Searched | SearchFailed):
            wanted = (written | filled).get((step.round, step.node))
            if step.query != wanted:
                yield f"{step.node} searched {step.query!r} instead of {wanted!r}"


# What was read


def _parsed(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    """Every step that says what the policy wrote can be read again from what it sampled, and from nothing else."""
    if trace.segments:
        yield from _steps_read(trace, protocol)
        yield from _plans_read(trace, protocol)


def _steps_read(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    blocks = list(_blocks(main_of(trace), protocol))
    quoted = [step for step in trace.steps if step.kind == "answered" and step.by == "loop"]
    known = [block for block in blocks if block.role in _BLOCKS.values() or block.role == "fill"]
    read = [("thought" if block.role == "fill" else block.role, block.text.strip()) for block in known]
    written = [step for step in trace.steps if step.kind in _BLOCKS and (step.segments or not quoted)]
    steps = [(_role(step), str(getattr(step, "text", ""))) for step in written]
    if trace.stopped and trace.stopped.reason == "forced":
        read = [part for part in read if part in steps]  # what a cut block holds may be the answer's
    if steps != read[: len(steps)]:
        yield f"the policy wrote {read}, and the steps say {steps}"
    if quoted:
        claims = [claim for step in trace.steps if isinstance(step, Evidenced) for claim in step.claims]
        if any(claim.check != "verbatim" for claim in claims) or " ".join(c.text for c in claims) != trace.answer:
            yield "the loop answered with what no passage says"
    elif trace.stopped and trace.stopped.reason == "answered":
        last = [block for block in blocks if block.role == "answer"][-1:]
        if not last or answer_in(last[0].text, protocol) != trace.answer:
            yield "the answer is not what the policy wrote"


def _plans_read(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    for plan in (step for step in trace.steps if isinstance(step, Planned)):
        written = "".join(trace.segments[at].text for at in plan.segments)
        if {trace.segments[at].by for at in plan.segments} - {"policy", "loop"}:
            yield "a plan was read from a segment that the policy did not sample"
        if protocol.plan == "lines" and any(node.query not in written for node in plan.plan.nodes):
            yield "a plan holds a query that the policy did not write"


def _role(step: Step) -> Role:
    return _BLOCKS[step.kind]


def _blocks(segments: Sequence[Segment], protocol: TextProtocol) -> Iterator[Block]:
    """Read a context again: sampled text alone, from inside of what the prompt or the loop opened."""
    reader = TagReader(protocol.policy_marks, opened=protocol.opened)
    over = False
    for segment in segments[1:]:
        if segment.by == "policy":
            for part in reader.feed(segment.text) if not over else ():
                if isinstance(part, Block):
                    yield part
                    if part.tagged and part.role in ("answer", *(() if protocol.several else ("search",))):
                        over = True
                        break
            continue
        if not over:
            yield from (part for part in reader.close() if isinstance(part, Block))
        over = False
        opened: Role | None = protocol.opened if segment.by == "environment" and protocol.deliver == "user" else None
        if segment.by == "loop":
            marks = protocol.policy_marks.items()
            opened = next((role for role, mark in marks if segment.text.rstrip().endswith(mark.open)), None)
        reader = TagReader(protocol.policy_marks, opened=opened)
    if not over:
        yield from (part for part in reader.close() if isinstance(part, Block))


# The loop's own words, branches, places, sums


def _loop(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    """The loop closes what is open and opens evidence or the answer; nothing else is its to say."""
    marks = {mark for role in protocol.policy_marks for mark in (protocol.opening(role), protocol.closing(role))}
    for segment in main_of(trace):
        rest = segment.text if segment.by == "loop" else ""
        for mark in marks:
            rest = rest.replace(mark, "")
        if rest.strip():
            yield f"the loop said {segment.text!r}"


def _branches(trace: Trace, protocol: TextProtocol) -> Iterator[str]:
    names = list(dict.fromkeys(s.branch for s in trace.segments if s.branch != "main"))
    if names != list(trace.branches):
        yield f"segments are of the branches {names}, and the trace knows {list(trace.branches)}"
    runs = [s.branch for n, s in enumerate(trace.segments) if not n or trace.segments[n - 1].branch != s.branch]
    if len([name for name in runs if name != "main"]) != len(names):
        yield "the segments of a branch do not stand together"
    places: list[tuple[int, int]] = []
    for name, branch in trace.branches.items():
        own = [segment for segment in trace.segments if segment.branch == name]
        fork = trace.segments[branch.segment]
        plans = [s for s in trace.steps if isinstance(s, Planned) and str(s.round) == name.split(".")[0]]
        if not plans or branch.node not in (ids := [node.id for node in plans[0].plan.nodes]):
            yield f"the branch {name} is of no node of its round"
            continue
        places.append((plans[0].round, ids.index(branch.node)))
        if fork.branch != "main" or fork.by != "policy" or branch.segment not in plans[0].segments:
            yield f"the branch {name} does not fork after the plan"
        yield from _branch(name, own, branch.node, protocol)
    if places != sorted(places):
        yield "the branches are not in the plan's order"


def _branch(name: str, own: Sequence[Segment], node: str, protocol: TextProtocol) -> Iterator[str]:
    before, _, after = protocol.parents.partition("{passages}")
    by = [segment.by for segment in own]
    if by[:2] not in (["environment"], ["environment", "loop"]) or by[2:] not in ([], ["policy"]):
        yield f"the branch {name} was written by {by}"
        return
    said = own[0].text
    if not said.startswith(before.lstrip()) and not said.startswith(before):
        yield f"the branch {name} does not begin as its wrapper does"
    if not said.endswith(after):
        yield f"the branch {name} does not end as its wrapper does"
    if len(own) > 1 and own[1].text != protocol.fill.format(opening=protocol.opening("fill"), node=node):
        yield f"the fill of {name} was opened with {own[1].text!r}"


def _places(trace: Trace) -> Iterator[str]:
    for step in trace.steps:
        if any(not 0 <= at < len(trace.segments) for at in step.segments):
            yield f"a step points at segments that are not there: {step.kind} {step.segments}"
        elif isinstance(step, Filled | Skipped) and step.segments and step.kind == "filled":
            if {trace.segments[at].branch for at in step.segments} != {f"{step.round}.{step.node}"}:
                yield f"the fill of {step.node} points at another branch"
        elif isinstance(step, Gathered) and any(trace.segments[at].by != "environment" for at in step.segments):
            yield "what was gathered points at what the environment did not say"


def _usage(trace: Trace) -> Iterator[str]:
    usage = trace.usage
    for by, counted in (("policy", usage.policy_tokens), ("environment", usage.environment_tokens)):
        ids = [segment.ids for segment in trace.segments if segment.by == by]
        if None not in ids and counted != sum(len(numbers or ()) for numbers in ids):
            yield f"the tokens of the {by} were not counted rightly"
    if usage.passages != len(trace.passages):
        yield "the passages were not counted rightly"
