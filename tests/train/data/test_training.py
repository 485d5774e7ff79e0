"""What a build gives, as training takes it: by reward as a list in its order, from the oracle with its gold plans."""

from pathlib import Path

import pytest

from agent.errors import SetupError
from tests.train.data.made import lines, recipe_for
from tests.train.rl.small import recipe as rl_recipe
from train.common.recipe import SftRecipe, read_recipe
from train.data.build import build
from train.data.finish import Finished
from train.data.inputs import WorldInput
from train.rl.tasks import tasks_of
from train.world.writing import build_world

pytest.importorskip("sklearn")
pytest.importorskip("datasketch")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("training")
    build_world(5, split="train", size=600, questions=0, out=folder / "world", name="small")
    inputs = WorldInput(str(folder / "world"))
    said = {"writer": "grammar", "embedder": "words", "thin_words": 0, "dimensions": 4096, "group": 30}
    return build(inputs, recipe_for(inputs, **said), folder / "out")


def test_reinforcement_learning_asks_the_list_from_few_sources_to_many_in_the_builds_world(done: Finished):
    listed = [row["question"] for row in lines(done.folder / "questions.jsonl")]
    data = {
        "generator": 2,
        "questions": done.folder / "questions.jsonl",
        "order": "listed",
        "search": {"world": str(done.folder / "world")},
    }
    tasks = tasks_of(rl_recipe(data=data, protocols=("cairn",)))
    asks = [ask for step in range(3) for ask in tasks.draw(step, 0, 2)]
    assert [ask.question.question for ask in asks] == listed[:6]
    assert {"web", "news", "arxiv", "kg"} <= set(asks[0].sources)
    assert all(ask.task.gold for ask in asks)


SFT = """
kind = "sft"
name = "built"
protocols = ["cairn"]
seed = 1
[model]
width = 32
layers = 1
heads = 2
kv_heads = 1
head_dim = 32
inner = 64
vocabulary = 700
context = 3072
[data]
generator = 2
built = "{built}"
people = 40
questions_per_world = 5
worlds_per_pool = 2
max_tokens = 3000
tokenizer_worlds = 1
[optimizer]
tokens = 12000
batch_tokens = 6000
muon_lr = 3e-3
adamw_lr = 3e-3
final_lr = 0.1
warmup_steps = 2
weight_decay = 0.01
clip = 1.0
bf16 = false
[weights]
policy = 1.0
answer = 2.0
environment = 0.1
[[curriculum]]
until = 1.0
mix = {mix}
[report]
every_steps = 1
evaluate_every_steps = 1000
dev_questions = 4
save_every_steps = 1000
"""


def sft_recipe(folder: Path, built: Path, *, mix: str = "{}", data: str = "") -> SftRecipe:
    path = folder / "recipe.toml"
    path.write_text(SFT.format(built=built, mix=mix).replace("[data]", f"[data]\n{data}"), encoding="utf-8")
    return read_recipe(path)


def test_a_build_brings_its_own_order_and_its_own_world(tmp_path: Path):
    with pytest.raises(SetupError, match=r"come in their own order: write mix = \{\}"):
        sft_recipe(tmp_path, tmp_path, mix="{ chain1 = 1.0 }")
    with pytest.raises(SetupError, match="brings its own world"):
        sft_recipe(tmp_path, tmp_path, data="difficulty = { noise = [0, 1] }")


@pytest.mark.train
@pytest.mark.slow
def test_the_oracle_teaches_the_questions_of_a_build(done: Finished, tmp_path: Path):
    torch = pytest.importorskip("torch")
    from train.sft.run import SftProgress, SftRun
    from train.sft.trajectories import pool_batches, tokenizer_texts

    recipe = sft_recipe(tmp_path, done.folder)
    torch.set_num_threads(1)
    texts = "".join(tokenizer_texts(recipe))
    listed = lines(done.folder / "questions.jsonl")
    assert sum(row["question"] in texts for row in listed) > len(listed) / 2
    losses: list[float] = []

    def keep(progress: SftProgress) -> None:
        losses.append(progress.policy_loss)

    run = SftRun(recipe, tmp_path / "run")
    assert run.run(keep)
    assert losses[-1] < losses[0]
    assert pool_batches(recipe, run.tokenizer, pool=0, progress=0.0), "the first ten questions give rows"
    assert run.save_hub().is_dir()
