import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import typer
from typer.testing import CliRunner, Result

from agent.build.sources import build_sources
from agent.errors import SetupError
from agent.protocols import load_protocol, protocol_named
from agent.settings import CairnSettings
from agent.sources.kg.build import build_graph
from lab.plan import small_run
from lab.plan.commands import plan
from lab.plan.planning import Plan, commands_of, plan_of, read_any
from lab.plan.rehearsal import rehearse
from lab.plan.scale import read_scale, scale_of
from lab.plan.small_run import run_launched, run_shared
from train.ppo.recipe import PpoRecipe
from train.rewards.base import Reward
from train.safety.probes import RetrieverProbes

pytestmark = pytest.mark.train

ROOT = Path(__file__).parents[3]
PAPERS = ROOT / "train" / "recipes" / "papers"
NAMES = ("multisearch", "dag", "evidence", "evidence_ppo", "reflect", "kg")
"""Recipes; every one of the five papers has one, and `evidence` its PPO, too."""


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes name their protocols from there."""
    monkeypatch.chdir(ROOT)


def cairn(*arguments: object) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)  # so that the one command keeps its name
    app.command("plan")(plan)
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def planned(name: str) -> Plan:
    path = PAPERS / f"{name}.toml"
    return plan_of(read_any(path), *read_scale(scale_of(path)))


@pytest.mark.parametrize(
    ("name", "rate", "kl", "prompts", "group", "steps", "top_p", "algorithm"),
    [
        ("multisearch", 1e-6, (0.001, 0.001), 512, 5, 200, 0.95, "gdpo"),
        ("dag", 5e-6, (0.1, 0.01), 8, 4, 125, 1.0, "grpo"),
        ("evidence", 1e-6, (0.001, 0.001), 256, 5, 195, 1.0, "grpo"),
        ("evidence_ppo", 1e-6, (0.001, 0.001), 256, 1, 195, 1.0, "ppo"),
        ("reflect", 1e-6, (0.0, 0.0), 32, 32, 500, 1.0, "dapo"),
        ("kg", 1e-6, (0.001, 0.001), 16, 8, 1009, 0.95, "grpo"),
    ],
)
def test_recipes_have_the_papers_figures(
    name: str, rate: float, kl: tuple[float, float], prompts: int, group: int, steps: int, top_p: float, algorithm: str
) -> None:
    recipe = read_any(PAPERS / f"{name}.toml")
    assert (recipe.optimizer.lr, recipe.rollout.prompts, recipe.rollout.group, recipe.steps) == (
        rate,
        prompts,
        group,
        steps,
    )
    assert (recipe.learning.kl_weight(0), recipe.learning.kl_weight(1)) == pytest.approx(kl)
    assert (recipe.rollout.temperature, recipe.rollout.top_p, recipe.learning.name) == (1.0, top_p, algorithm)
    assert recipe.reward[0].settings["variant"] == "printed"
    assert recipe.learning.divide_by_std == (name != "dag")
    assert recipe.optimizer.betas == (0.9, 0.999)


def test_what_only_one_paper_says_stands_in_its_recipe() -> None:
    multisearch, evidence, reflect = (
        read_any(PAPERS / f"{name}.toml") for name in ("multisearch", "evidence", "reflect")
    )
    assert (multisearch.optimizer.weight_decay, multisearch.optimizer.clip, multisearch.learning.clip_low) == (
        0.01,
        1,
        0.2,
    )
    assert (multisearch.optimizer.warmup_steps, multisearch.rollout.rounds) == (0, 4)
    assert evidence.optimizer.warmup_steps / evidence.steps == pytest.approx(0.95, abs=0.003)
    assert (reflect.learning.clip_low, reflect.learning.high, reflect.learning.level) == (0.2, 0.28, "token")
    assert (reflect.learning.resampling, reflect.report.save_every_steps) == ("full", 30)
    assert read_any(PAPERS / "dag.toml").data.order == "listed"
    lengths = {
        name: read_any(PAPERS / f"{name}.toml").rollout.policy_tokens for name in ("multisearch", "reflect", "kg")
    }
    assert lengths == {"multisearch": 2048, "reflect": 16384, "kg": 8192}


@pytest.mark.parametrize("name", NAMES)
def test_every_plan_fits_its_machine_and_lacks_only_data(name: str) -> None:
    plan = planned(name)
    assert plan.longest.fits
    assert plan.usual.bytes <= plan.longest.bytes
    assert plan.server.fits
    assert plan.at_once > 0
    assert plan.gpus <= (plan.scale.paper.gpus if plan.scale.paper else 8)
    assert all("not there yet" in note for note in plan.notes)
    assert 0 < plan.step_seconds < 3600
    assert plan.hours == pytest.approx(plan.recipe.steps * plan.step_seconds / 3600)


def test_the_estimate_of_the_one_time_that_a_paper_gives_is_within_a_factor_of_two() -> None:
    plan = planned("reflect")
    assert plan.scale.paper is not None
    assert plan.scale.paper.hours is not None
    assert 0.5 < plan.hours / plan.scale.paper.hours < 2


@pytest.mark.parametrize("name", ["multisearch", "dag", "evidence", "reflect", "kg"])
def test_a_papers_protocol_is_the_built_in_one_inside_of_a_chat(name: str) -> None:
    own, built_in = load_protocol(PAPERS / f"{name}.protocol.toml"), protocol_named(name)
    other = {"chat", "system", "prompt", "history", "instructions"}
    assert own.model_dump(exclude=other) == built_in.model_dump(exclude=other)
    instructions = built_in.instructions.replace("{rounds}", str(own.max_rounds)).replace(
        "{sources}", "Web, News, Arxiv"
    )
    assert own.system == instructions
    assert own.chat is not None


def test_the_servers_command_is_what_the_trainer_wants_of_it() -> None:
    """By TRL's own builder of that command, for the same settings."""
    serving: Any = pytest.importorskip("trl.scripts.vllm_serve")
    plan = planned("evidence")
    server, trainer = commands_of(plan, PAPERS / "evidence.toml", PAPERS / "evidence.scale.toml")
    said = [word for word in shlex.split(server) if "=" not in word or word.startswith("{")]
    wanted: list[str] = serving.build_command(
        serving.ScriptArguments(
            model="Qwen/Qwen2.5-7B-Instruct",
            tensor_parallel_size=2,
            gpu_memory_utilization=0.9,
            max_model_len=8192,
            enable_prefix_caching=True,
        )
    )
    assert said[:3] == ["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct"]
    for flag in ("--port", "--tensor-parallel-size", "--gpu-memory-utilization", "--max-model-len"):
        assert said[said.index(flag) + 1] == wanted[wanted.index(flag) + 1]
    for flag in ("--weight-transfer-config", "--logprobs-mode", "--max-logprobs"):
        assert said[said.index(flag) + 1] == wanted[wanted.index(flag) + 1]
    assert "--enable-prefix-caching" in said
    assert "VLLM_SERVER_DEV_MODE=1" in server
    assert said[said.index("--host") + 1] == "127.0.0.1"
    assert "accelerate launch" in trainer
    assert "fsdp2_4gpus.yaml" in trainer


