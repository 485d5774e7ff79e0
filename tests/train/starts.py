"""Tiny random checkpoints of the architectures that people start from, and rows to train them on.

Each has a byte-level tokenizer with the marks of ChatML and a chat template, as instruct models on a hub do.
"""

import importlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from agent.protocols import TextProtocol, protocol_named
from agent.world import Question, World
from agent.world.difficulty import Difficulty
from train.common.recipe import SftRecipe
from train.distill.rows import RowPiece, TrainingRow, write_rows
from train.sft.episodes import episode
from train.world.shards import make_world

KINDS: Final = ("llama", "qwen2", "qwen3", "gemma2", "gemma3")
"""Architectures, by the names that `start` knows them under."""
END: Final = "<|im_end|>"
TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", END)
_SHAPE: Final[dict[str, Any]] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "initializer_range": 0.1,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_OF: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "llama": ("Llama", {}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {}),
    "gemma2": ("Gemma2", {"query_pre_attn_scalar": 32, "sliding_window": 64}),
    "gemma3": ("Gemma3", {"query_pre_attn_scalar": 32, "sliding_window": 64}),
    "granite": ("Granite", {"logits_scaling": 8.0}),
}


@cache
def rows(count: int = 12) -> tuple[TrainingRow, ...]:
    """Trajectories of the oracle in a small easy world, none of them held out."""
    easy = Difficulty(noise=0, namesakes=0, paraphrase=0, staleness=0, contradiction=0)
    world = make_world(7, split="train", people=30, questions=4 * count, mix={"chain1": 1.0}, difficulty=easy)
    made = (row_of(world, question, protocol_named("multisearch")) for question in world.questions)
    return tuple(row for row in made if not row.held_out)[:count]


def row_of(world: World, question: Question, protocol: TextProtocol) -> TrainingRow:
    """The oracle's trajectory of a question."""
    return TrainingRow(
        trace=question.id,
        question=question.question,
        type=question.type,
        protocol=protocol.name,
        policy="oracle",
        pieces=tuple(RowPiece(by=piece.by, text=piece.text) for piece in episode(world, question, protocol).pieces),
    )


def rows_file(folder: Path, count: int = 12) -> Path:
    path = folder / "rows.jsonl"
    write_rows(path, rows(count))
    return path


@cache
def _tokenizer() -> str:
    """As JSON: byte-level BPE of 600 tokens, learned from the rows."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=[AddedToken(text, special=True) for text in _SPECIAL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((piece.text for row in rows() for piece in row.pieces), trainer)
    return tokenizer.to_str()


def start(kind: str, folder: Path, *, seed: int = 0, **shape: Any) -> Path:
    """Write a checkpoint in the hub's form.

    Args:
        kind: one of `KINDS`, or `granite`, which scales its logits.
        folder: for it.
        seed: of its weights.
        shape: in the place of the tiny one's.
    """
    name, own = _OF[kind]
    transformers: Any = importlib.import_module("transformers")
    config_of = getattr(transformers, f"{name}TextConfig" if kind == "gemma3" else f"{name}Config")
    tokenizer = Tokenizer.from_str(_tokenizer())
    config = config_of(vocab_size=tokenizer.get_vocab_size(), **_SHAPE | own | shape)
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType] - its stub leaves the type of a seed out
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return folder


def ending(kind: str, folder: Path) -> Path:
    """A checkpoint that says anything, and ends its turn now and then: what it samples differs in length."""
    safetensors: Any = importlib.import_module("safetensors.torch")
    file = start(kind, folder, initializer_range=0.4) / "model.safetensors"
    weights = safetensors.load_file(file)
    weights["model.embed_tokens.weight"][2] *= 2.5
    safetensors.save_file(weights, file, metadata={"format": "pt"})
    return folder


def write_tokenizer(folder: Path) -> None:
    """Write what instruct models have beside their weights, spelt as nothing here would spell it."""
    (folder / "tokenizer.json").write_text(_tokenizer() + "\n", encoding="utf-8")
    said = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": _SPECIAL[0],
        "model_max_length": 2048,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(said, indent=3), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    (folder / "LICENSE.txt").write_text("Do what you like.\n", encoding="utf-8")


def recipe(begin: Path | str, rows: Path, **changes: Any) -> SftRecipe:
    """A recipe of a few steps. Tables are merged, key by key; `adapter=8` is one of that rank."""
    rank = changes.pop("adapter", 0)
    said: dict[str, Any] = {
        "kind": "sft",
        "name": "mine",
        "protocols": ("multisearch",),
        "seed": 1,
        "start": str(begin),
        "data": {"rows": str(rows), "max_tokens": 1000},
        "optimizer": {
            "tokens": 12_000,
            "batch_tokens": 1500,
            "muon_lr": 0,
            "adamw_lr": 1e-2,
            "final_lr": 0.1,
            "warmup_steps": 1,
            "weight_decay": 0.0,
            "clip": 1.0,
            "bf16": False,
        },
        "report": {"every_steps": 1, "evaluate_every_steps": 100, "save_every_steps": 2},
    }
    if rank:
        said["adapter"] = {"rank": rank, "alpha": 2 * rank}
    for name, change in changes.items():
        said[name] = {**said.get(name, {}), **change} if isinstance(change, Mapping) else change
    return SftRecipe.model_validate(said)


def written(recipe: SftRecipe, folder: Path) -> Path:
    """A recipe as a file of TOML."""
    path = folder / "recipe.toml"
    said: dict[str, Any] = recipe.model_dump(mode="json", exclude_defaults=True)
    tables = {name: cast(dict[str, Any], value) for name, value in said.items() if isinstance(value, dict)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in said.items() if name not in tables]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def policy_texts(all_rows: Sequence[TrainingRow]) -> list[str]:
    return [piece.text for row in all_rows for piece in row.pieces if piece.by == "policy"]
