"""Three states of a claim: on texts of our own, and within bounds on data sets that are not part of the project."""

import pytest

from agent.checks import State, check_claim, state_of
from agent.errors import SetupError
from agent.evidence import Passage
from agent.settings import load_settings
from agent.trace import Claim
from lab.benchmarks.checks.measure import measure_real
from lab.benchmarks.checks.real import real_claims
from tests.agent.checks.states_sample import SAMPLES, Sample


def shown(sample: Sample) -> dict[int, tuple[Passage, ...]]:
    return {1: (Passage(id="1", source="wiki", title=sample.title, text=sample.text, number=1),)}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.claim)
def test_a_claim_has_the_state_that_its_page_gives_it(sample: Sample):
    assert state_of(Claim(text=sample.claim, cites=(1,)), shown(sample)) == sample.state


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.claim)
def test_a_trace_holds_the_state(sample: Sample):
    checked = check_claim(Claim(text=sample.claim, cites=(1,)), shown(sample))
    held = {"supported": ("verbatim", "close"), "contradicted": ("contradicted",), "not_verified": ("not_found",)}
    assert checked.check in held[sample.state]
    assert bool(checked.quotes) <= (sample.state == "supported")


@pytest.mark.parametrize("title", ["Slow Harbour › Recording", "Albums › Slow Harbour (album) › Recording"])
@pytest.mark.parametrize(
    ("claim", "state"),
    [
        ("Slow Harbour was recorded in a barn near Guelph.", "supported"),
        ("Slow Harbour sold about 12,000 copies.", "supported"),
        ("Slow Harbour: 12,000 copies", "supported"),
        ("Paper Lanterns sold about 12,000 copies.", "not_verified"),
    ],
)
def test_a_section_of_a_page_is_about_what_the_page_is_about(title: str, claim: str, state: State):
    text = "It was recorded in a barn near Guelph. The album sold about 12,000 copies."
    assert state_of(Claim(text=claim, cites=(1,)), shown(Sample(title, text, claim, state))) == state


@pytest.mark.parametrize(
    ("claim", "state"),
    [
        ("Lina Orr was born in Rome.", "not_verified"),
        ("Lina Orr lived in Rome.", "not_verified"),
        ("Aurora Falls was directed by Ann Lee.", "contradicted"),
        ("Aurora Falls was not directed by Lina Orr.", "contradicted"),
    ],
)
def test_a_line_that_says_nothing_of_a_claim_but_its_name_contradicts_nothing(claim: str, state: State):
    page = Sample("Aurora Falls", "Aurora Falls was directed by Lina Orr.", claim, state)
    assert state_of(Claim(text=claim, cites=(1,)), shown(page)) == state


def state_on(text: str, claim: str) -> State:
    """What a page with this text says of a claim."""
    return state_of(Claim(text=claim, cites=(1,)), shown(Sample("Notes", text, claim, "supported")))


@pytest.mark.parametrize(
    ("text", "claim", "values"),
    [
        ("Ada Orr was born in 1867 and Lev Orr was born in 1859.", "Ada Orr was born in {}.", ("1867", "1859")),
        ("Ada Orr died in 1934, while Lev Orr died in 1906.", "Ada Orr died in {}.", ("1934", "1906")),
        ("Acme was founded in 1985 and Globex was founded in 1999.", "Globex was founded in {}.", ("1999", "1985")),
        ("Dune was directed by Lev Orr and Alba was directed by Ann Lee.", "Alba was directed by {}.", ("Lee", "Orr")),
        ("Ur is the capital of Elam and Wend is the capital of Bern.", "{} is the capital of Bern.", ("Wend", "Ur")),
    ],
)
def test_of_two_facts_in_one_sentence_each_has_its_own_value(text: str, claim: str, values: tuple[str, str]):
    own, other = (state_on(text, claim.format(value)) for value in values)
    assert own == "supported"
    assert other != "supported"


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("Oslo is larger than New York.", "New York is larger than Oslo."),
        ("Model B is more accurate than Model A.", "Model A is more accurate than Model B."),
        ("The tunnel is longer than the bridge.", "The bridge is longer than the tunnel."),
        ("India exports more steel than China.", "China exports more steel than India."),
        ("Italy narrowly beat Brazil 3-2.", "Brazil narrowly beat Italy 3-2."),
        ("Alpha Corp supplies Beta Group.", "Beta Group supplies Alpha Corp."),
    ],
)
def test_a_comparison_or_an_action_with_its_ends_exchanged_is_not_supported(text: str, turned: str):
    assert state_on(f"In 2020, {text}", text) == "supported"
    assert state_on(text, turned) != "supported"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Bergen is 300 km from Oslo.", "Oslo is 300 km from Bergen."),
        ("Beta Group is supplied by Alpha Corp.", "Alpha Corp supplies Beta Group."),
        ("Compared with Rust, Python is faster.", "Python is faster than Rust."),
    ],
)
def test_another_order_of_words_may_say_the_same(text: str, claim: str):
    assert state_on(text, claim) == "supported"


