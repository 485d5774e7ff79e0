import math
from copy import deepcopy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from agent.trace.samples import Sample  # noqa: E402 - only where torch is
from tests.train.ppo import tiny  # noqa: E402
from train.ppo.learner import Learner  # noqa: E402
from train.ppo.rows import rows_of  # noqa: E402
from train.ppo.scoring import score  # noqa: E402

pytestmark = pytest.mark.train

P, E = True, False
SAMPLES = [
    [tiny.sample([1, 2, 3, 4, 5, 6], [E, P, E, E, P, P])],
    [tiny.sample([1, 7, 8], [E, P, P]), tiny.sample([1, 7, 9, 9, 4], [E, E, E, P, P])],
    [tiny.sample([1, 3, 3, 3], [E, E, P, P])],
]
REWARDS = [1.0, 0.0, 0.5]


def weights(of: Learner) -> list[Any]:
    return [p.detach().clone() for model in (of.policy, of.critic) for p in model.parameters()]


def same(one: list[Any], two: list[Any]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_rows_hold_every_context_and_know_what_the_policy_wrote() -> None:
    rows = rows_of(SAMPLES, REWARDS)
    assert rows.lengths == (6, 3, 5, 4)
    assert rows.rewards.tolist() == [1, 0, 0, 0.5]  # pyright: ignore[reportUnknownMemberType] - torch's stub
    assert rows.tokens == 3 + 2 + 2 + 2
    assert rows.micro_batches(range(4), number=2) == [[0, 2], [3, 1]]
    assert rows.part([1, 3]).ids.shape == (2, 4)


def test_a_score_is_what_the_whole_model_says_and_does_not_depend_on_the_mask() -> None:
    model, rows = tiny.model(), rows_of(SAMPLES, REWARDS)
    found: Any = score(model, rows, temperature=0.7, entropies=True)
    logits: Any = model(rows.ids[:1], use_cache=False).logits
    logs = (logits / 0.7).log_softmax(-1)
    for at, word in ((1, 2), (4, 5), (5, 6)):
        assert math.isclose(found.logprobs[0, at].item(), logs[0, at - 1, word].item(), abs_tol=1e-5)
    spread = -(logs[0, 0].exp() * logs[0, 0]).sum()
    assert torch.isclose(found.entropy[0, 1], spread, atol=1e-5)
    fewer = rows_of([[tiny.sample([1, 2, 3, 4, 5, 6], [E, E, E, E, E, P])]], [1.0])
    alone: Any = score(model, fewer, temperature=0.7)
    assert torch.isclose(alone.logprobs[0, 5], found.logprobs[0, 5], atol=1e-5)


def test_the_gradient_of_every_token_of_the_environment_is_exactly_0() -> None:
    """By the logits of the whole context: those that a token of the environment would be drawn from get nothing."""
    model, rows = tiny.model(), rows_of(SAMPLES, REWARDS)
    ours: Any = score(model, rows).logprobs.sum()
    ours.backward()
    mine: list[Any] = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    logits: Any = model(rows.ids, use_cache=False).logits
    logits.retain_grad()
    logs = logits[:, :-1].log_softmax(-1).gather(2, rows.ids[:, 1:, None])[..., 0]
    whole: Any = (logs * rows.mask[:, 1:]).sum()
    whole.backward()
    by_place = logits.grad[:, :-1].abs().sum(-1)
    assert not by_place[~rows.mask[:, 1:]].any()
    assert by_place[rows.mask[:, 1:]].all()
    theirs: list[Any] = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(mine, theirs, strict=True))


def test_what_stands_at_tokens_that_are_not_trained_counts_for_nothing_but_being_read() -> None:
    """Log-probabilities that a sampler left at tokens of the environment change no weight."""
    given = tiny.recipe()
    one, two = tiny.learner(given), tiny.learner(given)
    strange = Sample("main", (1, 2, 3, 4, 5, 6), SAMPLES[0][0].mask, (9.0, -1.0, 7.0, -3.0, -1.0, -1.0))
    one.learn(rows_of(SAMPLES, REWARDS), progress=0, seed=1)
    two.learn(rows_of([[strange], *SAMPLES[1:]], REWARDS), progress=0, seed=1)
    assert same(weights(one), weights(two))


def test_masked_rollouts_change_no_weight() -> None:
    given = tiny.recipe()
    one, two = tiny.learner(given), tiny.learner(given)
    figures = one.learn(rows_of(SAMPLES, REWARDS), progress=0, seed=1)
    masked = [tiny.sample([1, 5, 5], [E, P, P])]
    more = two.learn(rows_of([masked, *SAMPLES, masked], [None, *REWARDS, None]), progress=0, seed=1)
    assert same(weights(one), weights(two))
    assert figures == more


def test_a_step_in_which_everything_is_masked_changes_nothing() -> None:
    one = tiny.learner(tiny.recipe())
    before = weights(one)
    assert one.learn(rows_of(SAMPLES, [None, None, None]), progress=0, seed=1) == {}
    assert same(weights(one), before)


def test_one_update_at_once_or_in_pieces_is_the_same() -> None:
    one, two = (tiny.learner(tiny.recipe(optimizer={"micro_batches": number})) for number in (1, 3))
    for learner in (one, two):
        learner.learn(rows_of(SAMPLES, REWARDS), progress=0, seed=1)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(weights(one), weights(two), strict=True))


