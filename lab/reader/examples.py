"""Questions of training worlds with pages and where their answers stand: what the reader learns from.

Pages are gold passages among others, or what one search for the question finds. Evidence bundles are never made here.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent.evidence import Passage
from agent.world import Question, World
from agent.world.difficulty import Difficulty
from agent.world.names import Split
from lab.reader.recipe import ReaderRecipe
from train.reader.pages import UNKNOWN, Classes, ReaderPage, Sheet, Span, lay_out
from train.reader.words import ReaderVocabulary
from train.world.shards import make_world

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_HARD: Final = Difficulty(noise=0.5, namesakes=0.3, paraphrase=0.6, exclusivity=0.8, staleness=0.6, contradiction=0.2)


@dataclass(frozen=True)
class Example:
    """A question with its pages, and every right answer to point at."""

    sheet: Sheet
    spans: tuple[Span, ...]
    classes: tuple[int, ...]


def training_worlds(recipe: ReaderRecipe, *, pool: int, split: Split = "train") -> Iterator[World]:
    """The worlds of one pool, no world in two pools. Every second one is a hard one."""
    data, mix = recipe.data, recipe.stage(pool).mix
    for number in range(data.worlds_per_pool):
        seed, count = 1_000_000 + pool * data.worlds_per_pool + number, data.questions_per_world
        yield make_world(seed, split=split, questions=count, difficulty=_HARD if number % 2 else None, mix=mix or None)


def vocabulary_of(recipe: ReaderRecipe) -> tuple[ReaderVocabulary, Classes]:
    """The common words of training worlds, and the answers that are in no page, or in every world."""
    count, share = recipe.data.vocabulary_worlds, recipe.data.vocabulary_share
    worlds = [make_world(seed, split="train", questions=150) for seed in range(count)]
    words = ReaderVocabulary.common(map(_texts, worlds), share=share).words
    answers = {q.answers[0] for world in worlds for q in world.questions if q.type in ("count", "known")} | {UNKNOWN}
    return ReaderVocabulary(sorted(words)), Classes(tuple(sorted(answers)))


def _texts(world: World) -> Iterator[str]:
    for document in world.documents:
        yield document.title
        yield document.text
    for question in world.questions:
        yield with_history(question)
    yield from ("web", "news", "arxiv", "kg")


def with_history(question: Question) -> str:
    """The question with the earlier turns that it leans on."""
    return " ".join(text for turn in (*question.history, (question.question,)) for text in turn)


def to_example(
    world: World, question: Question, recipe: ReaderRecipe, classes: Classes, *, most_pages: int, rng: random.Random
) -> Example:
    """One question in one of the contexts of the recipe. It may have no right answer to point at."""
    contexts = recipe.data.contexts
    draw = rng.random()
    if draw < contexts.gold:
        passages, gold = _with_gold(world, question, most_pages, rng)
    elif draw < contexts.gold + contexts.retrieved:
        passages, gold = world.find("all", with_history(question), limit=rng.randint(1, most_pages)), set[str]()
    else:
        passages, gold = [], set[str]()
    pages = [ReaderPage.of(passage) for passage in passages]
    if gold and rng.random() < contexts.shortened:
        pages = [_shortened(page, world, p, rng) for page, p in zip(pages, passages, strict=True)]
    sheet = lay_out(with_history(question), pages, most_words=recipe.shape.most_words)
    trusted = {number for number, passage in enumerate(passages, start=1) if passage.id in gold}
    return Example(sheet, _spans(sheet, question, trusted), tuple(classes.right(question)))


def _with_gold(world: World, question: Question, most_pages: int, rng: random.Random) -> tuple[list[Passage], set[str]]:
    """The gold passages and a few that searches of the gold plan or of the question find, shuffled."""
    gold = list(dict.fromkeys(question.supporting))
    queries = [
        with_history(question),
        *(query for lookups in question.plan for k in lookups for query in k.queries[:2]),
    ]
    found = {p.id: p for query in queries for p in world.find("all", query, limit=4)}
    others = [passage for key, passage in found.items() if key not in gold]
    most = max(most_pages - len(gold), 0)
    kept = rng.sample(others, min(len(others), rng.randint(0, most)))
    kept += [found.get(key) or _passage(world, key) for key in gold]
    rng.shuffle(kept)
    return kept, set(gold)


def _passage(world: World, key: str) -> Passage:
    d = world.document(key)
    return Passage(id=d.id, source=d.source, title=d.title, text=d.text, url=d.url, date=d.date)


def _shortened(page: ReaderPage, world: World, passage: Passage, rng: random.Random) -> ReaderPage:
    """Some of the sentences; those that name what the page states stay more often."""
    sentences = _SENTENCE.split(page.text)
    stated = {value for s in world.document(passage.id).states for value in s.values}
    named = [any(value in sentence for value in stated) for sentence in sentences]
    kept = [s for s, holds in zip(sentences, named, strict=True) if rng.random() < (0.75 if holds else 0.3)]
    return ReaderPage(page.head, " ".join(kept or sentences))


def _spans(sheet: Sheet, question: Question, trusted: set[int]) -> tuple[Span, ...]:
    """Where the answer is: on gold pages if it does there, else anywhere."""
    if question.type == "count":  # the number of something else is no answer
        return ()
    found = list(dict.fromkeys(span for answer in question.answers for span in sheet.find(answer)))
    best = [span for span in found if sheet.segments[span.first] in trusted]
    return tuple(best or found)


def pool_examples(recipe: ReaderRecipe, classes: Classes, *, pool: int) -> list[Example]:
    """The examples of one pool that have something to learn: the same for the same recipe and pool."""
    rng = random.Random(f"reader {recipe.seed} {pool}")
    most_pages = recipe.stage(pool).most_pages
    drawn = [
        to_example(world, question, recipe, classes, most_pages=most_pages, rng=rng)
        for world in training_worlds(recipe, pool=pool)
        for question in world.questions
    ]
    return [example for example in drawn if example.spans or example.classes]


def batches(examples: Sequence[Example], *, batch_words: int, rng: random.Random) -> list[list[Example]]:
    """Examples of like length together, in batches of at most `batch_words` words with padding, shuffled."""
    made: list[list[Example]] = [[]]
    for example in sorted(examples, key=lambda example: len(example.sheet.words)):
        if made[-1] and (len(made[-1]) + 1) * len(example.sheet.words) > batch_words:
            made.append([])
        made[-1].append(example)
    rng.shuffle(made)
    return made
