"""The reader's network, its training and its answers; needs torch."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

import torch

from agent.errors import CheckpointError
from lab.cli.reader import CHECKPOINT
from lab.reader.examples import Example
from lab.reader.run import ReaderRun, answer_loss
from tests.lab.reader.test_examples import small
from train.evaluation.metrics import exact_match
from train.reader.pages import UNKNOWN, Classes, ReaderPage, ReaderShape, Sheet, Span, head_of, lay_out
from train.reader.reading import CHANNELS, TrainedReader, make_reader, relations, to_rows
from train.reader.words import ReaderVocabulary
from train.safety.manifest import read_manifest
from train.world.shards import make_world

pytestmark = pytest.mark.train

SHAPE = ReaderShape(width=16, layers=2, heads=2, inner=16, most_words=64)
WORDS = ReaderVocabulary("who wrote was born in | web . ?".split())
CLASSES = Classes(("2", UNKNOWN))
PAGES = [ReaderPage("web Dune", "Lina Orr wrote Dune in 1965."), ReaderPage("web", "Ben Orr | born in | 1920")]


def reader(seed: int = 0) -> TrainedReader:
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType] - its stub leaves the type of a seed out
    return TrainedReader(make_reader(SHAPE, WORDS, CLASSES), WORDS, CLASSES, SHAPE, name="r")


def sheet(pages: list[ReaderPage] = PAGES) -> Sheet:
    return lay_out("Who wrote Dune?", pages, most_words=64)


def test_attention_knows_what_is_the_same_and_what_is_larger():
    laid_out = lay_out("Lina Orr 1965", [ReaderPage("", "Lina Orr 1920 Orr")], most_words=64)
    known = relations(to_rows([laid_out], WORDS))[0]
    assert known.shape == (7, 7, CHANNELS)

    def seen(word: int, channel: int) -> list[int]:
        return [other for other in range(7) if known[word, other, channel] == 1]

    same_name, same_pair, larger, smaller = 0, 2, 10, 11
    assert seen(0, same_name) == [0, 3]
    assert seen(1, same_name) == [1, 4, 6]
    assert seen(1, same_pair) == [1, 4]  # not the Orr that stands alone
    assert seen(2, larger) == [5]
    assert seen(5, smaller) == [2]


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_does_not_depend_on_what_else_is_in_the_batch(seed: int):
    ours, others = sheet(), [sheet(PAGES * 2), sheet([]), sheet(PAGES[:1])]
    answering = reader(seed)
    alone = answering.answers([ours])
    assert answering.answers([*others, ours])[-1] == alone[0]
    start, _ = answering.model(to_rows([ours], WORDS))
    batch, _ = answering.model(to_rows([ours, others[0]], WORDS))
    assert torch.allclose(start[0, : len(ours.words)], batch[0, : len(ours.words)], atol=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_stands_in_one_text_or_is_a_class(seed: int):
    ours = sheet()
    said = reader(seed).answers([ours])[0]
    assert said in CLASSES.answers or any(said in text for text in ours.texts)


def test_the_loss_is_of_all_right_places_together():
    start = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    end = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    short = lay_out("a b", [], most_words=9)  # two words, then two classes
    both = Example(short, (Span(0, 1),), (1,))
    assert answer_loss(start, end, [both]).exp().item() == pytest.approx(1 / (0.1 * 0.3 + 0.4 * 0.1))


def test_a_reader_that_was_saved_answers_the_same(tmp_path: Path):
    before = reader(3)
    after = TrainedReader.load(before.save(tmp_path))
    assert (after.name, after.parameters, after.classes) == (before.name, before.parameters, before.classes)
    assert after.answer("Who wrote Dune?", PAGES) == before.answer("Who wrote Dune?", PAGES)


@pytest.mark.parametrize("file", ["reader.json", "reader.safetensors"])
def test_a_damaged_or_missing_reader_is_a_sentence(tmp_path: Path, file: str):
    reader().save(tmp_path)
    (tmp_path / file).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="train one with cairn train reader"):
        TrainedReader.load(tmp_path)
    with pytest.raises(CheckpointError):
        TrainedReader.load(tmp_path / "nowhere")


def test_the_shipped_reader_is_small_and_reads_names_that_it_has_never_seen():
    shipped = TrainedReader.load(CHECKPOINT)
    assert sum(file.stat().st_size for file in CHECKPOINT.iterdir()) < 3_000_000
    world = make_world(11, split="dev", questions=40, mix={"chain1": 0.5, "chain2": 0.5})
    right = 0
    for question in world.questions:
        documents = [world.document(key) for key in question.supporting]
        pages = [ReaderPage(head_of(d.source, d.date, d.title), d.text) for d in documents]
        right += exact_match(shipped.answer(question.question, pages), question.answers)
    assert right >= 0.8 * len(world.questions)


@pytest.mark.slow
def test_a_short_training_lowers_the_loss_and_leaves_a_reader(tmp_path: Path):
    recipe = small(gold=0.9, nothing=0.1)
    data = recipe.data.model_copy(update={"pools": 3, "vocabulary_worlds": 2, "questions_per_world": 60})
    report = recipe.report.model_copy(update={"every_steps": 1, "dev_questions": 4})
    optimizer = recipe.optimizer.model_copy(update={"batch_words": 1024, "warmup_steps": 5})
    recipe = recipe.model_copy(update={"data": data, "report": report, "optimizer": optimizer, "shape": SHAPE})
    ReaderRun(recipe, tmp_path).run(lambda progress: None)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [line["loss"] for line in lines if line["loss"]]
    assert sum(losses[-3:]) < sum(losses[:3])
    assert 0 <= lines[-1]["dev_em"] <= 1
    assert TrainedReader.load(tmp_path).answer("Who?", []) is not None
    manifest = read_manifest(tmp_path)
    assert (manifest.kind, manifest.state, manifest.figures["dev_em"]) == ("reader", "done", lines[-1]["dev_em"])
