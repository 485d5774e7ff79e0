"""A round of distillation with a model that others made: it is trained, answers, and is trained further on what it said."""

from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("peft")

from agent import cli  # noqa: E402 - only where torch is
from agent.protocols import protocol_named  # noqa: E402
from agent.world import load_world  # noqa: E402
from agent.world.difficulty import Difficulty  # noqa: E402
from tests.train.starts import recipe, row_of, start  # noqa: E402
from train.distill.rows import read_rows, write_rows  # noqa: E402
from train.sft.run import SftRun  # noqa: E402
from train.world.shards import make_world  # noqa: E402
from train.world.writing import new_card, write_world  # noqa: E402

pytestmark = pytest.mark.train

QUESTIONS = 2


@pytest.mark.slow
def test_a_round_keeps_what_it_says_rightly_with_its_own_ids_and_learns_from_it(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    easy = Difficulty(noise=0, namesakes=0, paraphrase=0, staleness=0, contradiction=0)
    made = make_world(8, split="dev", people=30, questions=QUESTIONS, mix={"chain1": 1.0}, difficulty=easy)
    write_world([made], new_card("small", 8, split="dev", people=30, difficulty=easy), tmp_path / "world")
    world, protocol = load_world(tmp_path / "world"), protocol_named("multisearch")
    rows = [row_of(world, question, protocol) for question in world.questions[:QUESTIONS]]
    assert not any(row.held_out for row in rows)
    write_rows(tmp_path / "rows.jsonl", rows)
    begin = start("llama", tmp_path / "llama", hidden_size=128, num_attention_heads=4)
    settings = {"tokens": 60_000, "muon_lr": 4e-3, "adamw_lr": 4e-3, "warmup_steps": 10}
    often = {"save_every_steps": 1000, "every_steps": 1000}
    by_heart = recipe(begin, tmp_path / "rows.jsonl", data={"max_tokens": 2000}, optimizer=settings, report=often)
    first = SftRun(by_heart, tmp_path / "first")
    right: list[float] = []
    assert first.run(lambda progress: right.append(progress.accuracy))
    assert right[-1] == 1

    ask = [
        "train",
        "distill",
        "--policy",
        "transformers",
        "--model",
        str(tmp_path / "first"),
        "--world",
        str(tmp_path / "world"),
    ]
    ask += ["--limit", str(QUESTIONS), "--protocol", "multisearch", "--out", str(tmp_path / "distilled")]
    assert cli.run(ask) == 0
    order = [row.question for row in rows]
    kept = sorted(read_rows(tmp_path / "distilled" / "rows.jsonl"), key=lambda row: order.index(row.question))
    assert [row.question for row in kept] == order
    assert all(piece.ids for row in kept for piece in row.pieces if piece.by == "policy")
    said = ["".join(piece.text for piece in row.pieces if piece.by == "policy") for row in (*kept, *rows)]
    assert said[:QUESTIONS] == said[QUESTIONS:]

    further = by_heart.model_copy(
        update={
            "start": str(tmp_path / "first" / "hub"),
            "data": by_heart.data.model_copy(update={"rows": str(tmp_path / "distilled" / "rows.jsonl")}),
            "optimizer": by_heart.optimizer.model_copy(update={"tokens": 1000}),
        }
    )
    losses: list[float] = []
    assert SftRun(further, tmp_path / "second").run(lambda progress: losses.append(progress.policy_loss))
    assert losses[0] < 0.05, "its own words, by their own ids"
