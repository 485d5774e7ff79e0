import pytest

from agent.sources.questions import GoldQuestion
from tests.train.evaluation.traces import FERRY, HARBOUR, MARN, QUESTION, passage
from train.evaluation.answer import Citation
from train.evaluation.gold import GoldBook, gold_among, gold_name, gold_of, in_corpus, plain_url

TITLED = QUESTION.model_copy(update={"titles": ("Tarn_Harbour", "Ilse Marn")})
FRAMES = GoldQuestion(
    id="f",
    question="?",
    answers=("30",),
    supporting=("https://en.wikipedia.org/wiki/Tarn_Harbour", "https://en.wikipedia.org/wiki/Ilse_Marn"),
    titles=("Tarn Harbour", "Ilse Marn"),
)


def test_passages_are_gold_by_their_id_and_a_part_counts_as_the_whole():
    found = [passage("harbour#2", "x"), FERRY, passage("harbour#1", "y")]
    assert gold_among(QUESTION, found) == {"harbour"}
    assert gold_name(QUESTION, MARN) == "marn"
    assert gold_name(QUESTION, passage("marn-2", "x")) == ""


def test_a_title_alone_makes_no_passage_gold_where_the_corpus_has_the_ids():
    book = GoldBook.of([TITLED], [passage("harbour", "x", title="Tarn Harbour"), FERRY])
    assert book.titles
    assert not book.by_title
    assert gold_name(TITLED, passage("x", "y", title="Tarn Harbour"), book) == ""
    assert in_corpus(TITLED, book) == 0.5


def test_in_a_corpus_with_other_ids_titles_are_compared():
    wiki = [
        passage("w1", "x", title="Tarn harbour"),
        passage("w2", "y", title="Brell"),
        passage("w3", "z", title="Tarn harbour"),
    ]
    book = GoldBook.of([TITLED], wiki)
    assert book.by_title
    assert gold_of(TITLED, book) == ("tarn harbour", "ilse marn")
    assert gold_among(TITLED, wiki, book) == {"tarn harbour"}
    assert in_corpus(TITLED, book) == 0.5
    assert gold_name(TITLED, HARBOUR, book) == ""  # an id that only looks like gold


def test_a_corpus_that_has_nothing_of_the_gold_says_so():
    book = GoldBook.of([QUESTION], [FERRY])
    assert in_corpus(QUESTION, book) == 0.0
    assert in_corpus(QUESTION.model_copy(update={"supporting": ()}), book) is None


def test_gold_that_is_an_address_is_known_by_it():
    page = passage("w1", "x", url="http://www.en.wikipedia.org/wiki/Tarn_Harbour#History")
    book = GoldBook.of([FRAMES], [page])
    assert gold_name(FRAMES, page) == FRAMES.supporting[0]
    assert gold_name(FRAMES, page, book) == FRAMES.supporting[0]
    assert gold_name(FRAMES, Citation(url="https://en.m.wikipedia.org/wiki/Ilse_Marn/")) == FRAMES.supporting[1]
    assert in_corpus(FRAMES, book) == 0.5


def test_a_citation_by_address_is_the_passage_that_stands_there():
    book = GoldBook.of([QUESTION], [passage("marn", MARN.text, url="https://web.little.world/7"), FERRY])
    assert gold_name(QUESTION, Citation(url="https://web.little.world/7/"), book) == "marn"
    assert gold_name(QUESTION, Citation(url="https://web.little.world/8"), book) == ""
    assert gold_name(QUESTION, Citation(title="Marn"), book) == ""


def test_the_book_keeps_the_text_of_gold_alone_and_joins_parts():
    book = GoldBook.of([QUESTION], [passage("marn#1", "One."), FERRY, passage("marn#2", "Two.")])
    assert dict(book.texts) == {"marn": "One.\nTwo."}


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("HTTPS://WWW.Tarn.Test/A/", "tarn.test/A"),
        ("http://en.m.wikipedia.org/wiki/X%20Y#z", "en.wikipedia.org/wiki/X Y"),
        ("tarn.test/a?b=1", "tarn.test/a?b=1"),
        ("", ""),
    ],
)
def test_addresses_are_compared_without_what_does_not_matter(url: str, plain: str):
    assert plain_url(url) == plain
