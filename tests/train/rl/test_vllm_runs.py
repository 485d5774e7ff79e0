"""Whole runs of `cairn train rl` whose rollouts are vLLM's, in this process and of vLLM's own server, on a CPU.

Servers take half a minute to start, so they start beside the other tests, and one that has started is a teacher, too.
"""

import asyncio
import importlib.util
import json
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)

torch: Any = pytest.importorskip("torch")
pytest.importorskip("trl")
transformers: Any = pytest.importorskip("transformers")

from agent.build.shipped import SMALL  # noqa: E402 - only where vLLM is
from agent.errors import SetupError  # noqa: E402
from agent.models.cache import ModelCache  # noqa: E402
from agent.models.ready import hub_folder  # noqa: E402
from agent.sources.base import SearchRequest, SearchResult, Source  # noqa: E402
from agent.trace import Trace  # noqa: E402
from agent.trace.samples import to_samples  # noqa: E402
from tests.agent.models.case import real_gguf  # noqa: E402
from tests.agent.policies.vllm_case import ServerProcess, free_port, started_server  # noqa: E402
from tests.train.rl.small import hot_checkpoint, recipe  # noqa: E402
from train.commands import rl  # noqa: E402
from train.rl.batch import WeightedRow  # noqa: E402
from train.rl.recipe import RlRecipe, read_rl_recipe  # noqa: E402
from train.rl.run import RlRun  # noqa: E402
from train.rl.states import newest_state  # noqa: E402
from train.rl.tasks import Ask, tasks_of  # noqa: E402
from train.rl.teacher import open_teacher  # noqa: E402
from train.rl.vllm_worker import WORKER  # noqa: E402
from train.safety.manifest import read_manifest  # noqa: E402

STEPS = 20
FEW = 3
KILLED_IN = 2
"""The step, from 0, in whose rollouts the server is killed."""
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


def tiny_recipe(path: Path, start: Path, *, engine: str) -> Path:
    said = RECIPE.format(
        start=start, engine=engine, steps=STEPS, protocol="multisearch", tokens=96, lr=3e-4, saved=1, more=""
    )
    path.write_text(said, encoding="utf-8")
    return path


def adapter_recipe(path: Path, start: Path, *, protocol: str, lr: float, engine: str = IN_PROCESS) -> Path:
    """A few steps: in one or two all rewards may be equal, and teach nothing."""
    said = RECIPE.format(
        start=start, engine=engine, steps=FEW, protocol=protocol, tokens=96, lr=lr, saved=FEW, more=ADAPTER
    )
    path.write_text(said, encoding="utf-8")
    return path


def at(server: ServerProcess) -> str:
    return f'engine = "vllm-server"\nserver = "{server.url}"'


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hot_checkpoint(tmp_path_factory.mktemp("tiny") / "hub")


def serving(model: Path, port: int) -> AbstractContextManager[ServerProcess]:
    return started_server(
        model=model, name=str(model), port=port, arguments=(*SERVER, WHOLE, "--worker-extension-cls", WORKER)
    )


@pytest.fixture(scope="module")
def tiny_server(tiny: Path) -> Generator[ServerProcess]:
    with serving(tiny, free_port()) as server:
        yield server


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


def check_last_step(out: Path, start: Path) -> None:
    """The last step's rollouts are of the weights that the step before left, and no longer of the start's."""
    sampled = traces_of(out, STEPS)
    assert furthest(out / "states" / f"checkpoint-{STEPS - 1}", sampled) < CLOSE
    assert furthest(start, sampled) > FAR


