"""The embedded engine in float32, which trainers take, through what every engine must show."""

from collections.abc import Generator

import pytest

from agent.policies.embedded import EmbeddedPolicy
from tests.agent.policies.conformance import ConformanceOfTurns
from tests.agent.policies.conformance_deaths import ConformanceOfDeaths
from tests.agent.policies.conformance_fills import ConformanceOfFills
from tests.agent.policies.conformance_rollouts import ConformanceOfRollouts
from tests.agent.policies.engine_case import EngineCase, engine_case
from tests.shipped import HUB

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Generator[EngineCase]:
    from train.checkpoints.export import export_checkpoint

    folder = tmp_path_factory.mktemp("float32")
    export_checkpoint(HUB, folder, "float32")

    def load() -> EmbeddedPolicy:
        return EmbeddedPolicy.load(folder, workers=2, compute_type="float32")

    yield from engine_case(load, busy=lambda policy: policy.busy)


class TestEmbeddedFloat32(ConformanceOfDeaths, ConformanceOfTurns):
    """Whole rollouts in float32 are those of transformers: test_agreement.py."""


@pytest.mark.long
class TestRolloutsInFloat32(ConformanceOfRollouts, ConformanceOfFills):
    """Interrupted, in company, and with fills."""