@pytest.mark.parametrize(
    ("text", "claim", "values"),
    [
        ("Sales were 5 million in 2019 and 7 million in 2020.", "Sales were {} million in 2020.", ("7", "5")),
        ("In 2019, sales were 5 tons, and in 2020, sales were 7 tons.", "In 2020, sales were {} tons.", ("7", "5")),
        ("Norland has 84 towns and Aurelia 68.", "Aurelia has {} towns.", ("68", "84")),
        ("Alba reached 88.4 points, while Berta reached 91.2.", "Alba reached {} points.", ("88.4", "91.2")),
        ("Ann Lee visited Rome in 1940 and Bob Orr in 1950.", "Ann Lee visited Rome in {}.", ("1940", "1950")),
        ("Ann Lee joined Acme in 1940 and left Globex in 1950.", "Ann Lee left Globex in {}.", ("1950", "1940")),
    ],
)
def test_of_two_values_in_one_sentence_each_has_its_place(text: str, claim: str, values: tuple[str, str]):
    own, other = (state_on(text, claim.format(value)) for value in values)
    assert own == "supported"
    assert other != "supported"


@pytest.mark.parametrize(
    ("text", "claim", "state"),
    [
        ("By default, debug is false.", "debug is set to false by default.", "supported"),
        ("The debug option defaults to false.", "The debug option is false by default.", "supported"),
        ("By default, debug is false.", "debug is not set to false by default.", "contradicted"),
        ("It is false that the tower was painted red.", "The tower was painted red.", "contradicted"),
        ("Lina Orr took the wrong train to Rome.", "Lina Orr took the train to Rome.", "contradicted"),
    ],
)
def test_false_negates_what_follows_and_is_a_value_elsewhere(text: str, claim: str, state: State):
    assert state_on(text, claim) == state


@pytest.mark.parametrize(
    "text",
    [
        "Everyone except Ann Lee attended the meeting.",
        "Everybody but Ann Lee attended the meeting.",
        "Every senator but Ann Lee attended the meeting.",
        "All members, excluding Ann Lee, attended the meeting.",
        "Instead of Ann Lee, Bob Orr attended the meeting.",
    ],
)
def test_an_exception_is_not_supported(text: str):
    assert state_on(text, "Ann Lee attended the meeting.") != "supported"
    assert state_on(text, text) == "supported"


def test_a_claim_that_cites_nothing_is_not_verified():
    assert state_of(Claim(text="Lower Asker is a town.", cites=()), {}) == "not_verified"


@pytest.mark.slow
def test_on_real_pages_few_false_claims_are_supported_and_few_true_ones_contradicted():
    try:
        figures = measure_real(real_claims(load_settings().data, "test"))
    except SetupError as error:
        pytest.skip(str(error))
    assert figures.count("all", true=True) >= 400
    assert figures.recall("all") >= 0.95
    assert figures.right("all", "supported") >= 0.94
    assert figures.right("all", "contradicted") >= 0.94
    assert all(figures.precision(kind) >= 0.9 for kind in ("sentence", "relation", "pointer", "value"))


def test_there_are_enough_samples_of_each_state():
    states = [sample.state for sample in SAMPLES]
    assert len(states) >= 40
    assert min(states.count(state) for state in ("supported", "not_verified", "contradicted")) >= 8