def test_before_anything_is_learned_the_policy_is_its_reference_and_nothing_is_clipped() -> None:
    given = tiny.recipe({"kl": [[0, 0.1]]})
    figures = tiny.learner(given, reference=True).learn(rows_of(SAMPLES, REWARDS), progress=0, seed=1)
    assert figures["kl"] == 0
    assert figures["clipped_low"] == figures["clipped_high"] == 0
    assert abs(figures["moved"]) < 1e-6
    assert math.isclose(figures["return"], (3 * 1 + 4 * 0 + 2 * 0.5) / 9, rel_tol=1e-5)
    assert figures["beta"] == 0.1
    assert 0 < figures["entropy"] <= math.log(tiny.WORDS)


def test_a_critic_that_goes_first_is_not_held_back_by_the_clip_of_its_values() -> None:
    rows = rows_of(SAMPLES, [3.0, 3.0, 3.0])
    learner = tiny.learner(tiny.recipe({"critic_epochs_first": 30, "value_clip": 0.1, "critic_lr": 2e-2}))
    learner.learn(rows, progress=0, seed=1)
    assert abs(learner.learn(rows, progress=0.1, seed=2)["value"] - 3) < 0.5


def test_the_critic_says_what_it_expects_before_it_sees_the_token() -> None:
    """Another token in the last place changes no value; another one before it does."""
    critic = tiny.learner(tiny.recipe()).critic
    torch.nn.init.normal_(critic.head.weight)
    values: list[Any] = [
        critic(rows_of([[tiny.sample(ids, [E, P, E, P])]], [1.0])) for ids in ([1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 6, 4])
    ]
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[0][:, :2], values[2][:, :2])
    assert not torch.equal(values[0], values[2])


@pytest.mark.parametrize("whiten", [True, False])
def test_advantages_are_whitened_where_the_recipe_says_so(whiten: bool) -> None:
    """The loss of the first update is their mean with the other sign: of a critic that says 0, the mean reward."""
    figures = tiny.learner(tiny.recipe({"whiten": whiten})).learn(rows_of(SAMPLES, REWARDS), progress=0, seed=1)
    assert figures["policy_loss"] == pytest.approx(0 if whiten else -figures["return"], abs=1e-5)
    assert figures["return"] > 0.4


def test_the_penalty_keeps_the_policy_near_its_reference() -> None:
    far: list[float] = []
    for beta in (0.0, 2.0):
        learner = tiny.learner(tiny.recipe({"kl": [[0, beta]], "whiten": False}), reference=True)
        rows = rows_of(SAMPLES, REWARDS)
        far.append([learner.learn(rows, progress=0, seed=n)["kl"] for n in range(12)][-1])
    assert far[1] < far[0] / 2


def test_a_saved_learner_goes_on_as_if_it_had_not_stopped() -> None:
    """Nor does the critic go first once more."""
    how = {"epochs": 2, "minibatches": 2, "warmup_steps": 3, "schedule": "cosine"}
    rows = rows_of(SAMPLES, REWARDS)
    one = tiny.learner(tiny.recipe({"critic_epochs_first": 2}, how))
    one.learn(rows, progress=0, seed=1)
    assert one.updates == 2 * 2
    kept, policy = deepcopy(one.state()), deepcopy(one.policy.state_dict())
    one.learn(rows, progress=0.1, seed=2)
    two = tiny.learner(tiny.recipe(optimizer=how), seed=9)
    two.policy.load_state_dict(policy)
    two.load(kept)
    two.learn(rows, progress=0.1, seed=2)
    assert same(weights(one), weights(two))


def test_rates_warm_up_and_fall() -> None:
    given = tiny.recipe(optimizer={"warmup_steps": 2, "schedule": "linear"})
    learner, rows = tiny.learner(given), rows_of(SAMPLES, REWARDS)
    rates = [learner.learn(rows, progress=0, seed=0)["lr"] / 1e-2 for _ in range(10)]
    assert rates[:3] == pytest.approx([0.5, 1, 1])
    assert rates[3:] == pytest.approx([7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


@pytest.mark.slow
def test_in_a_bandit_the_reward_rises_and_the_critic_learns_what_to_expect() -> None:
    """Two words are drawn with a word of the environment between them; the first must be 5, and the second 7."""
    torch.manual_seed(3)
    given = tiny.recipe({"critic_epochs_first": 2}, {"lr": 1e-2, "epochs": 2, "minibatches": 2})
    learner = tiny.learner(given)
    drawn, rewards = torch.Generator().manual_seed(5), [0.0]
    figures: dict[str, float] = {}
    for step in range(25):
        samples, rewards = pulls(learner, 48, drawn)
        figures = learner.learn(rows_of(samples, rewards), progress=step / 25, seed=step)
    assert sum(pulls(learner, 200, drawn)[1]) / 200 > 0.9
    assert figures["sampler_gap_highest"] < 1e-4
    assert figures["value"] == pytest.approx(figures["return"], abs=0.15)


def pulls(learner: Learner, number: int, drawn: Any) -> tuple[list[list[Sample]], list[float]]:
    """Rollouts of the bandit: half of the reward for each of the words."""
    ids: Any = torch.full((number, 1), 1)
    logprobs: list[Any] = []
    for between in (2, None):
        with torch.no_grad():
            logits: Any = learner.policy(ids, use_cache=False).logits
        logs = logits[:, -1].log_softmax(-1)
        word = torch.multinomial(logs.exp(), 1, generator=drawn)
        logprobs.append(logs.gather(1, word)[:, 0])
        said = [ids, word] if between is None else [ids, word, torch.full((number, 1), between)]
        ids = torch.cat(said, dim=1)
    rows = [
        [Sample("main", tuple(row), (E, P, E, P), (0.0, first, 0.0, second))]
        for row, first, second in zip(ids.tolist(), logprobs[0].tolist(), logprobs[1].tolist(), strict=True)
    ]
    return rows, [0.5 * (row[0].ids[1] == 5) + 0.5 * (row[0].ids[3] == 7) for row in rows]
