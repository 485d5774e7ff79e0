"""From settings to an agent. The policy is a script where no checkpoint is meant; everything else is real."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.build.agent import as_trained, build_agent, build_policy, build_protocol, build_sources, notices
from agent.build.shipped import SMALL, newest_checkpoint
from agent.build.sources import distinct
from agent.errors import AgentError, CheckpointError, SetupError
from agent.policies.model_folder import ABOUT, read_about
from agent.policies.scripted import ScriptedPolicy
from agent.settings import BudgetSettings, CairnSettings, load_settings
from agent.sources.base import SearchRequest, Source
from agent.sources.corpus.source import build_index
from tests.shipped import both_forms

ENDPOINT = CairnSettings(policy="openai", base_url="http://127.0.0.1:1/v1", model="m")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    document = {"id": "1", "title": "Lina Orr", "text": "Lina Orr was born in Trieste."}
    (tmp_path / "d.jsonl").write_text(json.dumps(document), encoding="utf-8")
    build_index([tmp_path / "d.jsonl"], tmp_path / "index")
    return tmp_path / "index"


def with_settings(settings: CairnSettings, **changes: object) -> CairnSettings:
    return settings.model_copy(update=changes)


def ids_found(source: Source, query: str) -> list[str]:
    return [passage.id for passage in asyncio.run(source.search(SearchRequest(query, limit=5))).passages]


def test_the_little_world_answers_where_nothing_else_is_named():
    agent = build_agent(CairnSettings(), policy=ScriptedPolicy([]))
    assert set(agent.sources) == {"web", "news", "arxiv", "kg", "all", "documents"}
    assert agent.protocol.name == "cairn"


def test_only_the_embedded_policy_on_the_little_world_says_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, corpus: Path
):
    def scripted(settings: CairnSettings, *, sources: Sequence[str]) -> ScriptedPolicy:
        return ScriptedPolicy([])

    monkeypatch.setattr("agent.build.agent.build_policy", scripted)
    scope = build_agent(CairnSettings()).scope
    assert scope is not None
    assert "connect a model" in (scope("what is the capital of France?", ()) or "")
    assert build_agent(CairnSettings(corpus=corpus)).scope is None
    assert build_agent(ENDPOINT).scope is None
    assert build_agent(CairnSettings(), policy=ScriptedPolicy([])).scope is None


def test_a_corpus_answers_under_every_source_name(corpus: Path):
    sources = build_sources(CairnSettings(corpus=corpus))
    assert set(sources) == {"web", "news", "arxiv", "wiki", "corpus", "kg", "all"}
    assert {
        name: len(ids_found(source, "where was Lina Orr born")) for name, source in sources.items()
    } == dict.fromkeys(sources, 1)


def test_sources_that_are_named_are_the_only_ones_and_all_asks_no_other():
    everything = build_sources(CairnSettings())
    chosen = build_sources(CairnSettings(sources=("news", "kg")))
    assert set(chosen) == {"news", "kg", "all", "documents"}
    query = "list of people born in"
    allowed = {*ids_found(everything["news"], query), *ids_found(everything["kg"], query)}
    assert not set(ids_found(everything["all"], query)) <= allowed
    assert set(ids_found(chosen["all"], query)) <= allowed


@pytest.mark.parametrize("name", ["wikipedia", "corpus"])
def test_a_source_that_is_not_there_is_refused_with_those_that_are(name: str):
    with pytest.raises(SetupError, match=f"no source '{name}'; choose from: .*web"):
        build_sources(CairnSettings(sources=(name,)))


def test_budgets_of_the_settings_reach_the_loop_and_the_others_keep_their_defaults():
    plain = build_agent(ENDPOINT, sources={}).budgets
    settings = with_settings(ENDPOINT, budgets=BudgetSettings(rounds=2, seconds=1.5))
    changed = build_agent(settings, sources={}).budgets
    assert (changed.rounds, changed.seconds) == (2, 1.5)
    assert (changed.searches, changed.answer_tokens) == (plain.searches, plain.answer_tokens)


@pytest.mark.parametrize(("tokens", "held"), [(200, 100), (512, 256), (4096, 256), (16_384, 4096)])
def test_tokens_of_the_settings_leave_at_least_half_of_them_to_the_searches(tokens: int, held: int):
    settings = with_settings(ENDPOINT, budgets=BudgetSettings(policy_tokens=tokens))
    made = build_agent(settings, sources={}).budgets
    assert (made.policy_tokens, made.answer_tokens) == (tokens, held)


@pytest.mark.parametrize("missing", [{"base_url": ""}, {"model": ""}])
def test_an_endpoint_without_its_address_or_model_is_refused_with_an_example(missing: dict[str, str]):
    with pytest.raises(SetupError, match="for example: --base-url"):
        build_policy(with_settings(ENDPOINT, **missing))


@pytest.fixture(scope="module")
def two_passages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped checkpoint in both forms, as if it had been shown two passages a search under cairn."""
    run = both_forms(tmp_path_factory.mktemp("runs") / "run")
    for form in ("hub", "ct2"):
        about = json.loads((run / form / ABOUT).read_text(encoding="utf-8")) | {"passages": {"cairn": 2}}
        (run / form / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    return run


def test_a_search_shows_as_many_passages_as_the_checkpoint_was_trained_with(two_passages: Path):
    for settings, passages in ((CairnSettings(), 3), (CairnSettings(checkpoint=two_passages / "ct2"), 2)):
        assert build_protocol(settings).passages == 3
        assert as_trained(build_protocol(settings), settings).passages == passages


def test_a_policy_that_is_given_is_shown_as_many_passages_as_it_was_trained_with(two_passages: Path):
    settings = load_settings(world="test-v2", checkpoint=two_passages / "ct2")
    policy = build_policy(settings)
    try:
        assert build_agent(settings, policy=policy).protocol.passages == 2
        assert (
            build_agent(settings.model_copy(update={"protocol": "multisearch"}), policy=policy).protocol.passages == 3
        )
    finally:
        asyncio.run(policy.aclose())


def test_another_engine_on_the_same_checkpoint_shows_as_many_passages(two_passages: Path):
    tiny = str(two_passages / "hub")
    for settings in (
        CairnSettings(policy="transformers", model=tiny),
        CairnSettings(policy="openai", base_url="http://127.0.0.1:1/v1", model="served", tokenizer=tiny),
    ):
        assert as_trained(build_protocol(settings), settings).passages == 2
    assert as_trained(build_protocol(ENDPOINT), ENDPOINT).passages == 3


def test_a_policy_that_never_saw_dates_is_shown_none(two_passages: Path, tmp_path: Path):
    folder = tmp_path / "ct2"
    shutil.copytree(two_passages / "ct2", folder)
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    (folder / ABOUT).write_text(json.dumps(about | {"dates": False}), encoding="utf-8")
    settings = load_settings(world="test-v2", checkpoint=folder)
    policy = build_policy(settings)
    try:
        assert build_protocol(settings).dated
        assert not as_trained(build_protocol(settings), settings).dated
        assert not build_agent(settings, policy=policy).protocol.dated
    finally:
        asyncio.run(policy.aclose())
    assert not read_about(SMALL).dates, "small-v1 takes the date of a passage for its title"


def test_the_newest_checkpoint_is_the_one_with_the_highest_version(tmp_path: Path):
    for name in ("tiny-v9", "tiny-v10", "tiny-v1"):
        (tmp_path / name / "ct2").mkdir(parents=True)
    assert newest_checkpoint(tmp_path) == tmp_path / "tiny-v10" / "ct2"


def test_no_checkpoint_at_all_is_a_sentence_with_the_fix(tmp_path: Path):
    with pytest.raises(CheckpointError, match="name one with --checkpoint DIR"):
        newest_checkpoint(tmp_path)


def test_a_folder_that_is_no_checkpoint_is_a_sentence(tmp_path: Path):
    with pytest.raises(CheckpointError, match=tmp_path.name):
        build_policy(CairnSettings(checkpoint=tmp_path))


def test_a_protocol_is_named_or_a_file(tmp_path: Path):
    assert build_protocol(CairnSettings(protocol="multisearch")).name == "multisearch"
    with pytest.raises(SetupError, match="choose from: cairn, "):
        build_protocol(CairnSettings(protocol="nonsense"))
    with pytest.raises(SetupError, match=r"mine\.toml"):
        build_protocol(CairnSettings(protocol=str(tmp_path / "mine.toml")))


@pytest.mark.parametrize("world", ["nonsense", "test-v0"])
def test_a_world_that_is_not_there_is_a_sentence(world: str):
    with pytest.raises(AgentError, match=world):
        build_sources(CairnSettings(world=world))


def test_a_person_learns_what_the_shipped_policy_knows(corpus: Path):
    assert "was trained to search the little world" in notices(CairnSettings())[0]
    assert "trained on the little world only" in notices(CairnSettings(corpus=corpus))[0]
    assert "--corpus DIR" in notices(ENDPOINT)[0]
    assert not notices(with_settings(ENDPOINT, corpus=corpus))


def test_the_public_names_are_all_there():
    import agent

    assert all(getattr(agent, name) for name in agent.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        agent.nonsense  # noqa: B018 - the look-up is what is tested


def test_importing_the_agent_loads_nothing_heavy():
    heavy = ("torch", "faiss", "httpx2", "httpx", "transformers", "sentence_transformers", "numpy", "trafilatura")
    code = f"import sys, agent; sys.exit(', '.join(m for m in {heavy!r} if m in sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_documents_asks_all_sources_but_the_graph():
    everything = build_sources(CairnSettings())
    chosen = build_sources(CairnSettings(sources=("news", "kg")))
    query = "list of people born in"
    assert ids_found(everything["documents"], query)
    assert not set(ids_found(everything["documents"], query)) & set(ids_found(everything["kg"], query))
    assert ids_found(chosen["documents"], query) == ids_found(chosen["news"], query)
    assert "documents" not in build_sources(CairnSettings(sources=("news", "web")))


def test_no_setting_may_name_documents_as_a_source():
    with pytest.raises(SetupError, match="no source 'documents'; choose from: web"):
        build_sources(CairnSettings(sources=("documents",)))
    assert "documents" not in distinct(build_sources(CairnSettings()))
