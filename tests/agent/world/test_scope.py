"""The guard of the embedded policy: every question of the world is inside, and no question about the real one."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.world import World, load_world
from agent.world.names import could_be_named, split_of, words
from agent.world.scope import SENTENCE

Turns = tuple[tuple[str, str], ...]

REAL = (
    "What is Cairn?",
    "Who wrote Cairn, and when was it released?",
    "Who is the president of France?",
    "What is the capital of Australia?",
    "Who was Victor Hugo?",
    "What did Otto von Bismarck do in 1871?",
    "Who shot Lee Harvey Oswald?",
    "Which country does Christmas Island belong to?",
    "Who plays Iron Man?",
    "What is a Yellow Umbrella protest?",
    "Was Ada Lovelace the first programmer?",
    "Who sings with Iris Murdoch?",
    "When was Ursula von der Leyen born?",
    "Which novels did Ursula Le Guin publish?",
    "Who directed The Godfather?",
    "Who founded Microsoft Works?",
    "What is the New York Philharmonic Society?",
    "Where is the West Bridge of Cambridge University?",
    "Who won the Nobel Prize in 2020?",
    "Who is the mayor of London?",
    "Where was Albert Einstein born?",
    "Who taught Alexander the Great?",
    "Who is married to Taylor Swift?",
    "Which university did Barack Obama attend?",
    "Who composed the music of Star Wars?",
    "In which city does the parliament of Norway meet?",
    "When was Berlin founded?",
    "Which company now employs Linus Torvalds?",
    "How many films did Stanley Kubrick direct?",
    "Who was chancellor of Germany in 2015?",
    "Which film was released first, Alien or Blade Runner?",
    "Who was born in Hartford and studied at Portland?",
    "What is the twin city of Liverpool?",
    "Where is Toyota based?",
    "Who runs OpenAI?",
    "What is machine learning?",
    "how do i install python on windows",
    "what is zanzibar?",
    "What is the tallest mountain?",
    "What time is it?",
    "Will it rain tomorrow?",
    "Tell me a joke.",
    "Who are you?",
    "Can you write a poem about the sea?",
    "What is 17 times 23?",
    "Translate good morning into Spanish.",
    "Which paper introduced the Transformer?",
    "What does the Riemann hypothesis say?",
    "Who discovered penicillin?",
    "Why is the sky blue?",
    "Is there life on Mars?",
    "How high is the Eiffel Tower?",
    "Who wrote One Hundred Years of Solitude?",
    "What is the population of India?",
    "Which countries are in the European Union?",
    "Summarise the news of today.",
    "Who is Wendell Berry?",
    "Who was Isambard Kingdom Brunel?",
    "Where is Gdansk, and who lives there?",
    "Who owns the Financial Times Group?",
    "Is Bernard Hinault older than Norman Mailer?",
    "And who is the king of Spain?",
)
REAL_FOLLOW_UPS: tuple[tuple[Turns, str], ...] = (
    ((("Who is the president of France?", "Emmanuel Macron"),), "And when was he born?"),
    ((("Who is the president of France?", SENTENCE),), "And who is his wife?"),
    ((("Who wrote Hamlet?", "William Shakespeare"),), "And where was he born?"),
    ((("Where is Toyota based?", "Toyota City"), ("And who runs it?", "Koji Sato")), "And where did he study?"),
    ((("What is Cairn?", SENTENCE),), "And who founded that company?"),
    ((("Who composed the music of Star Wars?", "John Williams"),), "And its director?"),
    ((("When was Berlin founded?", "1237"),), "And its mayor?"),
    ((("What is the capital of Australia?", "Canberra"),), "And what about New Zealand?"),
    ((("Hello!", "Hello! How can I help?"),), "Who is she?"),
    ((("Who taught Alexander the Great?", "Aristotle"),), "And whose pupil was that one?"),
)
INSIDE_TURN = ("Who directed The Dandire Harbour?", "Zindico Pornane")
CHANGED_SUBJECT = (
    "And who is the president of France?",
    "Who is the president of France?",
    "What is Cairn?",
    "And what is zanzibar?",
    "Is he older than Barack Obama?",
    "What is the tallest mountain?",
    "Did she ever visit Paris?",
)
"""Real questions behind a turn of the world."""


@pytest.fixture(scope="module", params=["test-v1", "test-v2", "dev-v2"])
def world(request: pytest.FixtureRequest) -> World:
    return load_world(str(request.param))


@pytest.fixture(scope="module")
def newest() -> World:
    return load_world("test-v2")


def test_every_question_of_every_list_is_inside_with_its_history(world: World) -> None:
    assert world.questions
    assert [q.question for q in world.questions if world.outside(q.question, q.history)] == []


def test_real_questions_are_outside_and_the_sentence_says_how_to_connect_a_model(world: World) -> None:
    assert len(REAL) >= 60
    assert [question for question in REAL if world.outside(question) != SENTENCE] == []
    assert "cairn serve --policy openai --base-url" in SENTENCE


def test_follow_ups_in_a_real_conversation_are_outside(world: World) -> None:
    assert [question for history, question in REAL_FOLLOW_UPS if not world.outside(question, history)] == []


def test_a_real_question_behind_a_turn_of_the_world_is_outside(newest: World) -> None:
    assert [question for question in CHANGED_SUBJECT if not newest.outside(question, [INSIDE_TURN])] == []


def test_a_follow_up_leans_on_turns_that_lean_on_a_name(newest: World) -> None:
    history = [INSIDE_TURN, ("And when was he born?", "1950"), ("And since when?", "1980")]
    assert newest.outside("And what is its capital?", history) is None
    refused = [*history, ("Who is the president of France?", SENTENCE)]
    assert newest.outside("And where was he born?", refused) == SENTENCE


def test_a_world_without_follow_ups_takes_none_for_its_policy_learned_none() -> None:
    first = load_world("test-v1")
    question = next(q for q in first.questions if q.type == "chain1")
    history = [(question.question, question.answers[0])]
    assert first.outside("And when was it founded?", history) == SENTENCE
    assert first.outside(question.question, history) is None


def test_a_name_that_no_one_has_is_inside_where_the_policy_knows_to_say_so(newest: World) -> None:
    question = "Who taught Jostel Zindado?"
    assert question in {q.question for q in newest.questions if q.unanswerable}
    assert newest.outside(question) is None
    assert load_world("test-v1").outside(question) == SENTENCE


@given(first=st.sampled_from(words("first", "test")), last=st.sampled_from(words("last", "test")))
def test_every_first_and_last_name_of_a_split_could_be_a_person_s_there_alone(first: str, last: str) -> None:
    assert split_of(last) == "test"
    assert could_be_named(first, last, "test")
    assert not could_be_named(first, last, "train")


@given(st.text(max_size=80), st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)), max_size=4))
def test_any_text_is_inside_or_outside(question: str, history: list[tuple[str, str]]) -> None:
    assert _WORLD.outside(question, history) in (None, SENTENCE)


_WORLD = load_world("dev-v2")


@pytest.mark.parametrize("text", [". " * 500_000, "And " * 500_000, "Aa" * 500_000, "that " * 500_000, "A" * 1_000_000])
def test_of_a_long_history_a_bounded_part_is_read(newest: World, text: str) -> None:
    before = process_time()
    assert newest.outside(text, [(text, text)] * 1_000) == SENTENCE
    assert newest.outside("And his?", [("and his", "his")] * 1_000_000) == SENTENCE
    assert process_time() - before < 3
