"""What the reader learns from: training worlds and their passages, and nothing that an agent made."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from agent.errors import SetupError
from agent.world import World
from lab.reader.examples import Example, batches, pool_examples, to_example, training_worlds, with_history
from lab.reader.recipe import Contexts, ReaderRecipe, ReaderStage, read_recipe
from train.evaluation.normalisations import squad
from train.reader.pages import UNKNOWN, Classes
from train.world.shards import make_world

ROOT = Path(__file__).parents[3]
RECIPE = read_recipe(ROOT / "lab" / "recipes" / "reader.toml")
CLASSES = Classes(("1", "2", "3", "4", "5", UNKNOWN))


def small(*, gold: float = 1.0, retrieved: float = 0.0, nothing: float = 0.0) -> ReaderRecipe:
    contexts = Contexts(gold=gold, retrieved=retrieved, nothing=nothing, shortened=0.5)
    data = RECIPE.data.model_copy(update={"worlds_per_pool": 1, "questions_per_world": 24, "contexts": contexts})
    return RECIPE.model_copy(update={"data": data, "curriculum": (ReaderStage(until=1.0, most_pages=6),)})


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    return [make_world(seed, split="train", questions=60) for seed in (6, 7)]


def drawn(worlds: list[World], recipe: ReaderRecipe) -> list[tuple[World, int, Example]]:
    rng = random.Random(0)
    return [
        (world, number, to_example(world, question, recipe, CLASSES, most_pages=6, rng=rng))
        for world in worlds
        for number, question in enumerate(world.questions)
    ]


def test_the_answer_is_pointed_at_on_gold_pages(worlds: list[World]):
    pointed = 0
    for world, number, example in drawn(worlds, small()):
        question = world.questions[number]
        texts = {world.document(key).title + world.document(key).text for key in question.supporting}
        for span in example.spans:
            written = example.sheet.written(span)
            assert squad(written) in set(map(squad, question.answers))
            assert any(written in text for text in texts) or span.first < len(question.question)
            pointed += 1
    assert pointed > 100


def test_pages_of_a_plain_search_come_in_its_order(worlds: list[World]):
    (world, _) = worlds
    for _, number, example in drawn([world], small(gold=0.0, retrieved=1.0)):
        found = world.find("all", with_history(world.questions[number]), limit=6)
        pages = example.sheet.texts[2::2]
        assert pages == [passage.text for passage in found[: len(pages)]]


def test_without_pages_only_the_question_is_read(worlds: list[World]):
    for _, _, example in drawn(worlds, small(gold=0.0, nothing=1.0)):
        assert set(example.sheet.segments) == {0}


def test_a_count_is_a_class_and_what_no_page_says_is_one_too(worlds: list[World]):
    kinds = {"count": 0, "unanswerable": 0}
    for world, number, example in drawn(worlds, small()):
        question = world.questions[number]
        if question.type in kinds:
            kinds[question.type] += 1
            assert example.spans == ()
            named = [CLASSES.answers[known] for known in example.classes]
            assert named in ([], [UNKNOWN] if question.unanswerable else [question.answers[0]])
    assert min(kinds.values()) > 0


def test_the_same_pool_is_the_same_and_another_one_has_other_worlds():
    recipe = small()
    first = [example.sheet.texts for example in pool_examples(recipe, CLASSES, pool=0)]
    assert first == [example.sheet.texts for example in pool_examples(recipe, CLASSES, pool=0)]
    names = [{world.name for world in training_worlds(recipe, pool=pool)} for pool in (0, 1)]
    assert not names[0] & names[1]
    assert all(name.startswith("train-") for name in names[0] | names[1])


def test_batches_hold_every_example_once_and_no_more_words_than_allowed(worlds: list[World]):
    examples = [example for _, _, example in drawn(worlds, small())]
    made = batches(examples, batch_words=600, rng=random.Random(0))
    assert sorted(map(id, (e for batch in made for e in batch))) == sorted(map(id, examples))
    sizes = [len(batch) * max(len(e.sheet.words) for e in batch) for batch in made if len(batch) > 1]
    assert max(sizes) <= 600


def test_the_training_never_sees_evidence_of_an_agent():
    code = (
        "import sys, lab.reader.examples; sys.exit('agent.rstool' in sys.modules or 'agent.loop.agent' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_recipe_with_an_unknown_key_is_refused(tmp_path: Path):
    path = tmp_path / "bad.toml"
    path.write_text((ROOT / "lab" / "recipes" / "reader.toml").read_text(encoding="utf-8") + "\ncolour = 1\n")
    with pytest.raises(SetupError, match="colour"):
        read_recipe(path)
