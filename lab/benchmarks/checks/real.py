"""Claims about real pages, true ones and ones with one thing wrong, made of data sets that stay outside the project.

What is claimed comes from people who read the page: questions with their answers, relations with the sentences that
state them, and the page's own sentences, shortened and reworded. A page gives claims to one half only.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from agent.errors import SetupError
from lab.benchmarks.checks.claims import (
    BRACKETS,
    ENDS,
    MAKERS,
    NUMBER,
    WRONGS,
    Half,
    Maker,
    Makes,
    Page,
    RealClaim,
    Wrong,
    half_of,
    lines,
    other_number,
)
from lab.benchmarks.checks.english import PRONOUN, capital, negated, other_verb, reworded, shortened, statement, turned
from lab.benchmarks.checks.relations import folded, names
from lab.benchmarks.checks.triples import DOCUMENTS, TRIPLES, of_relations, page_of

QUESTIONS: Final = "train_span_squad36k"
PASSAGES: Final = "train_hotpotqa1197"
FOLDERS: Final = (QUESTIONS, DOCUMENTS, TRIPLES, PASSAGES)
PAIRS: Final[Mapping[Maker, int]] = {"question": 200, "sentence": 200, "relation": 200, "pointer": 200, "value": 100}
"""Pairs of a true claim and a false one that a half holds at most."""
Pair = tuple[RealClaim, RealClaim]


def real_claims(data: Path, half: Half, *, seed: int = 0, pairs: Mapping[Maker, int] = PAIRS) -> list[RealClaim]:
    """For each true claim a false one that is made of it; each maker gives at most that many pairs.

    Raises:
        SetupError: a data set is not there.
    """
    if missing := [name for name in FOLDERS if not (data / name).is_dir()]:
        raise SetupError(f"{data / missing[0]} is not there: claims about real pages need this data set")
    made: list[RealClaim] = []
    for maker in MAKERS:
        count, wrongs, rng = 0, dict.fromkeys(WRONGS, 0), random.Random(f"real claims {maker} {half} {seed}")
        for makes in _makers(maker, data, half, rng):
            if count == pairs[maker]:
                break
            if pair := _pair(makes, wrongs):
                made += pair
                count += 1
    return made


def _pair(makes: Makes, wrongs: dict[Wrong, int]) -> Pair | None:
    """A true claim with a false one, of the kinds that are possible the one that is rarest so far."""
    claim, ways = makes
    for wrong in sorted(ways, key=lambda one: (wrongs[one], WRONGS.index(one))):
        text = ways[wrong]()
        if text and folded(text) != folded(claim.text):
            wrongs[wrong] += 1
            return claim, replace(claim, text=text, wrong=wrong)
    return None


def _makers(maker: Maker, data: Path, half: Half, rng: random.Random) -> Iterator[Makes]:
    match maker:
        case "question":
            yield from _of_questions(data, half, rng)
        case "sentence":
            yield from _of_sentences(data, half, rng)
        case "value":
            yield from _of_values(data, half, rng)
        case "relation" | "pointer":
            yield from of_relations(data, half, rng, pointer=maker == "pointer")


# Questions with their answers


def _of_questions(data: Path, half: Half, rng: random.Random) -> Iterator[Makes]:
    pages = {page["id"]: page for page in lines(data / QUESTIONS / "corpus.jsonl") if half_of(page["title"]) == half}
    questions = [q for q in lines(data / QUESTIONS / "questions.jsonl") if q["supporting"][0] in pages]
    beside: dict[str, list[tuple[str, str]]] = {}
    for q in questions:
        beside.setdefault(q["supporting"][0], []).append((_asks(q["question"]), q["answers"][0]))
    rng.shuffle(questions)
    seen: set[str] = set()
    for q in questions:
        number = q["supporting"][0]
        text = statement(q["question"], q["answers"][0])
        if not text or number in seen:
            continue
        seen.add(number)
        page = Page(pages[number]["title"], pages[number]["text"], {})
        claim = RealClaim(text, page.title, page.text, "question")
        answer, asks = q["answers"][0].strip(" ."), _asks(q["question"])
        near = [other for kind, other in beside[number] if kind == asks]
        yield claim, _ways(text, page, rng, [answer], partial(_another, answer, near, page.text, rng))


def _asks(question: str) -> str:
    """What kind of answer a question wants: its first word; of "in what year" and the like, the noun."""
    words = question.lower().split()
    noun = next((words[at + 1] for at, word in enumerate(words[:-1]) if word in ("what", "which")), "")
    if noun in ("year", "month", "day", "date", "city", "country", "century", "state"):
        return {"year": "when", "city": "where", "country": "where", "state": "where"}.get(noun, noun)
    return " ".join(words[:2]) if words[0] == "how" else words[0]


_OF_STATES: Final = frozenset(("us", "u s", "united states", "america", "american"))
"""Where nearly everything lies: put for another name it is often no false claim."""


def _another(value: str, near: Sequence[str], text: str, rng: random.Random) -> str | None:
    """Another value of the same kind; from the page, if it has one."""
    wanted = set(folded(value).split())
    digits = any(c.isdigit() for c in value)
    fits = [
        other.strip(" .,")
        for other in near
        if not wanted & set(folded(other).split())
        and not (_OF_STATES & {folded(value), folded(other)})
        and len(other.split()) < 6
        and any(c.isdigit() for c in other) == digits
        and other[:1].isupper() == value[:1].isupper()
    ]
    return rng.choice(sorted(set(fits))) if fits else None


def _ways(
    text: str, page: Page, rng: random.Random, values: Sequence[str], another: Callable[[], str | None]
) -> dict[Wrong, Callable[[], str | None]]:
    """How a statement is made wrong; `values`: what it may name falsely."""

    def entity() -> str | None:
        value = rng.choice(values)
        other = another() if not any(c.isdigit() for c in value) else None
        return _put(text, value, other) if other else None

    return {
        "entity": entity,
        "number": lambda: other_number(text, page.text, rng),
        "relation": lambda: other_verb(text, page.text, rng),
        "swap": lambda: turned(text),
        "negation": lambda: None if re.search(r"\b(not|never|no)\b", text) else negated(text),
    }


def _put(text: str, value: str, other: str) -> str | None:
    found = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text)
    return capital(text[: found.start()] + other + text[found.end() :]) if found else None


# Sentences of pages


def _of_sentences(data: Path, half: Half, rng: random.Random) -> Iterator[Makes]:
    documents = [d for d in lines(data / DOCUMENTS / "documents.jsonl") if half_of(d["title"]) == half]
    pages = [page_of(d) for d in documents]
    texts = [d["sentences"] for d in documents]
    for p in lines(data / PASSAGES / "corpus.jsonl"):
        if half_of(p["title"]) == half and len(pages) < 3000:
            pages.append(Page(p["title"], p["text"], {}))
            texts.append(ENDS.split(p["text"]))
    order = list(range(len(pages)))
    rng.shuffle(order)
    for at in order:
        page, sentences = pages[at], texts[at]
        places = list(range(len(sentences)))
        rng.shuffle(places)
        for place in places:
            text = _said(page, sentences, place, rng)
            if text and folded(text) not in folded(page.text):  # its own words are no test
                names = [n for n in _named(text) if n in page.text]
                near = [n for n in _named(BRACKETS.sub("", page.text)) if n not in text and n not in page.title]
                value = rng.choice(names or [""])
                claim = RealClaim(text, page.title, page.text, "sentence")
                ways = _ways(text, page, rng, [value], partial(_another, value, near, page.text, rng))
                yield claim, ways
                break


_NAMES: Final = re.compile(r"\b[A-Z][\w-]+(?: (?:of |the )?[A-Z][\w-]+){0,4}")


def _named(text: str) -> list[str]:
    """The names of a text that begin no sentence."""
    return [match[0] for match in _NAMES.finditer(text) if re.search(r"[a-z,] $", text[: match.start()])]


def _said(page: Page, sentences: Sequence[str], place: int, rng: random.Random) -> str | None:
    """One sentence of a page as it would be retold: shortened, its pronoun resolved, in other words."""
    name = BRACKETS.sub("", page.title)
    sentence = BRACKETS.sub("", sentences[place]).strip()
    if match := PRONOUN.match(sentence):
        first = place < 3 and sentences[0].startswith(name.split()[0])
        if not first or (match[1] in ("It", "They") and place > 1):
            return None
        sentence = f"{name} {sentence[match.end() :]}"
    short = shortened(sentence)
    return reworded(short, rng) if short else None


# Values alone


def _of_values(data: Path, half: Half, rng: random.Random) -> Iterator[Makes]:
    """The title and what the page answered: "Frédéric Chopin: 1829"."""
    pages = {page["id"]: page for page in lines(data / QUESTIONS / "corpus.jsonl") if half_of(page["title"]) == half}
    questions = [q for q in lines(data / QUESTIONS / "questions.jsonl") if q["supporting"][0] in pages]
    rng.shuffle(questions)
    values: dict[str, list[str]] = {}
    for q in questions:
        values.setdefault(_asks(q["question"]), []).append(q["answers"][0])
    titles = sorted({page["title"] for page in pages.values()})
    seen: set[str] = set()
    for q in questions:
        page, answer = pages[q["supporting"][0]], q["answers"][0].strip(" .,")
        if page["title"] in seen or len(answer.split()) > 5 or not (answer[0].isupper() or answer[0].isdigit()):
            continue
        seen.add(page["title"])
        yield _valued(page, answer, values[_asks(q["question"])], titles, rng)


def _longest(text: str) -> str:
    """The longest number of a text."""
    return max(NUMBER.findall(text), key=len, default=text)


def _valued(
    page: Mapping[str, Any], answer: str, values: Sequence[str], titles: Sequence[str], rng: random.Random
) -> Makes:
    title = BRACKETS.sub("", page["title"])
    text = f"{title}: {answer}"
    others = [v for v in values if not any(word in folded(page["text"]) for word in folded(v).split())]

    def entity() -> str | None:
        if rng.random() < 0.3:
            other = rng.choice([t for t in titles if not names(f"{title} {page['text']}", t)])
            return f"{BRACKETS.sub('', other)}: {answer}"
        other = _another(answer, others, page["text"], rng)
        return f"{title}: {other}" if other else None

    def number() -> str | None:
        other = other_number(answer, "", rng)
        return f"{title}: {other}" if other and not names(page["text"], _longest(other)) else None

    ways: dict[Wrong, Callable[[], str | None]] = {"entity": entity}
    if re.search(r"\d", answer):
        ways = {"number": number}
    return RealClaim(text, page["title"], page["text"], "value"), ways
