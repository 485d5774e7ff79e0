"""Claims of relations whose sentences state them: worded, and in short as policies write them."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from lab.benchmarks.checks.claims import (
    BRACKETS,
    ENDS,
    Half,
    Makes,
    Page,
    RealClaim,
    Wrong,
    half_of,
    lines,
    other_number,
)
from lab.benchmarks.checks.english import negated
from lab.benchmarks.checks.relations import (
    CUES,
    OTHERS,
    TURNED,
    WORDINGS,
    dated,
    folded,
    names,
    pointed,
    stated,
    worded,
)

DOCUMENTS: Final = "docs_redocred1000"
TRIPLES: Final = "qa_2wiki_train500"
Say = Callable[[str, str, str], str]
"""Words a relation of a subject and an object."""


@dataclass(frozen=True)
class _Statement:
    """A relation that a page states, and what else the page says of its subject."""

    page: Page
    subject: str
    relation: str
    object: str
    kind: str
    """Of the object."""
    true: frozenset[tuple[str, str, str]]
    """Folded triples that are no false claims."""


def page_of(document: Mapping[str, Any]) -> Page:
    names: dict[str, list[str]] = {}
    for entity in document["entities"]:
        names.setdefault(entity["type"], []).append(entity["name"])
    return Page(document["title"], document["text"], {kind: tuple(own) for kind, own in names.items()})


def of_relations(data: Path, half: Half, rng: random.Random, *, pointer: bool) -> Iterator[Makes]:
    statements = [*_redocred(data, half), *_2wiki(data, half)]
    rng.shuffle(statements)
    subjects = sorted({one.subject for one in statements})
    values: dict[str, list[str]] = {}
    for one in statements:
        values.setdefault(one.relation, []).append(one.object)
    seen: dict[str, int] = {}
    done: set[tuple[str, str]] = set()
    for one in statements:
        key = (one.page.title, one.relation)
        if key in done or seen.get(one.relation, 0) >= 24:
            continue
        done.add(key)
        seen[one.relation] = seen.get(one.relation, 0) + 1
        yield _related(one, values, subjects, rng, pointer=pointer)


def _related(
    one: _Statement, values: Mapping[str, Sequence[str]], subjects: Sequence[str], rng: random.Random, *, pointer: bool
) -> Makes:
    say: Say = pointed if pointer else partial(worded, rng=rng)
    text = say(one.relation, one.subject, one.object)
    ways: dict[Wrong, Callable[[], str | None]] = {
        "entity": lambda: _other_end(one, values, subjects, say, rng),
        "number": lambda: _other_date(one, text, say, rng),
        "relation": lambda: _other_relation(one, say, rng),
    }
    if one.relation in TURNED:
        ways["swap"] = lambda: say(one.relation, one.object, one.subject)
    if not pointer:
        ways["negation"] = lambda: negated(text)
    return RealClaim(text, one.page.title, one.page.text, "pointer" if pointer else "relation"), ways


def _free(one: _Statement, value: str) -> bool:
    """Whether a value would be false: the page gives none like it for this relation."""
    stated = (v for r, s, v in one.true if r == one.relation and _alike(s, one.subject))
    return not _alike(value, one.object) and not any(_alike(v, value) for v in stated)


def _other_end(
    one: _Statement, values: Mapping[str, Sequence[str]], subjects: Sequence[str], say: Say, rng: random.Random
) -> str | None:
    """Another object, half the time from the page; now and then another subject."""
    if dated(one.object):
        return None
    near = [name for name in one.page.names.get(one.kind, ()) if _free(one, name) and name != one.subject]
    far = [value for value in values[one.relation] if _free(one, value) and not names(one.page.text, value)]
    if rng.random() < 0.2:
        whole = f"{one.page.title} {one.page.text}"
        return say(one.relation, rng.choice([s for s in subjects if not names(whole, s)]), one.object)
    pool = near if near and rng.random() < 0.6 else far
    return say(one.relation, one.subject, rng.choice(pool)) if pool else None


def _other_date(one: _Statement, text: str, say: Say, rng: random.Random) -> str | None:
    if not dated(one.object):
        return None
    near = [time for time in one.page.names.get("TIME", ()) if dated(time) and _free(one, time)]
    if near and rng.random() < 0.5:
        return say(one.relation, one.subject, rng.choice(near))
    return other_number(text, "", rng)


def _other_relation(one: _Statement, say: Say, rng: random.Random) -> str | None:
    sentence = next((s for s in re.split(r"(?<=[.])\s+", one.page.text) if one.object in s), one.page.text)
    others = [
        other
        for other in OTHERS.get(one.relation, ())
        if (other, folded(one.subject), folded(one.object)) not in one.true
        and (_has_own(other, one) or not re.search(CUES.get(other, r"$^"), sentence))
    ]
    return say(rng.choice(others), one.subject, one.object) if others else None


def _has_own(relation: str, one: _Statement) -> bool:
    """Whether the page gives another value for this relation of the subject."""
    return any(r == relation and _alike(s, one.subject) and not _alike(v, one.object) for r, s, v in one.true)


def _alike(one: str, other: str) -> bool:
    """Whether two names may be of the same: they share a word."""
    return bool(set(folded(one).split()) & set(folded(other).split()) - {"the", "of", "and"})


def _redocred(data: Path, half: Half) -> Iterator[_Statement]:
    """Relations of what a document is about, both ends in one of the sentences that state it."""
    for document in lines(data / DOCUMENTS / "documents.jsonl"):
        if half_of(document["title"]) != half:
            continue
        page, title = page_of(document), BRACKETS.sub("", document["title"])
        kinds = {entity["name"]: entity for entity in document["entities"]}
        own = {e["name"] for e in document["entities"] if title in (e["name"], *e["aliases"])}
        true = frozenset(
            (r["relation"], folded(title if r["subject"] in own else r["subject"]), folded(r["object"]))
            for r in document["relations"]
        )
        for r in document["relations"]:
            said = [document["sentences"][at] for at in r["sentences"] if at < len(document["sentences"])]
            known = r["relation"] in WORDINGS and r["subject"] in own and r["object"] in kinds
            if known and len(said) == 1 and stated(r["relation"], r["object"], said[0]):
                yield _Statement(page, title, r["relation"], r["object"], kinds[r["object"]]["type"], true)


_FIRST: Final = 250
"""Questions of 2WikiMultihopQA that were read while the first rules were written: their pages are no test."""


def _2wiki(data: Path, half: Half) -> Iterator[_Statement]:
    """Triples whose page names their object."""
    folder = data / TRIPLES
    pages: dict[str, list[dict[str, Any]]] = {}
    for page in lines(folder / "corpus.jsonl"):
        pages.setdefault(folded(BRACKETS.sub("", page["title"])), []).append(page)
    questions = list(lines(folder / "questions.jsonl"))
    seen = {folded(t[0]) for question in questions[:_FIRST] for t in question["evidences"]}
    triples = dict.fromkeys(tuple(triple) for question in questions for triple in question["evidences"])
    true = frozenset((r, folded(s), folded(o)) for s, r, o in triples)
    for subject, relation, value in triples:
        found = pages.get(folded(BRACKETS.sub("", subject)), [])
        if (
            relation not in WORDINGS
            or len(found) != 1
            or ("dev" if folded(subject) in seen else half_of(subject)) != half
        ):
            continue
        page = found[0]
        said = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", page["text"])
        if said and any(stated(relation, value, text) for text in ENDS.split(page["text"])):
            own = frozenset(triple for triple in true if triple[1] == folded(subject))
            yield _Statement(Page(page["title"], page["text"], {}), subject, relation, value, "", own)
