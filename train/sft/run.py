"""Supervised training on trajectories: from nothing or from a pretrained model, on CPU cores or GPUs of one machine.

Departures from a textbook loop: from nothing, hidden matrices are trained with Muon, everything else with AdamW, and
tokens of the environment keep a small weight in the loss (they teach copying early); batches hold trajectories of like
length; logits are made only where something is learned.
A run that is stopped and resumed ends in the same weights as one that never stopped.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import torch
from tokenizers import Tokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

from agent.errors import SetupError
from agent.policies.model_folder import ABOUT, dates_shown, trained_with
from agent.protocols import load_protocol, protocol_named
from train.checkpoints.export import describe
from train.common.interrupt import interruptible
from train.common.lines import add_lines, keep_lines
from train.common.precision import computes_bf16
from train.common.process_group import ProcessGroup
from train.common.recipe import ModelShape, SftRecipe
from train.common.saving import as_a_whole, replacing
from train.models.attention import use_blocked
from train.models.pretrained import ADAPTER, Pretrained, check_chat, open_pretrained
from train.safety.manifest import hash_of, kept_manifest
from train.sft.held_out import HeldOutScores, held_out
from train.sft.initial import begin_from
from train.sft.memory import give_back, keep_few_kernels
from train.sft.optimizers import Optimizers
from train.sft.padding import PaddedBatch, collate, idle
from train.sft.sharding import share_out
from train.sft.states import load_state, save_state, state_of
from train.sft.tokenizer import EOS, PAD, token_id, train_tokenizer
from train.sft.trajectories import Example, data_hashes, pool_batches, row_examples, tokenizer_texts

LOG: Final = "log.jsonl"
_GIVE_BACK_EVERY_STEPS: Final = 25

OnProgress = Callable[["SftProgress"], None]


@dataclass
class RunPosition:
    """Where a run is: everything that decides which batch comes next."""

    step: int = 0
    tokens: int = 0
    pool: int = 0
    batch: int = 0
    pool_progress: float = 0.0
    """Share of all tokens when this pool began; it fixes the pool's curriculum stage."""
    seconds: float = 0.0


@dataclass(frozen=True)
class SftProgress:
    """The figures of a step: losses and accuracy are of the policy tokens of its batches."""

    step: int
    tokens: int
    seconds: float
    loss: float
    policy_loss: float
    accuracy: float
    dev_tokens_right: float | None = None
    dev_trajectories_right: float | None = None
    """Share of held-out trajectories in which the policy's every token is the most likely one."""
    dev_answers_right: dict[str, float] | None = None
    """Share of right answers, given the oracle's words before them, by protocol and by type of question."""


