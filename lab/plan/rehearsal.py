"""A rehearsal: the recipe as it stands, at a size that a CPU does in a minute, through the run's own code.

Its protocol, reward, judge and reader (by HTTP), algorithm, schedule and optimizer are the recipe's. What is replaced:
the model by a random one of some 30,000 weights, its questions by a little world's, vLLM by the trainer's own model,
an embedder by hashed words, the sizes by the smallest. A recipe whose accelerate configuration shares the weights is
launched with that configuration, in two processes on the CPU. It shows that a recipe runs, and that a gradient flows;
it shows nothing of what it learns, and nothing of GPUs.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

from agent.errors import SetupError
from agent.sources.questions import GoldQuestion
from lab.plan.small_run import PROCESSES, run_here, run_shared
from train.rewards.base import RewardTools
from train.rewards.support.outside import EndpointJudge, EndpointReader
from train.rewards.task import Task
from train.rl.recipe import RlRecipe
from train.rl.tasks import protocols_of
from train.rl.tools import tools_of
from train.safety.monitors import LINES
from train.safety.rules import DEFAULT_RULES, Safety

CONTEXT: Final = 4096
_VOCABULARY: Final = 512


@dataclass
class Rehearsed:
    """What the rehearsal saw."""

    steps: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    """Of the last step."""
    requests: int = 0
    """That judge and reader got."""
    files: tuple[str, ...] = ()
    """That the run left."""
    processes: int = 1
    """More than one hold shares of the weights."""


def rehearse(recipe: RlRecipe, *, steps: int = 2, accelerate: Path | None = None) -> Rehearsed:
    """Run a recipe at a small size.

    Args:
        recipe: of `cairn train rl` or `cairn train ppo`.
        steps: how many.
        accelerate: the configuration by which processes share the weights; None: one process has them.

    Raises:
        SetupError: it cannot run, or no gradient flowed; the sentence says why.
    """
    with tempfile.TemporaryDirectory(prefix="cairn-plan-") as kept, _endpoint() as (url, requests):
        folder = Path(kept)
        given = small(recipe, start=make_start(folder / "start", recipe), url=url, steps=steps)
        with asyncio.Runner() as runner, tools_of(given, folder / "tools", runner=runner) as tools:
            runner.run(_ask_tools(tools))
        if accelerate is None:
            run_here(given, folder / "run")
        else:
            run_shared(given, folder / "run", accelerate=accelerate)
        return _seen(folder / "run", requests=len(requests), processes=PROCESSES if accelerate else 1)


def small(recipe: RlRecipe, *, start: Path, url: str, steps: int) -> RlRecipe:
    """The recipe with small sizes, checked as a whole again.

    Args:
        recipe: at its full size.
        start: a checkpoint.
        url: of the endpoint in the place of judge and reader.
        steps: of the run.
    """
    said = recipe.model_dump(mode="json", exclude_unset=True)
    said |= {"start": str(start), "steps": steps, "curriculum": []}
    said["data"] = {"people": 40, "questions_per_world": 4}
    said["rollout"] |= {"engine": "transformers", "prompts": 2, "group": min(2, recipe.rollout.group), "concurrency": 4}
    said["rollout"] |= {"policy_tokens": 32, "answer_tokens": 8, "context_tokens": CONTEXT, "server": "", "vllm": {}}
    said["optimizer"] |= {"micro_batches": min(2, recipe.optimizer.micro_batches), "bf16": False}
    said["optimizer"] |= {"warmup_steps": min(recipe.optimizer.warmup_steps, steps)}
    said["learning"] |= {"resample": 1} if recipe.learning.resampling else {}
    said["report"] = {"save_every_steps": steps, "traces": 1}
    said["safety"] = Safety(without=tuple(rule.name for rule in DEFAULT_RULES)).model_dump(mode="json")
    for name in ("judge", "reader"):
        if said.get(name):
            said[name]["base_url"] = url
    said.pop("local_reader", None)
    said.pop("embedder", None)  # hashed words do
    return type(recipe).model_validate(said)


def make_start(folder: Path, recipe: RlRecipe) -> Path:
    """A random Qwen3 in the hub's form, whose tokenizer knows the marks of the recipe's protocols."""
    import torch
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    from train.sft.tokenizer import EOS, PAD, train_tokenizer

    protocols = protocols_of(recipe)
    texts = [protocol.system + protocol.prompt + protocol.instructions for protocol in protocols]
    tokenizer = train_tokenizer(texts, vocabulary=_VOCABULARY)
    marks = dict.fromkeys(mark for protocol in protocols for mark in protocol.all_marks)
    tokenizer.add_tokens([AddedToken(mark, normalized=False, special=False) for mark in marks])
    torch.manual_seed(recipe.seed)
    shape = Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(EOS),
        pad_token_id=tokenizer.token_to_id(PAD),
    )
    Qwen3ForCausalLM(shape).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=EOS, pad_token=PAD).save_pretrained(folder)
    return folder


async def _ask_tools(tools: RewardTools) -> None:
    """Ask judge and reader once: a random policy may never write what they judge or read."""
    task = Task.of(GoldQuestion(id="rehearsal", question="Where is it?", answers=("here",)))
    if isinstance(tools.judge, EndpointJudge) and await tools.judge.score(task, "there") is None:
        raise SetupError("the judge's reply could not be read")
    if isinstance(tools.reader, EndpointReader) and await tools.reader.read("Where is it?", "It is here.") is None:
        raise SetupError("the reader's reply could not be read")


def _seen(out: Path, *, requests: int, processes: int) -> Rehearsed:
    """What a run has left.

    Raises:
        SetupError: no gradient flowed in its last step.
    """
    last: dict[str, float] = json.loads((out / LINES).read_text(encoding="utf-8").splitlines()[-1])
    steps = int(last.pop("step"))
    if not last["trainer/grad_norm"] > 0:
        raise SetupError(f"no gradient flowed in the rehearsal: its norm is {last['trainer/grad_norm']}")
    return Rehearsed(steps, last, requests, tuple(sorted(path.name for path in out.iterdir())), processes)


class _Answers(BaseHTTPRequestHandler):
    """Judge and reader: an OpenAI-compatible endpoint that says what the requested form allows."""

    requests: list[str]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = str(body["messages"][0]["content"])
        self.requests.append(text)
        said = "50" if "number from 0 to 100" in text else "incorrect" if "correct or incorrect" in text else "unknown"
        reply = json.dumps(
            {
                "id": "rehearsal",
                "object": "chat.completion",
                "model": body.get("model", ""),
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}],
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written down."""


@contextmanager
def _endpoint() -> Iterator[tuple[str, list[str]]]:
    """An endpoint on this machine for as long as the rehearsal lasts: its URL, and the requests that it got."""
    requests: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answers", (_Answers,), {"requests": requests}))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