@pytest.mark.usefixtures("tiny_server")  # it starts meanwhile
def test_a_run_in_one_process_with_vllm_samples_with_the_weights_of_each_step(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")  # its model has a process of its own, as users have it
    path = tiny_recipe(tmp_path / "recipe.toml", tiny, engine=IN_PROCESS)
    rl(path, tmp_path / "run", threads=1)
    check_figures(tmp_path / "run", steps=STEPS)
    check_last_step(tmp_path / "run", tiny)


def check_adapter(start: Path, out: Path) -> None:
    check_figures(out, steps=FEW)
    assert furthest(start, traces_of(out, 1)) < CLOSE
    assert furthest(start, traces_of(out, FEW)) > FAR


def test_an_adapter_is_trained_with_vllm_in_one_process(tiny: Path, tmp_path: Path) -> None:
    path = adapter_recipe(tmp_path / "recipe.toml", tiny, protocol="multisearch", lr=1e-2)
    rl(path, tmp_path / "run", threads=1)
    check_adapter(tiny, tmp_path / "run")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M, as small-v1 has it."""
    cache = ModelCache(tmp_path_factory.mktemp("models"))
    return Path(hub_folder(str(real_gguf()), adapter=SMALL, cache=cache))


def test_an_adapter_of_a_pretrained_model_is_trained_with_vllm_in_one_process(pretrained: Path, tmp_path: Path) -> None:
    path = adapter_recipe(tmp_path / "recipe.toml", pretrained, protocol="cairn", lr=3e-3)
    rl(path, tmp_path / "run", threads=2)
    check_adapter(pretrained, tmp_path / "run")


def test_an_adapter_of_a_pretrained_model_is_trained_with_vllms_server(pretrained: Path, tmp_path: Path) -> None:
    with serving(pretrained, free_port()) as server:
        server.ready()
        path = adapter_recipe(tmp_path / "recipe.toml", pretrained, protocol="cairn", lr=3e-3, engine=at(server))
        rl(path, tmp_path / "run", threads=2)
    check_adapter(pretrained, tmp_path / "run")


def test_vllms_server_scores_a_rows_tokens_as_the_same_model_does_here(tiny: Path, tiny_server: ServerProcess) -> None:
    async def scored(**teacher: str) -> Any:
        opened = await open_teacher(recipe(teacher=teacher))
        try:
            return await opened.logprobs(rows)
        finally:
            await opened.aclose()

    ids = (5, 9, 300, 7, 44, 45, 46)
    rows = [WeightedRow(ids[:size], (0.0, *(1.0,) * (size - 1)), (0.0,) * size, (0.0,) * size, 0) for size in (4, 7)]
    model, url = str(tiny), tiny_server.ready()
    there = asyncio.run(scored(model=model, base_url=url))
    with pytest.raises(SetupError, match="does not know the model 'other'"):
        asyncio.run(scored(model="other", base_url=url))
    for one, other in zip(there, asyncio.run(scored(model=model)), strict=True):
        assert one == pytest.approx(other, abs=1e-3)


def unwatched(step: int, figures: Mapping[str, float]) -> None:
    """Nothing is shown."""


class KillingTasks:
    """The questions of a recipe; the first search of a step kills something, in the middle of its rollouts."""

    def __init__(self, recipe: RlRecipe, kill: Callable[[], None]) -> None:
        self._tasks = tasks_of(recipe)
        self._kill = kill

    def draw(self, step: int, attempt: int, number: int) -> list[Ask]:
        asks = self._tasks.draw(step, attempt, number)
        if step != KILLED_IN:
            return asks
        return [
            replace(ask, sources={name: KillingSource(source, self._kill) for name, source in ask.sources.items()})
            for ask in asks
        ]

    def held_out(self) -> list[Ask]:
        return []


class KillingSource:
    def __init__(self, source: Source, kill: Callable[[], None]) -> None:
        self._source = source
        self._kill = kill

    async def search(self, request: SearchRequest) -> SearchResult:
        self._kill()
        return await self._source.search(request)


@dataclass(frozen=True)
class Killed:
    recipe: Path
    out: Path
    why: str
    """What the run ended with."""
    again: ServerProcess


@pytest.fixture(scope="module")
def killed(tiny: Path, tiny_server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Generator[Killed]:
    """A run whose server was killed, and another server at its address that is not ready yet."""
    folder = tmp_path_factory.mktemp("killed")
    path, out = tiny_recipe(folder / "recipe.toml", tiny, engine=at(tiny_server)), folder / "run"
    tiny_server.ready()
    recipe = read_rl_recipe(path)
    with pytest.raises(SetupError) as ended:
        RlRun(recipe, out, threads=1, tasks=KillingTasks(recipe, tiny_server.kill)).go(unwatched)
    with serving(tiny, int(tiny_server.url.rpartition(":")[2])) as again:
        yield Killed(path, out, str(ended.value), again)


def test_a_killed_server_ends_the_run_before_the_broken_step_is_learned_from(killed: Killed) -> None:
    assert killed.why.startswith("the vLLM server at http://127.0.0.1:")
    assert "is gone" in killed.why
    assert killed.why.endswith("go on with --resume")
    assert newest_state(killed.out) == killed.out / "states" / f"checkpoint-{KILLED_IN}"
    assert [line["step"] for line in lines_of(killed.out)] == list(range(1, KILLED_IN + 1))
    assert read_manifest(killed.out).state == "stopped"


def test_with_another_server_the_run_goes_on_to_its_end(
    tiny: Path, killed: Killed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed.again.ready()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rl(killed.recipe, killed.out, resume=True, threads=1)
    check_figures(killed.out, steps=STEPS)
    check_last_step(killed.out, tiny)
    assert [one.state for one in read_manifest(killed.out).sessions] == ["stopped", "done"]
    assert not list(tmp_path.glob("cairn-rl-weights-*"))
