import io
from collections.abc import Sequence

from rich.console import Console

from agent.cli.draw import TraceView, cited_passages, closing_line, ending
from agent.errors import Failure
from agent.evidence import Passage
from agent.plan import Filter, Node, Plan
from agent.trace import (
    Answered,
    Claim,
    Delta,
    Event,
    Evidenced,
    Gathered,
    Merged,
    Planned,
    PlanRejected,
    Quote,
    Searched,
    Skipped,
    Step,
    Stopped,
    Trace,
    Usage,
)


def passage(number: int, title: str, text: str = "") -> Passage:
    return Passage(id=title, source="web", title=title, text=text or title, number=number)


def trace_of(*steps: Step) -> Trace:
    return Trace(id="t", question="q", protocol="cairn", policy="p", steps=list(steps))


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def drawn(events: Sequence[Event]) -> str:
    """What is on the page of a plain console afterwards."""
    console = Console(file=io.StringIO(), width=100)
    with TraceView(console) as view:
        for event in events:
            view.show(event)
    return written(console)


def moving(events: Sequence[Event]) -> str:
    """What a terminal redraws while these are the latest events."""
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    view = TraceView(console)
    for event in events:
        view.show(event)
    console.print(view.open_part())
    return written(console)


PLAN = Plan(
    nodes=(
        Node(id="A", query="premiere", source="news", filters=(Filter(name="after", value="2026-01-01"),)),
        Node(id="C", query="birthplace of #A", source="kg", parents=("A",)),
    )
)


def test_a_running_plan_shows_who_runs_and_who_waits():
    printed = moving([Planned(round=1, plan=PLAN)])
    assert "A: premiere (news, after 2026-01-01)" in printed
    assert "waits for A" in printed


def test_a_plan_that_has_run_shows_how_each_node_ended():
    printed = drawn(
        [
            Planned(round=1, plan=PLAN),
            Searched(round=1, node="A", source="news", query="premiere", passages=(), took=0.012, note="no dates here"),
            Skipped(round=1, node="C", why="nothing to ask"),
            Gathered(round=1, passages=(), dropped=2),
        ]
    )
    assert "✓ A: premiere (news, after 2026-01-01)  nothing found · 12 ms · no dates here" in printed
    assert "- C: birthplace of #A (kg)  skipped: nothing to ask" in printed
    assert "2 more not shown" in printed


def test_a_search_that_was_healed_says_what_failed_what_answered_and_what_it_cost():
    failure = Failure(backend="tavily", kind="rate", why="429")
    healed = Searched(
        round=1,
        node="A",
        source="news",
        query="premiere",
        passages=(passage(1, "t"),),
        backend="brave",
        cached="stale",
        usd=0.005,
        failures=(failure, failure),
    )
    printed = drawn([Planned(round=1, plan=PLAN), healed, Gathered(round=1, passages=())])
    assert "1 found · brave · cached, out of date · 0.0 ms · $0.005 · tavily failed (rate)" in printed


def test_a_rejected_plan_says_why():
    assert "The plan was rejected: edge" in drawn([PlanRejected(round=1, text="…", why="edge 'A -> B' names 'B'")])


def test_open_text_is_drawn_in_a_terminal_only():
    events = [Delta(role="thought", text="half a "), Delta(role="thought", text="thought")]
    assert "half a thought" in moving(events)
    assert drawn(events) == ""


def test_text_from_elsewhere_cannot_steer_the_terminal_or_the_markup():
    evil = "\x1b]0;owned\x07\x1b[2J [bold]x[/bold] \u202egnol\u200b :smile:"
    printed = drawn([Gathered(round=1, passages=(passage(1, "t", evil),)), Answered(text=evil)])
    assert not set("\x1b\x07\u202e\u200b") & set(printed)
    assert "[bold]x[/bold]" in printed
    assert ":smile:" in printed


