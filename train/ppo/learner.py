"""The learner: a policy and its critic, updated from the rows of one step. It runs no rollout and writes no file.

Departures from the usual loop: old log-probabilities are the trainer's own, read before the first update, so that the
ratio begins at exactly 1 (the gap to the sampler's is a figure); the reference's penalty is in the reward alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import nn

from train.common import advantages, losses
from train.common.precision import computes_bf16
from train.ppo.recipe import PpoRecipe
from train.ppo.rows import PpoRows
from train.ppo.scoring import Critic, TokenScores, score
from train.rl.optimizer import rate, warmed

Figures = dict[str, float]


@dataclass(frozen=True)
class _Known:
    """What is fixed for all updates of a step, each [rows, length]."""

    logprobs: torch.Tensor
    values: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def part(self, places: list[int], length: int) -> "_Known":
        return _Known(*(t[places, :length] for t in (self.logprobs, self.values, self.advantages, self.returns)))


class Learner:
    """Two models with their optimizers, and a reference that never changes; without one there is no penalty."""

    def __init__(self, policy: Any, critic: Critic, reference: Any, recipe: PpoRecipe, *, parted: bool = True) -> None:
        self.policy = policy
        self.critic = critic
        self.reference = reference
        self.recipe = recipe
        self.updates = 0
        self._parted = parted
        kept = {"betas": recipe.optimizer.betas, "weight_decay": recipe.optimizer.weight_decay}
        self._policy_optimizer = torch.optim.AdamW(_trained(policy), lr=recipe.optimizer.lr, **kept)
        self._critic_optimizer = torch.optim.AdamW(_trained(critic), lr=recipe.learning.critic_lr, **kept)

    def learn(self, rows: PpoRows, *, progress: float, seed: int) -> Figures:
        """Update both models from the rollouts of one step.

        Args:
            rows: of the rollouts that are not masked. Without any, nothing changes.
            progress: share of all steps that were done before; it decides the weight of the KL penalty.
            seed: decides which rows an update has.

        Returns:
            Figures by name, means over policy tokens or updates; nothing if there was no row.
        """
        if not len(rows):
            return {}
        beta = self.recipe.learning.kl_weight(progress)
        known, figures = self._know(rows, beta)
        drawn = torch.Generator().manual_seed(seed)
        self._train(True)  # only then activations are made again where the recipe says so
        if self.updates == 0 and self.recipe.learning.critic_epochs_first:
            known = self._foresee(rows, known, drawn)
        by_update: list[Figures] = []
        clip = self.recipe.learning.value_clip or None
        for _ in range(self.recipe.optimizer.epochs):
            for places in self._minibatches(len(rows), drawn):
                self._set_rates()
                of_policy = self._update_policy(rows, known, places)
                by_update.append(of_policy | self._update_critic(rows, known, places, clip=clip))
                self.updates += 1
        self._train(False)
        figures |= {name: sum(one[name] for one in by_update) / len(by_update) for name in by_update[0]}
        figures["loss"] = figures["policy_loss"] + figures["value_loss"]
        return figures | {"lr": self._policy_optimizer.param_groups[0]["lr"], "beta": beta}

    def state(self) -> dict[str, Any]:
        """Everything that decides the next update, but for the policy's own weights."""
        return {
            "critic": self.critic.state_dict(),
            "policy_optimizer": self._policy_optimizer.state_dict(),
            "critic_optimizer": self._critic_optimizer.state_dict(),
            "updates": self.updates,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take what `state` gave."""
        self.critic.load_state_dict(state["critic"])
        self._policy_optimizer.load_state_dict(state["policy_optimizer"])
        self._critic_optimizer.load_state_dict(state["critic_optimizer"])
        self.updates = state["updates"]

    @torch.no_grad()
    def _know(self, rows: PpoRows, beta: float) -> tuple[_Known, Figures]:
        """Old log-probabilities and values, the reference's penalty, advantages and returns."""
        logprobs, spread, reference = self._read(rows)
        values = self._values(rows)
        mask, how = rows.mask, self.recipe.learning
        penalty = None if self.reference is None else losses.kl(logprobs, reference, mask, how.kl_estimator)
        paid = advantages.token_rewards(rows.rewards, mask, kl=penalty, beta=beta)
        estimates, returns = advantages.gae(paid, values, mask, gamma=how.gamma, lam=how.lam)
        apart = (logprobs - rows.sampled)[mask].abs()
        figures = {
            "entropy": losses.averaged(spread, mask).item(),
            "return": returns[mask].mean().item(),
            "value": values[mask].mean().item(),
            "explained_variance": _explained(values[mask], returns[mask]),
            "sampler_gap": apart.mean().item(),
            "sampler_gap_highest": apart.max().item(),
        }
        if self.reference is not None:
            figures["kl"] = losses.averaged(losses.kl(logprobs, reference, mask, "k3"), mask).item()
        estimates = advantages.whitened(estimates, mask) if how.whiten else estimates
        return _Known(logprobs, values, estimates, returns), figures

    def _foresee(self, rows: PpoRows, known: _Known, drawn: torch.Generator) -> _Known:
        """Train the critic alone, before anything else, and take what it says then as its old values.

        It may go as far as it likes: the clip is held against values that knew nothing. The advantages stay those of
        a critic that has not seen these returns.
        """
        for _ in range(self.recipe.learning.critic_epochs_first):
            for places in self._minibatches(len(rows), drawn):
                self._update_critic(rows, known, places, clip=None)
        return replace(known, values=self._values(rows))

    def _read(self, rows: PpoRows) -> list[torch.Tensor]:
        """Log-probabilities, entropy, log-probabilities of the reference (0 without one): [rows, length]."""
        read = [torch.zeros_like(rows.sampled) for _ in range(3)]
        for chosen, part in self._reading(rows):
            with self._precision(rows.ids.device):
                own = self._score(self.policy, part, entropies=True)
                said = [own.logprobs, own.entropy, torch.zeros_like(own.logprobs)]
                if self.reference is not None:
                    said[2] = self._score(self.reference, part).logprobs
            for tensor, values in zip(read, said, strict=True):
                tensor[chosen, : part.ids.shape[1]] = values
        return read

    def _score(self, model: Any, part: PpoRows, *, entropies: bool = False) -> TokenScores:
        temperature = self.recipe.rollout.temperature
        return score(model, part, temperature=temperature, entropies=entropies, parted=self._parted)

    @torch.no_grad()
    def _values(self, rows: PpoRows) -> torch.Tensor:
        """What the critic says now, [rows, length]."""
        values = torch.zeros_like(rows.sampled)
        for chosen, part in self._reading(rows):
            with self._precision(rows.ids.device):
                values[chosen, : part.ids.shape[1]] = self.critic(part)
        return values

    def _reading(self, rows: PpoRows) -> Iterator[tuple[list[int], PpoRows]]:
        """All rows, in micro-batches of the size that an update has."""
        number = self.recipe.optimizer.micro_batches * self._parts(len(rows))
        for chosen in rows.micro_batches(range(len(rows)), number=number):
            yield chosen, rows.part(chosen)

    def _train(self, on: bool) -> None:
        for model in (self.policy, self.critic):
            cast(nn.Module, model).train(on)

    def _parts(self, rows: int) -> int:
        return min(rows, self.recipe.optimizer.minibatches)

    def _minibatches(self, rows: int, drawn: torch.Generator) -> list[list[int]]:
        """The rows in a new order, in as many parts of like size as there are updates of an epoch."""
        order = torch.randperm(rows, generator=drawn)
        return [part.tolist() for part in order.tensor_split(self._parts(rows))]

    def _set_rates(self) -> None:
        """The rates of the next update."""
        recipe, how = self.recipe, self.recipe.optimizer
        share = rate(how, self.updates, updates=recipe.steps * recipe.updates_per_step)
        for optimizer, lr in (
            (self._policy_optimizer, how.lr * share),
            (self._critic_optimizer, recipe.learning.critic_lr * warmed(how, self.updates)),
        ):
            for group in optimizer.param_groups:
                group["lr"] = lr

    def _update_policy(self, rows: PpoRows, known: _Known, places: list[int]) -> Figures:
        how, mask = self.recipe.learning, rows.mask[places]
        whole, tokens = losses.normaliser(mask, how.level), losses.normaliser(mask)
        figures = dict.fromkeys(("policy_loss", "clipped_low", "clipped_high", "moved"), 0.0)
        for chosen in rows.micro_batches(places, number=self.recipe.optimizer.micro_batches):
            part = rows.part(chosen)
            fixed = known.part(chosen, part.ids.shape[1])
            with self._precision(rows.ids.device):
                new = self._score(self.policy, part).logprobs
            clipped = losses.policy_loss(
                new, fixed.logprobs, fixed.advantages, part.mask, low=how.clip_low, high=how.high
            )
            loss = losses.averaged(clipped.losses, part.mask, how.level, over=whole)
            loss.backward()
            moved = losses.kl(fixed.logprobs, new.detach(), part.mask, "k3")
            figures["policy_loss"] += loss.item()
            figures["moved"] += losses.averaged(moved, part.mask, over=tokens).item()
            figures["clipped_low"] += clipped.clipped_low.item() * part.tokens / tokens
            figures["clipped_high"] += clipped.clipped_high.item() * part.tokens / tokens
        return figures | {"grad_norm": self._step(self.policy, self._policy_optimizer)}

    def _update_critic(self, rows: PpoRows, known: _Known, places: list[int], *, clip: float | None) -> Figures:
        whole, total = losses.normaliser(rows.mask[places]), 0.0
        for chosen in rows.micro_batches(places, number=self.recipe.optimizer.micro_batches):
            part = rows.part(chosen)
            fixed = known.part(chosen, part.ids.shape[1])
            with self._precision(rows.ids.device):
                values = self.critic(part)
            by_token = losses.value_loss(values, fixed.values, fixed.returns, part.mask, clip=clip)
            loss = losses.averaged(by_token, part.mask, over=whole)
            loss.backward()
            total += loss.item()
        return {"value_loss": total, "critic_grad_norm": self._step(self.critic, self._critic_optimizer)}

    def _step(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
        """One update; gives the gradient's norm before it was clipped."""
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), self.recipe.optimizer.clip).item()
        optimizer.step()
        optimizer.zero_grad()
        return norm

    @contextmanager
    def _precision(self, device: torch.device) -> Iterator[None]:
        with torch.autocast(device.type, torch.bfloat16, enabled=computes_bf16(self.recipe.optimizer.bf16, device)):
            yield


def _trained(model: nn.Module) -> list[nn.Parameter]:
    return [weight for weight in model.parameters() if weight.requires_grad]


def _explained(values: torch.Tensor, returns: torch.Tensor) -> float:
    """Share of the returns' variance that the critic foresaw; 0 where they have none."""
    variance = returns.var(correction=0)
    return (1 - (returns - values).var(correction=0) / variance).item() if variance > 0 else 0.0
