"""docs/protocols.md says what is: its tables are those of the protocols, its example works.

`python -m tests.agent.test_protocol_docs` prints the rows of the tables.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.loop.agent import Agent
from agent.policies.scripted import ScriptedPolicy
from agent.protocols import TextProtocol, load_protocol, profile_names, protocol_named, protocol_names
from agent.protocols.chat import CHAT_TEMPLATES
from agent.sources.base import Source
from agent.trace.transcript import explain
from tests.conftest import Echo, answer

PAGE = Path(__file__).parent.parent.parent / "docs" / "protocols.md"
BAR = "\\|"
"""A bar in a cell of a table."""
BOX = "`\\boxed{}`"


def rows() -> Iterator[str]:
    for name in (*protocol_names(), *profile_names()):
        protocol = protocol_named(name)
        marks = (f"`{protocol.opening(role)}`" for role in ("search", "information"))
        rounds = f"{protocol.max_rounds}" + (f" / {protocol.turn_tokens:,}" if protocol.turn_tokens else "")
        cells = (f"`{name}`", _chat(protocol), *marks, _queries(protocol), str(protocol.passages), _budget(protocol),
                 protocol.numbering, rounds, _place(protocol), ", ".join(protocol.foreign) or "–")  # fmt: skip
        yield f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def _chat(protocol: TextProtocol) -> str:
    return next((name for name, template in CHAT_TEMPLATES.items() if template == protocol.chat), "plain")


def _queries(protocol: TextProtocol) -> str:
    match protocol.plan:
        case "lines":
            return f"lines, up to {protocol.max_queries}"
        case "queries":
            return f"up to {protocol.max_queries}, `{protocol.separator}` between"
        case "query":
            return "one"
        case "graph":
            return "JSON for documents and graph"
        case "calls":
            return "function calls" if protocol.several else "one function call"


def _budget(protocol: TextProtocol) -> str:
    tokens, chars = protocol.budget_tokens, protocol.budget_chars
    graph = f", and {protocol.graph_chars:,} of triples" if protocol.graph_chars else ""
    return (f"{tokens:,} tokens" if tokens else f"{chars:,} characters") + graph


def _place(protocol: TextProtocol) -> str:
    opening = f"`{protocol.opening('answer')}`"
    if protocol.closing("answer") == "}":
        return BOX
    return opening if protocol.answer_in == "text" else f"{BOX} in {opening}"


def example() -> str:
    found = re.search(r"```toml\n# mine\.toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def mine(tmp_path: Path) -> TextProtocol:
    (tmp_path / "mine.toml").write_text(example(), encoding="utf-8")
    return load_protocol(tmp_path / "mine.toml")


def test_the_tables_are_those_of_the_protocols():
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [row for row in rows() if row not in page] == []


def test_the_example_of_a_protocol_of_ones_own_runs(mine: TextProtocol):
    turns = ["I look.\n<ask>who wrote Dune; when</ask>", "<reply>Frank Herbert</reply>"]
    sources: dict[str, Source] = {"all": Echo("all")}
    trace = answer([], agent=Agent(ScriptedPolicy(turns), mine, sources))
    assert trace.answer == "Frank Herbert"
    assert trace.segments[0].text == "Answer with <reply>. Search with <ask>.\nQuestion: Who wrote Dune?\n"
    assert trace.segments[2].text == (
        "\n<found>\n1. who wrote Dune: All about who wrote Dune.\n2. when: All about when.\n</found>\n"
    )


def test_the_transcript_of_the_example_is_well_formed(mine: TextProtocol):
    text = "<ask>a; b</ask>\n<found>\n1. T: x\n</found>\n<reply>c</reply>"
    assert explain(text, protocol=mine).verdict == "well-formed"


def test_every_command_of_the_page_is_one():
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"cairn (protocol \w+|bench \w+|ask|serve)", page))
    assert named <= {"protocol list", "protocol show", "protocol check", "bench trajectories", "ask", "serve"}


if __name__ == "__main__":
    print("\n".join(rows()))  # noqa: T201 - for a person who edits the page