def test_a_claim_is_drawn_with_what_the_cited_passages_say_of_it():
    claims = (
        Claim(text="She was born in Trieste.", cites=(1,), check="close"),
        Claim(text="She was born in Rome.", cites=(1,), check="not_found"),
        Claim(text="It is a fine town.", cites=(), check="not_found"),
        Claim(text="She died in 1999.", cites=(1,), check="contradicted"),
    )
    printed = drawn([Evidenced(text="…", claims=claims)])
    assert "• She was born in Trieste. [1] close" in printed
    assert "• She was born in Rome. [1] not found in what it cites" in printed
    assert "• It is a fine town. no passage cited" in printed
    assert "• She died in 1999. [1] contradicted by what it cites" in printed


def test_of_a_merge_only_what_was_not_found_is_drawn_again():
    claims = (Claim(text="A.", cites=(1,), check="close"), Claim(text="B.", cites=(1,), check="not_found"))
    printed = drawn([Merged(text="A [1]. B [1].", claims=claims)])
    assert "• B. [1] not found in what it cites" in printed
    assert "• A." not in printed


def test_the_evidence_decides_what_is_cited():
    first, second = passage(1, "one"), passage(2, "two")
    steps = (Gathered(round=1, passages=(first, second)), Merged(text="See [1]."))
    assert cited_passages(trace_of(*steps)) == [first]
    evidence = Evidenced(text="…", claims=(Claim(text="c", cites=(2, 9)), Claim(text="d", cites=(2,))))
    assert cited_passages(trace_of(*steps, evidence)) == [second]


def test_numbers_that_go_on_through_the_rollout_mean_the_same_passage_to_its_end():
    first, second = passage(1, "one"), passage(2, "two")
    evidence = Evidenced(text="…", claims=(Claim(text="c", cites=(1, 2)),))
    steps = (Gathered(round=1, passages=(first,)), Gathered(round=2, passages=(second,)), evidence)
    assert cited_passages(trace_of(*steps)) == [first, second]


def test_of_a_number_that_several_queries_gave_the_passage_that_is_quoted_counts():
    lina, tides = passage(1, "Lina", "Lina Orr was born in Trieste."), passage(1, "Tides")
    quote = Quote(number=1, start=0, end=8, text="Lina Orr")
    claim = Claim(text="She was born in Trieste.", cites=(1,), quotes=(quote,))
    steps = (Gathered(round=1, passages=(lina, tides)), Merged(text="She was born in Trieste [1].", claims=(claim,)))
    assert cited_passages(trace_of(*steps)) == [lina]


def test_numbers_that_start_again_each_round_mean_the_passage_of_their_round():
    old, new = passage(1, "old"), passage(1, "new")
    steps = (
        Gathered(round=1, passages=(old,)),
        Merged(text="[1]"),
        Gathered(round=2, passages=(new,)),
        Merged(text="[1]"),
    )
    assert cited_passages(trace_of(*steps)) == [old, new]


def test_the_closing_line_counts_in_words():
    trace = trace_of(Stopped(reason="answered"))
    trace.usage = Usage(rounds=1, searches=2, policy_tokens=1234)
    assert closing_line(trace) == "answered · 1 round · 2 searches · 1,234 tokens · 0.00 s"
    trace.usage = Usage(rounds=1, searches=2, policy_tokens=1, usd=0.016)
    assert closing_line(trace) == "answered · 1 round · 2 searches · 1 token · $0.016 · 0.00 s"


def test_how_it_ended_is_said_in_words():
    over = trace_of(Stopped(reason="forced", budget="seconds"))
    assert ending(over) == "ended without an answer because its time was over"
    answered = trace_of(Answered(text="Trieste"), Stopped(reason="forced", budget="seconds"))
    assert ending(answered) == "answered because its time was over"
    assert ending(trace_of(Stopped(reason="engine", detail="gone"))) == "no answer: the engine failed (gone)"
    assert ending(trace_of()) == "not finished"