def test_another_model_and_a_path_with_spaces_stand_in_the_commands() -> None:
    path, there = PAPERS / "kg.toml", PAPERS / "kg.scale.toml"
    plan = plan_of(read_any(path, start="Qwen/Qwen2.5-3B"), *read_scale(there))
    server, trainer = commands_of(plan, Path("my recipes/kg.toml"), there, start="Qwen/Qwen2.5-3B")
    assert "vllm serve Qwen/Qwen2.5-3B " in server
    said = shlex.split(trainer)
    assert said[said.index("--start") + 1] == "Qwen/Qwen2.5-3B"
    assert said[said.index("--recipe") + 1] == "my recipes/kg.toml"
    assert "--start" not in commands_of(planned("kg"), path, there)[1]


def test_what_recipe_and_scale_do_not_say_alike_is_noted() -> None:
    scale, trainer = read_scale(PAPERS / "kg.scale.toml")
    other = scale.model_copy(update={"server": scale.server.model_copy(update={"port": 9000})})
    assert any("starts it at port 9000" in note for note in plan_of(planned("kg").recipe, other, trainer).notes)
    beside = planned("evidence_ppo")
    more = beside.scale.server.model_copy(update={"gpu_memory_utilization": 0.2})
    notes = plan_of(beside.recipe, beside.scale.model_copy(update={"server": more}), beside.trainer).notes
    assert "gpu_memory_utilization is 0.1 in the recipe, and 0.2 in the scale" in notes


@pytest.mark.parametrize("name", NAMES)
def test_the_sources_of_a_recipe_are_settings_of_the_agent_and_those_that_lack_are_noted(name: str) -> None:
    plan = planned(name)
    search = plan.recipe.data.search
    assert set(search) <= set(CairnSettings.model_fields)
    for kind in {"corpus", "kg"} & set(search):
        assert any(str(search[kind]) in note for note in plan.notes)


@pytest.mark.parametrize("name", NAMES)
def test_the_probes_of_a_recipe_name_the_sources_that_it_has(name: str, tmp_path: Path) -> None:
    recipe = read_any(PAPERS / f"{name}.toml")
    search = dict(recipe.data.search)
    assert recipe.safety.probes
    if search.get("live"):
        assert {probe.source for probe in recipe.safety.probes} <= set(search["sources"])
        return
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "france.md").write_text("Paris is the capital of France.", encoding="utf-8")
    search["corpus"] = tmp_path / "documents"
    if "kg" in search:
        (tmp_path / "triples.tsv").write_text("France\tcapital\tParis\n", encoding="utf-8")
        search["kg"] = tmp_path / "graph.db"
        build_graph([tmp_path / "triples.tsv"], search["kg"])
    asyncio.run(
        RetrieverProbes(recipe.safety.probes).check(build_sources(CairnSettings(**search)), when="before step 1")
    )


