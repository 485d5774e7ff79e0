"""Recipes of the whole way at the size of a test: it begins with the first shipped checkpoint, so it answers well."""

from pathlib import Path
from typing import Final

import agent

HUB: Final = Path(agent.__file__).parent / "checkpoints" / "tiny-v1" / "hub"

TINY: Final = """
kind = "tiny"
name = "small"
sft = "sft.toml"
rl = "rl.toml"
test = "test-v1"
test_questions = 4
[worlds]
train_questions = 20
dev_questions = 20
served_questions = 20
seed = 3
"""
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
context = 2048
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
steps = {steps}
[data]
generator = 1
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
pieces = 1
[report]
save_every_steps = 1
"""


def write_recipes(folder: Path, *, steps: int = 2, questions: int = 20) -> Path:
    """All three into a folder; gives the one that names the others."""
    (folder / "sft.toml").write_text(SFT.format(hub=HUB), encoding="utf-8")
    (folder / "rl.toml").write_text(RL.format(steps=steps), encoding="utf-8")
    path = folder / "tiny.toml"
    path.write_text(TINY.replace("served_questions = 20", f"served_questions = {questions}"), encoding="utf-8")
    return path
