"""Reports of the shipped policy, over the manual and over articles: supported sentences, a budget kept, in minutes."""

import asyncio
import shutil
from pathlib import Path

import pytest

from agent.build.agent import build_agent
from agent.build.shipped import with_policy
from agent.models.cache import ModelCache, ModelRecord
from agent.models.wheel import DEFAULT
from agent.report import Report, ReportBudget, ReportPlan, Research, unsupported
from agent.report.export import export
from agent.settings import CairnSettings, load_settings
from tests.agent.models.case import real_gguf

ARTICLES = load_settings().data / "corpus_freshwiki" / "corpus.jsonl"
BUDGET = ReportBudget(seconds=240.0, searches=12, tokens=2_000)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def base_is_fetched() -> None:
    """The base model is in the cache, as after its download."""
    gguf = real_gguf()

    def write(folder: Path) -> ModelRecord:
        shutil.copyfile(gguf, folder / gguf.name)
        return ModelRecord(name=DEFAULT, source="a wheel", sha256="0" * 64, file=gguf.name)

    ModelCache().make("fetched", DEFAULT, write, needs=gguf.stat().st_size)


def researched(settings: CairnSettings, question: str, *, sections: int) -> Report:
    async def scene() -> Report:
        agent = build_agent(with_policy(settings))
        assert agent.policy.name == "small-v1"
        try:
            return await Research(agent, ReportPlan(question, sections=sections, budget=BUDGET)).run()
        finally:
            await agent.aclose()

    return asyncio.run(scene())


def check(report: Report) -> None:
    """What every report promises."""
    read = Report.model_validate_json(export(report, "json").data)
    assert read.state == "done"
    assert len(read.sentences) >= 6
    assert unsupported(read) == []
    assert read.used.searches <= BUDGET.searches
    assert read.used.tokens <= BUDGET.tokens
    assert read.used.seconds <= BUDGET.seconds


def test_a_report_over_the_manual_has_supported_sentences_alone_and_keeps_its_budget():
    report = researched(CairnSettings(world=""), "How does Cairn check claims?", sections=3)
    check(report)
    assert "Evidence that is checked" in [source.title for source in report.sources]


@pytest.mark.skipif(
    not ARTICLES.is_file(), reason=f"the articles are not here; CAIRN_DATA names their folder ({ARTICLES})"
)
def test_a_report_over_articles_has_supported_sentences_alone_and_keeps_its_budget():
    report = researched(CairnSettings(corpus=ARTICLES), "Storm Eunice", sections=3)
    check(report)
    assert [source.title for source in report.sources] == ["Storm Eunice"]