def test_without_keys_the_live_sources_of_a_recipe_are_refused_and_no_little_world_stands_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("TAVILY_KEY", "SERPER_KEY", "BRAVE_KEY", "GNEWS_KEY", "SEARXNG_URL"):
        monkeypatch.delenv(f"CAIRN_{name}", raising=False)
    with pytest.raises(SetupError, match=r"there is no source 'web'; it needs CAIRN_TAVILY_KEY"):
        build_sources(CairnSettings(**read_any(PAPERS / "dag.toml").data.search))


def test_the_command_plans_and_rehearses_the_recipe_of_ppo() -> None:
    done = cairn(PAPERS / "evidence_ppo.toml", "--json")
    assert done.exit_code == 0, done.output
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["trainer"]["fits"]
    assert said["rehearsed"]["steps"] == 2
    assert said["rehearsed"]["requests"] >= 1
    assert said["rehearsed"]["figures"]["trainer/grad_norm"] > 1e-3
    assert said["rehearsed"]["figures"]["masked/share"] == 0
    assert said["step_seconds"] == pytest.approx(sum(said["step"].values()))
    assert said["assumed"]["efficiency.train"] == 0.35


def test_the_table_of_another_model_says_where_it_does_not_fit() -> None:
    done = cairn(PAPERS / "kg.toml", "--start", "Qwen/Qwen2.5-32B-Instruct", "--no-rehearse")
    assert done.exit_code == 0, done.output
    assert "IT DOES NOT FIT" in done.stdout
    assert "note: the longest rows do not fit" in done.stdout


@pytest.mark.parametrize("name", [name for name in NAMES if name != "evidence_ppo"])
def test_every_recipe_runs_and_learns_at_a_tiny_size(name: str) -> None:
    recipe = read_any(PAPERS / f"{name}.toml")
    seen = rehearse(recipe)
    assert seen.figures["trainer/grad_norm"] > 1e-3
    assert seen.steps == 2
    assert {"hub", "manifest.json", "monitors.jsonl", "states", "traces.jsonl"} <= set(seen.files)
    assert (seen.requests > 0) == (recipe.judge is not None or recipe.reader is not None)
    assert seen.figures["masked/share"] == 0
    assert not isinstance(recipe, PpoRecipe)


def as_it_is(reward: Reward[Any]) -> Reward[Any]:
    return reward


def test_a_rehearsal_without_a_gradient_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_run, "spread", as_it_is)
    with pytest.raises(SetupError, match=r"no gradient flowed in the rehearsal: its norm is 0\.0"):
        rehearse(read_any(PAPERS / "multisearch.toml"), steps=1)


@pytest.mark.slow
def test_a_recipe_whose_weights_are_shared_is_rehearsed_with_its_own_configuration_in_two_processes() -> None:
    done = cairn(PAPERS / "dag.toml", "--json")
    assert done.exit_code == 0, done.output
    seen: dict[str, Any] = json.loads(done.stdout)["rehearsed"]
    assert (seen["steps"], seen["processes"]) == (2, 2)
    assert seen["figures"]["trainer/grad_norm"] > 1e-3
    assert 0.98 < seen["figures"]["trainer/ratio_mean"] < 1.02  # rollouts had the weights that are trained
    assert seen["figures"]["rollouts"] == 4


@pytest.mark.slow
def test_a_rehearsal_that_fails_in_its_processes_says_why(tmp_path: Path) -> None:
    recipe, run = read_any(PAPERS / "kg.toml"), tmp_path / "run"
    with pytest.raises(SetupError, match=r"rehearsal in 2 processes failed: (?s:.*)none\.yaml"):
        run_shared(recipe, run, accelerate=tmp_path / "none.yaml")
    (run / "states" / "checkpoint-1").mkdir(parents=True)
    with pytest.raises(SetupError, match="already has a run"):
        run_launched(tmp_path / "run.json", run)  # as each of the processes does
    with pytest.raises(SetupError, match=r"rehearsal in 2 processes failed: .*run already has a run"):
        run_shared(recipe, run, accelerate=tmp_path / "none.yaml")


def test_a_recipe_that_no_plan_is_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"that of .*tiny_sft\.toml is 'sft'"):
        read_any(ROOT / "train" / "recipes" / "tiny_sft.toml")
    with pytest.raises(SetupError, match="not the engine 'embedded'"):
        plan_of(read_any(ROOT / "train" / "recipes" / "tiny_ppo.toml"), *read_scale(PAPERS / "kg.scale.toml"))
    with pytest.raises(SetupError, match="name another one with --scale FILE"):
        read_scale(tmp_path / "no.toml")
    wrong = (PAPERS / "kg.scale.toml").read_text(encoding="utf-8").replace("fsdp2_4gpus.yaml", "none.yaml")
    (tmp_path / "a.scale.toml").write_text(wrong, encoding="utf-8")
    with pytest.raises(SetupError, match=r"accelerate config .*none\.yaml cannot be used"):
        read_scale(tmp_path / "a.scale.toml")
