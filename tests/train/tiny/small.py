"""Recipes of train/tiny.sh at the size of a test: it begins with the shipped checkpoint, so it answers well."""

from pathlib import Path
from typing import Final

from lab.shipped import HUB

SFT: Final = """
kind = "sft"
name = "small"
protocols = ["multisearch"]
seed = 1
start = "{hub}"
keep_tokenizer = true
[model]
width = 256
layers = 5
heads = 8
kv_heads = 4
head_dim = 32
inner = 704
vocabulary = 2048
context = 3072
[data]
people = 40
questions_per_world = 12
worlds_per_pool = 1
max_tokens = 1280
[optimizer]
tokens = 6000
batch_tokens = 1500
batches_per_step = 2
muon_lr = 1e-5
adamw_lr = 1e-5
final_lr = 0.1
warmup_steps = 1
weight_decay = 0.01
clip = 1.0
bf16 = false
[weights]
policy = 1.0
answer = 2.0
environment = 0.0
[[curriculum]]
until = 1.0
passages = 2
mix = {{ chain1 = 1.0 }}
[report]
every_steps = 1
evaluate_every_steps = 100
dev_questions = 4
save_every_steps = 1
"""
RL: Final = """
kind = "rl"
name = "small"
start = "is put in"
protocols = ["multisearch"]
seed = 3
steps = 2
[data]
people = 40
questions_per_world = 6
[rollout]
prompts = 1
group = 2
policy_tokens = 192
answer_tokens = 48
[[reward]]
name = "outcome"
[learning]
name = "grpo"
[optimizer]
lr = 1e-5
micro_batches = 1
[report]
save_every_steps = 1
"""


def write_recipes(folder: Path) -> Path:
    """Both of them, under the names that the script looks for."""
    (folder / "tiny_sft.toml").write_text(SFT.format(hub=HUB), encoding="utf-8")
    (folder / "tiny_rl.toml").write_text(RL, encoding="utf-8")
    return folder
