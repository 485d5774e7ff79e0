from pathlib import Path

import pytest

pytest.importorskip("torch")

from lab.plan.planning import plan_of, read_any
from lab.plan.scale import read_scale, scale_of

pytestmark = pytest.mark.train

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["multisearch", "dag", "evidence", "evidence_ppo", "reflect", "kg"])
def test_the_figures_in_the_docs_are_the_plans(name: str) -> None:
    path = ROOT / "train" / "recipes" / "papers" / f"{name}.toml"
    plan = plan_of(read_any(path), *read_scale(scale_of(path)))
    learning = sum(span.seconds for span in plan.spans[-3:])
    cells = (
        f"`{name}`",
        f"{plan.gpus} {plan.scale.gpu}",
        f"{plan.longest.bytes / 1e9:.0f} of {plan.longest.holds / 1e9:.0f}",
        f"{plan.usual.bytes / 1e9:.0f}",
        f"{plan.at_once}",
        f"{plan.step_seconds - learning:.0f}",
        f"{learning:.0f}",
        f"{plan.hours:.0f}",
    )
    assert f"| {' | '.join(cells)} |" in (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8").splitlines()
