"""What the runs with vLLM have in common: their recipes, their servers, and what must hold of what they leave."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("trl")
transformers: Any = pytest.importorskip("transformers")

from agent.trace import Trace  # noqa: E402
from agent.trace.samples import to_samples  # noqa: E402
from tests.agent.policies.vllm_case import ServerProcess, started_server  # noqa: E402
from train.rl.vllm_worker import WORKER  # noqa: E402
from train.safety.manifest import read_manifest  # noqa: E402

STEPS = 20
FEW = 3
CLOSE = 1e-3
"""Log-probabilities of two programs in float32."""
FAR = 1e-2
"""Those of weights that have moved."""

RECIPE = """
kind = "rl"
name = "small"
start = "{start}"
protocols = ["{protocol}"]
seed = 3
steps = {steps}
[data]
people = 30
questions_per_world = 6
[rollout]
prompts = 1
group = 3
rounds = 1
passages = 2
policy_tokens = {tokens}
answer_tokens = 32
context_tokens = 1024
{engine}
[[reward]]
name = "outcome"
[learning]
name = "grpo"
overlong = {{ longest = {tokens}, buffer = {tokens}, penalty = 0.5 }}
[optimizer]
lr = {lr}
micro_batches = 1
[report]
save_every_steps = {saved}
[safety]
probe_every_steps = 100
without = ["answers are no longer closed", "rollouts run into their length limit", "searches find nothing"]
{more}
"""
IN_PROCESS = """engine = "vllm"
[rollout.vllm]
dtype = "float32"
enforce_eager = true
max_model_len = 1024
max_num_batched_tokens = 1024
max_num_seqs = 4
enable_chunked_prefill = false
kv_cache_memory_bytes = 268435456
"""
SERVER = ("--max-model-len", "1024", "--max-num-batched-tokens", "1024", "--max-num-seqs", "4")
"""The same of a server. vLLM tries out a batch of that many tokens when it starts."""
WHOLE = "--no-enable-chunked-prefill"
"""On a CPU vLLM 0.31 dies of a prompt with a seed that it reads in parts: such a generator has no offset to go back."""
ADAPTER = """
[adapter]
rank = 8
alpha = 16
"""


def adapter_recipe(path: Path, start: Path, *, protocol: str, lr: float, engine: str = IN_PROCESS) -> Path:
    """A few steps: in one or two all rewards may be equal, and teach nothing."""
    said = RECIPE.format(
        start=start, engine=engine, steps=FEW, protocol=protocol, tokens=96, lr=lr, saved=FEW, more=ADAPTER
    )
    path.write_text(said, encoding="utf-8")
    return path


def at(server: ServerProcess) -> str:
    return f'engine = "vllm-server"\nserver = "{server.url}"'


def serving(model: Path, port: int) -> AbstractContextManager[ServerProcess]:
    return started_server(
        model=model, name=str(model), port=port, arguments=(*SERVER, WHOLE, "--worker-extension-cls", WORKER)
    )


def lines_of(out: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in (out / "monitors.jsonl").read_text(encoding="utf-8").splitlines()]


def traces_of(out: Path, step: int) -> list[Trace]:
    lines = map(json.loads, (out / "traces.jsonl").read_text(encoding="utf-8").splitlines())
    return [Trace.model_validate(line["trace"]) for line in lines if line["step"] == step]


def furthest(model: Path, traces: Sequence[Trace]) -> float:
    """The largest difference of a sampled token's log-probability in the traces to that of a model in float32."""
    loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    most = 0.0
    for sample in (sample for trace in traces for sample in to_samples(trace)):
        ids = torch.tensor([sample.ids])
        with torch.no_grad():
            logprobs = loaded(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
        difference = (logprobs - torch.tensor(sample.logprobs[1:]))[torch.tensor(sample.mask[1:])]
        most = max(most, difference.abs().max().item())
    return most


def check_figures(out: Path, *, steps: int) -> None:
    """Every step is there, and engine and trainer agreed in each that taught something."""
    lines = lines_of(out)
    assert [line["step"] for line in lines] == list(range(1, steps + 1))
    assert [line["masked/share"] for line in lines] == [0.0] * steps
    learned = [line for line in lines if line["trainer/rows"]]
    assert learned
    assert max(line["trainer/logprob_difference_most"] for line in learned) < CLOSE
    assert read_manifest(out).state == "done"


def check_adapter(start: Path, out: Path) -> None:
    check_figures(out, steps=FEW)
    assert furthest(start, traces_of(out, 1)) < CLOSE
    assert furthest(start, traces_of(out, FEW)) > FAR