class SftRun:
    """One run in one folder: `state.pt` to resume from, `hub/` with the model, `log.jsonl` with what happened.

    Its manifest says what it was made from.
    """

    def __init__(
        self, recipe: SftRecipe, out: Path, process_group: ProcessGroup | None = None, *, sharded: bool = False
    ) -> None:
        """Load the start, or make a model.

        Args:
            recipe: of the run.
            out: its folder.
            process_group: that shares every step; left out, this process alone.
            sharded: whether each process holds a share of the weights, not a copy.
        """
        self.recipe = recipe
        self.out = out
        self.process_group = process_group or ProcessGroup()
        self.device = (
            torch.device("cuda", self.process_group.rank) if torch.cuda.is_available() else torch.device("cpu")
        )
        self.bf16 = computes_bf16(recipe.optimizer.bf16, self.device)
        """Whether it computes in bfloat16."""
        self.place = RunPosition()
        keep_few_kernels()
        out.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(recipe.seed)
        self.begun = self._begin()
        self.tokenizer, self.model = self.begun.tokenizer, self.begun.model
        self.recipe = recipe = self._decided(recipe)
        if self.device.type == "cpu" and self.bf16:
            use_blocked(self.model)
        self._sharded = None
        if sharded:
            self.begun = self._sharded = share_out(self.begun, self.process_group, self.device)
        else:
            self.begun.trained.to(self.device)
        self.takes_part = sharded or self.process_group.is_main_process
        """Whether this process evaluates and saves."""
        self.begun.recompute(recipe.optimizer.gradient_checkpointing)
        self.optimizers = Optimizers(self.begun.trained, recipe.optimizer, self.process_group)
        self._pool: tuple[tuple[int, float], list[list[Example]]] | None = None
        self._last: dict[str, float] = {}
        """The last figures, for the manifest."""

    @property
    def done(self) -> bool:
        return self.place.tokens >= self.recipe.optimizer.tokens

    @property
    def progress(self) -> float:
        return self.place.tokens / self.recipe.optimizer.tokens

    def resume(self) -> None:
        """Go on where the last save left off.

        Raises:
            SetupError: there is nothing to resume, or it belongs to another recipe.
        """
        path = state_of(self.out, self.begun)
        state = load_state(path, self.begun, self.optimizers, recipe=self.recipe.model_dump_json())
        self.place = RunPosition(**state["place"])

    def save(self) -> None:
        """Write the state beside the one that is there, which stays whole until then.

        Raises:
            SetupError: it cannot be written, because the disk is full or otherwise.
        """
        run = {"recipe": self.recipe.model_dump_json(), "place": asdict(self.place)}
        save_state(self.out, self.begun, self.optimizers, run, self.process_group)

    def save_hub(self) -> Path:
        """Write the model in the hub's form, in the precision of the recipe; a card that is there stays.

        Raises:
            SetupError: it cannot be written, because the disk is full or otherwise.
        """
        hub = self.out / "hub"
        weights = self._sharded.whole() if self._sharded else None
        if not self.process_group.is_main_process:
            return hub
        dtype = torch.bfloat16 if self.recipe.optimizer.bf16 else torch.float32
        with as_a_whole(hub) as made:
            made.mkdir()
            self.begun.save(made, dtype=dtype, state=weights)
            if self.recipe.model is not None:
                self.tokenizer.save(str(made / "tokenizer.json"))
                config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EOS, "pad_token": PAD}
                (made / "tokenizer_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
            passages, dates = self._shown()
            describe(made, name=self.recipe.name, protocols=self.recipe.protocols, passages=passages, dates=dates)
            if (hub / "README.md").is_file():
                shutil.copyfile(hub / "README.md", made / "README.md")
        if self.begun.peft is not None:
            with as_a_whole(self.out / ADAPTER) as made:
                made.mkdir()
                self.begun.save_adapter(made)
                shutil.copyfile(hub / ABOUT, made / ABOUT)
        return hub

    def _shown(self) -> tuple[dict[str, int], bool]:
        """Passages of a search and whether they have dates, as the policy that it began from was shown them."""
        passages = self.recipe.data.passages
        if not self.recipe.start:
            return passages, True
        start, base = Path(self.recipe.start).expanduser(), self.begun.folder
        return passages or trained_with(start) or trained_with(base), dates_shown(start) and dates_shown(base)

    def run(self, on_progress: OnProgress) -> bool:
        """Train until the recipe's tokens are seen. False if it was interrupted (the state is saved then)."""
        if not self.process_group.is_main_process:
            return self._run(on_progress)
        recipe = self.recipe
        keep_lines(self.out / LOG, after=self.place.step)
        data = data_hashes(recipe) | {"tokenizer": hash_of(self.begun.folder / "tokenizer.json")}
        start = Path(recipe.start).expanduser() if recipe.start else None
        with kept_manifest(self.out, recipe=recipe, seeds={"data": recipe.seed}, data=data, start=start) as manifest:
            done = self._run(on_progress)
            manifest.figures = {name: float(value) for name, value in asdict(self.place).items()} | self._last
            if not done:
                manifest.interrupted()
        return done

    def _run(self, on_progress: OnProgress) -> bool:
        report = self.recipe.report
        with interruptible() as interrupted:
            for batches in self._steps():
                began = time.perf_counter()
                progress = self._step(batches)
                self.place.seconds += time.perf_counter() - began
                step = self.place.step
                last = self.process_group.any(interrupted()) or self.done
                saves = step % report.save_every_steps == 0 or last
                if saves:
                    self.optimizers.consolidate()
                if self.takes_part and (step % report.evaluate_every_steps == 0 or self.done):
                    progress = self._evaluated(progress)
                if self.process_group.is_main_process:
                    if step % report.every_steps == 0 or progress.dev_tokens_right is not None:
                        self._log(progress)
                    on_progress(progress)
                if saves and self.takes_part:
                    self.save()
                    self.save_hub()
                if last:
                    break
        return self.done

    def _steps(self) -> Iterator[list[list[Example]]]:
        """The batches of every step still to be done."""
        size = self.recipe.optimizer.batches_per_step
        while not self.done:
            batches = self.batches()
            while self.place.batch < len(batches):
                first, self.place.batch = self.place.batch, min(self.place.batch + size, len(batches))
                yield batches[first : self.place.batch]
            self.place.pool, self.place.batch = self.place.pool + 1, 0

    def batches(self) -> list[list[Example]]:
        """The batches of the pool that the run is at."""
        if self.place.batch == 0:
            self.place.pool_progress = self.progress
        at = (self.place.pool, self.place.pool_progress)
        if self._pool is None or self._pool[0] != at:
            self._pool = (at, pool_batches(self.recipe, self.tokenizer, pool=at[0], progress=at[1]))
        return self._pool[1]

    def _step(self, batches: list[list[Example]]) -> SftProgress:
        whole = sum(sum(example.weights[1:]) for examples in batches for example in examples)
        sums = torch.zeros(4)
        self.begun.trained.train()
        for place, examples in self.share(list(enumerate(batches))):
            torch.manual_seed(hash((self.recipe.seed, self.place.step, place)) % 2**63)  # of an adapter's dropout
            sums += self.backward(collate(examples, self.device), whole)
        for weight in self.optimizers.weights:
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        if not self._sharded:
            self.process_group.all_reduce(
                [weight.grad for weight in self.optimizers.weights if weight.grad is not None]
            )
        self.process_group.all_reduce([sums])
        self.optimizers.step(step=self.place.step, tokens=self.place.tokens)
        self.place.step += 1
        if self.place.step % _GIVE_BACK_EVERY_STEPS == 0:
            give_back()
        self.place.tokens += sum(len(example.ids) for examples in batches for example in examples)
        loss, policy_loss, right, count = sums.tolist()
        return SftProgress(
            step=self.place.step,
            tokens=self.place.tokens,
            seconds=self.place.seconds,
            loss=loss,
            policy_loss=policy_loss / count,
            accuracy=right / count,
        )

    def share(self, batches: list[tuple[int, list[Example]]]) -> list[tuple[int, list[Example]]]:
        """This process's numbered batches of some. Where layers are gathered from all processes, all have as many."""
        mine = self.process_group.share(batches)
        if self._sharded and len(mine) * self.process_group.size < len(batches):
            mine.append((len(batches), idle(batches[0][1][0])))
        return mine

    def backward(self, batch: PaddedBatch, whole: float) -> torch.Tensor:
        """Add a batch's gradient; gives its loss, and summed over policy tokens: loss, right ones, number.

        `whole` is the weight of all tokens of the step: what the loss is divided by.
        """
        losses, right, kept = self._losses(batch)
        policy = batch.policy[:, 1:][kept]
        loss = (losses * batch.weights[:, 1:][kept]).sum() / whole
        (loss * self.process_group.size if self._sharded else loss).backward()  # FSDP takes the mean; this is a sum
        sums = [loss.detach(), (losses.detach() * policy).sum(), (right & policy).sum(), policy.sum()]
        return torch.stack(sums).float().cpu()

    def _losses(self, batch: PaddedBatch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Only what counts is compared with the vocabulary: the policy's tokens, and all others that have a weight.

        Returns:
            Of those tokens the cross-entropy in nats, and whether they are the likeliest ones, [tokens]; and which they
            are, [rows, length - 1].
        """
        kept = ((batch.weights != 0) | batch.policy)[:, 1:]
        with self.precision():
            logits = self.begun.logits_at(batch.ids, torch.nn.functional.pad(kept, (0, 1)))
        targets = batch.ids[:, 1:][kept]
        losses = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
        return losses, logits.detach().argmax(-1) == targets, kept

    def precision(self) -> torch.autocast:
        """The type that it computes in."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)

    @torch.no_grad()
    def _evaluated(self, progress: SftProgress) -> SftProgress:
        tally = HeldOutScores()
        self.begun.trained.eval()
        for examples in held_out(self.recipe, self.tokenizer):
            batch = collate(examples, self.device)
            _, right, kept = self._losses(batch)
            hits = torch.zeros_like(kept)
            hits[kept] = right
            tally.add(examples, hits, batch.policy[:, 1:])
        if not tally.rows:  # too few rows for any to be held out
            return progress
        return replace(
            progress,
            dev_tokens_right=tally.right_tokens / tally.tokens,
            dev_trajectories_right=tally.right_rows / tally.rows,
            dev_answers_right=tally.by_kind(),
        )

    def _log(self, progress: SftProgress) -> None:
        numbers = {name: value for name, value in asdict(progress).items() if isinstance(value, float | int)}
        self._last |= {name: float(value) for name, value in numbers.items()}
        add_lines(self.out / LOG, [json.dumps({k: v for k, v in asdict(progress).items() if v is not None})])

    def _begin(self) -> Pretrained:
        """The model as it is before the first step."""
        recipe = self.recipe
        if recipe.model is None:
            begun = open_pretrained(recipe.start, adapter=recipe.adapter, bf16=self.bf16)
            if begun.context < recipe.data.max_tokens:
                raise SetupError(
                    f"rows of {recipe.data.max_tokens:,} tokens do not fit into the context of {recipe.start}: write "
                    f"max_tokens = {begun.context} or less under [data]"
                )
            for name in recipe.protocols:
                protocol = load_protocol(Path(name)) if name.endswith(".toml") else protocol_named(name)
                check_chat(begun, protocol, recipe.start)
            return begun
        tokenizer = self._tokenizer(recipe.model.vocabulary)
        model = Qwen3ForCausalLM(_config(recipe.model, tokenizer))
        if recipe.start:
            begin_from(model, tokenizer, Path(recipe.start))
        return Pretrained(self.out, model, tokenizer, EOS, context=recipe.model.context)

    def _decided(self, recipe: SftRecipe) -> SftRecipe:
        """The recipe with what its start and its rows decide: the end of a turn, and how many tokens are seen."""
        if recipe.model is None:
            recipe = recipe.model_copy(update={"end": recipe.end or self.begun.end})
        if recipe.optimizer.epochs is None:
            return recipe
        once = sum(len(example.ids) for example in row_examples(recipe, self.tokenizer, held_out=False))
        settings = {"tokens": round(recipe.optimizer.epochs * once), "epochs": None}
        return recipe.model_copy(update={"optimizer": recipe.optimizer.model_copy(update=settings)})

    def _tokenizer(self, vocabulary: int) -> Tokenizer:
        path = self.out / "tokenizer.json"
        if not self.process_group.is_main_process:
            self.process_group.wait()
        if self.recipe.keep_tokenizer and not path.exists():
            with replacing(path) as made:
                made.write_bytes((Path(self.recipe.start) / "tokenizer.json").read_bytes())
        if not path.exists():
            with replacing(path) as made:
                train_tokenizer(tokenizer_texts(self.recipe), vocabulary=vocabulary).save(str(made))
        if self.process_group.is_main_process:
            self.process_group.wait()
        return Tokenizer.from_file(str(path))


def _config(shape: ModelShape, tokenizer: Tokenizer) -> Qwen3Config:
    return Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=shape.context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=token_id(tokenizer, EOS),
        pad_token_id=token_id(tokenizer, PAD),
    )
