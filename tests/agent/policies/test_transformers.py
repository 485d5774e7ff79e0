"""The transformers engine: what every engine must show, and what is its own: batches, caches, seeds, settings."""

import asyncio
import gc
import json
import math
import shutil
from collections.abc import Generator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent.build.agent import build_policy
from agent.errors import CheckpointError, PolicyError, SetupError
from agent.policies.base import Sampling
from agent.policies.transformers import MISSING, TransformersPolicy
from agent.settings import load_settings
from tests.agent.policies.conformance import ConformanceOfTurns
from tests.agent.policies.conformance_deaths import ConformanceOfDeaths
from tests.agent.policies.conformance_fills import ConformanceOfFills
from tests.agent.policies.conformance_rollouts import ConformanceOfRollouts
from tests.agent.policies.engine_case import CAIRN, FOUND, ONE_HOP, EngineCase, engine_case, ids_of, turn
from tests.agent.policies.held import Hold
from tests.shipped import HUB

if TYPE_CHECKING:
    from torch import Tensor

pytestmark = pytest.mark.train


def load() -> TransformersPolicy:
    return TransformersPolicy.load(str(HUB), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def case() -> Generator[EngineCase]:
    yield from engine_case(load, busy=lambda policy: policy.engine.busy)


class TestTransformers(ConformanceOfDeaths, ConformanceOfTurns, ConformanceOfRollouts, ConformanceOfFills):
    """On a CPU, in float32."""


def used(case: EngineCase) -> tuple[int, int]:
    assert isinstance(case.policy, TransformersPolicy)
    return case.policy.use.read, case.policy.use.sampled


# Log-probabilities


def test_log_probabilities_are_those_of_the_model_given_everything_before(case: EngineCase):
    """Beside one forward pass of the model over the whole context, whatever temperature, top-k and top-p were."""
    import torch
    import transformers

    async def scene():
        context = case.open()
        await turn(context, stop=["</search>"], max_tokens=100, sampling=Sampling(temperature=1.3, top_k=9, top_p=0.9))
        context.append(FOUND, by="environment")
        await turn(context, max_tokens=60)
        return context.segments

    segments = case.run(scene())
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(HUB, dtype=torch.float32)  # pyright: ignore[reportUnknownMemberType]
    ids = [number for segment in segments for number in ids_of(segment)]
    with torch.inference_mode():
        logprobs: Tensor = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    at = 0
    for segment in segments:
        for place, number in enumerate(ids_of(segment), start=at):
            if segment.logprobs is not None:
                assert segment.logprobs[place - at] == pytest.approx(logprobs[place - 1, number].item(), abs=1e-4)
        at += len(ids_of(segment))


# What was computed is kept


def test_a_second_turn_reads_only_what_is_new(case: EngineCase):
    async def scene():
        context = case.open()
        await turn(context, stop=["</search>"], max_tokens=100)
        before, _ = used(case)
        added = context.append(FOUND, by="environment")
        await turn(context, max_tokens=5)
        read, _ = used(case)
        assert read - before == len(ids_of(added)) + 1  # the token that ended the turn was sampled, and not read yet

    case.run(scene())


def test_a_fork_reads_only_what_is_new_and_so_does_the_original(case: EngineCase):
    async def scene():
        context = case.open()
        await turn(context, stop=["</search>"], max_tokens=100)
        fork = context.fork()
        for one in (fork, context):
            added = one.append(FOUND, by="environment")
            before, _ = used(case)
            await turn(one, max_tokens=5)
            assert used(case)[0] - before == len(ids_of(added)) + 1

    case.run(scene())


def test_a_fork_is_not_misled_by_what_the_original_went_on_with(case: EngineCase):
    async def scene():
        context = case.open()
        await turn(context, stop=["</search>"], max_tokens=100)
        fork, fresh = context.fork(), context.fork()
        context.append(FOUND.replace("Lurnia", "Bordovia"), by="environment")
        await turn(context, max_tokens=30)
        for one in (fork, fresh):
            one.append(FOUND, by="environment")
        before, _ = used(case)
        said = await turn(fork, max_tokens=30)
        assert used(case)[0] - before < fork.tokens - 30  # what both have in common was not read again
        assert isinstance(case.policy, TransformersPolicy)
        fresh._sampler = Session(case.policy.engine)  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
        alone = await turn(fresh, max_tokens=30)
        assert said.ids == alone.ids
        assert said.logprobs == pytest.approx(alone.logprobs, abs=1e-4)

    from agent.policies.torch_engine import Session

    case.run(scene())


def test_a_context_that_was_forgotten_is_read_again_and_says_the_same(case: EngineCase):
    async def scene(policy: TransformersPolicy):
        context = policy.open(CAIRN, ONE_HOP)
        await turn(context, stop=["</search>"], max_tokens=100)
        context.append(FOUND, by="environment")
        before = policy.use.read
        said = await turn(context, max_tokens=30)
        return said, policy.use.read - before, context.tokens

    small = load()
    small.engine.kept.limit = 0
    forgetful, read, tokens = case.run(scene(small))
    case.runner.run(small.aclose())
    assert isinstance(case.policy, TransformersPolicy)
    remembered, _, _ = case.run(scene(case.policy))
    assert read == tokens - len(ids_of(forgetful))
    assert forgetful.ids == remembered.ids
    assert forgetful.logprobs == pytest.approx(remembered.logprobs, abs=1e-4)


def test_a_long_prompt_is_read_in_pieces_while_others_grow(case: EngineCase):
    async def scene():
        long = case.open("Who is it? " * 260)
        assert 1100 < long.tokens < 2000
        alone = await turn(long.fork(), max_tokens=8)
        short, longer = await asyncio.gather(turn(case.open(), max_tokens=40), turn(long, max_tokens=8))
        assert longer.ids == alone.ids
        assert short.ids == (await turn(case.open(), max_tokens=40)).ids

    case.run(scene())


# How a token is drawn


def test_draws_follow_the_probabilities_that_temperature_top_k_and_top_p_leave():
    import torch

    from agent.policies.torch_rows import draw

    logits = torch.tensor([0.5, 2.0, -1.0, 1.0, 0.0])
    for sampling in (
        Sampling(temperature=1.0),
        Sampling(temperature=0.5),
        Sampling(temperature=1.0, top_k=2),
        Sampling(temperature=1.0, top_p=0.7),
        Sampling(temperature=2.0, top_k=4, top_p=0.8),
    ):
        generator = torch.Generator().manual_seed(1)
        seen = [0] * 5
        for number in draw(logits.expand(4000, -1), sampling, [generator] * 4000):
            seen[number] += 1
        for count, expected in zip(seen, _left(logits.tolist(), sampling), strict=True):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            assert (count == 0) == (expected == 0)
            assert count / 4000 == pytest.approx(expected, abs=0.03)


def test_rows_that_are_drawn_in_different_ways_say_what_each_says_alone():
    import torch

    from agent.policies.torch_rows import choose

    logits = torch.randn(60, 11, generator=torch.Generator().manual_seed(7))
    ways = (
        Sampling(),
        Sampling(temperature=1.0),
        Sampling(temperature=0.5, top_k=3),
        Sampling(temperature=1.0, top_p=0.6),
        Sampling(temperature=1.0, seed=9),
    )
    sampling = [ways[row % 5] for row in range(60)]

    def fresh(row: int) -> torch.Generator:
        return torch.Generator().manual_seed(row)

    together = choose(logits, sampling, [fresh(row) for row in range(60)])
    alone = [choose(logits[row : row + 1], sampling[row : row + 1], [fresh(row)])[0] for row in range(60)]
    assert [number for number, _ in together] == [number for number, _ in alone]
    for (_, one), (_, other) in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    assert len({number for number, _ in together}) > 3


def _left(logits: list[float], sampling: Sampling) -> list[float]:
    """Probabilities by the words of top-k and top-p, one token after the other."""
    weights = [math.exp(value / sampling.temperature) for value in logits]
    order = sorted(range(len(weights)), key=lambda n: -weights[n])[: sampling.top_k or len(weights)]
    total, kept, reached = sum(weights[n] for n in order), list[int](), 0.0
    for number in order:
        kept.append(number)
        reached += weights[number] / total
        if reached >= sampling.top_p:
            break
    left = sum(weights[n] for n in kept)
    return [weights[n] / left if n in kept else 0.0 for n in range(len(weights))]


# Ending early


@pytest.mark.parametrize("said", [1, 4])
def test_closing_early_frees_the_slot_at_the_next_token(case: EngineCase, monkeypatch: pytest.MonkeyPatch, said: int):
    hold = Hold(at=said)
    hold.install(monkeypatch)

    async def scene():
        async with hold:
            context = case.open()
            async with aclosing(context.generate(Sampling(), stop=[], max_tokens=450)) as chunks:
                for _ in range(said):
                    await anext(chunks)
        assert len(ids_of(context.segments[-1])) == said
        await turn(case.open(), max_tokens=40)

    case.run(scene())
    assert hold.counts == [said, 40]


def test_closing_the_policy_ends_its_thread_and_all_that_wait(monkeypatch: pytest.MonkeyPatch):
    async def scene(policy: TransformersPolicy):
        hold = Hold()
        hold.install(monkeypatch)
        async with hold:
            rollouts = [asyncio.create_task(turn(policy.open(CAIRN, ONE_HOP), max_tokens=450)) for _ in range(5)]
            await asyncio.to_thread(hold.reached.wait, 20)
            closing = asyncio.create_task(policy.aclose())
            await asyncio.sleep(0)
        await closing
        results = await asyncio.gather(*rollouts, return_exceptions=True)
        assert all(isinstance(result, PolicyError) for result in results)
        with pytest.raises(PolicyError, match="closed"):
            await turn(policy.open(CAIRN, ONE_HOP))

    asyncio.run(scene(load()))


def test_a_policy_without_references_ends_its_thread():
    policy = load()
    thread = policy.engine._workers[0]  # pyright: ignore[reportPrivateUsage]
    context = policy.open(CAIRN, ONE_HOP)
    del policy
    gc.collect()
    assert asyncio.run(turn(context, max_tokens=3)).text  # a context that is open holds it
    del context
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


# What goes wrong


def test_a_prompt_that_breaks_the_engine_fails_alone(case: EngineCase):
    async def scene():
        assert isinstance(case.policy, TransformersPolicy)
        from agent.policies.torch_engine import Session

        hostile = Session(case.policy.engine).sample([10**6], Sampling(), ends=frozenset(), max_tokens=5)
        good = asyncio.create_task(turn(case.open(), max_tokens=20))
        with pytest.raises(PolicyError, match="the transformers engine failed"):
            await anext(hostile)
        assert len(ids_of(await good)) == 20

    case.run(scene())


def test_without_torch_the_fix_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    monkeypatch.delitem(__import__("sys").modules, "agent.policies.torch_engine", raising=False)
    with pytest.raises(SetupError) as caught:
        load()
    assert str(caught.value) == MISSING
    assert "pip install" in MISSING


def test_weights_that_cannot_be_loaded_are_reported(tmp_path: Path):
    folder = Path(shutil.copytree(HUB, tmp_path / "hub"))
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match="transformers cannot load"):
        TransformersPolicy.load(str(folder))


def test_layers_of_a_kind_that_it_cannot_cache_are_refused(tmp_path: Path):
    folder = Path(shutil.copytree(HUB, tmp_path / "hub"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["layer_types"][0] = "linear_attention"
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CheckpointError, match="layers of linear_attention"):
        TransformersPolicy.load(str(folder))


def test_a_device_that_is_not_there_is_reported():
    with pytest.raises(SetupError, match="try --device cpu"):
        TransformersPolicy.load(str(HUB), device="cuda:7")


# Settings


def test_the_settings_name_the_model_and_how_it_computes():
    policy = build_policy(load_settings(policy="transformers", model=str(HUB), dtype="bfloat16", device="cpu"))
    assert (policy.name, policy.context_tokens) == ("cairn-tiny-v2", 3072)

    async def scene():
        try:
            return await turn(policy.open(CAIRN, ONE_HOP), stop=["</search>"], max_tokens=80)
        finally:
            await policy.aclose()

    assert asyncio.run(scene()).text.endswith("</search>")


def test_a_policy_of_this_process_without_a_model_is_reported():
    with pytest.raises(SetupError, match="needs a model in the hub's form"):
        build_policy(load_settings(policy="transformers"))
