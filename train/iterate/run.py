"""One expert iteration in one folder: sample, keep, train, evaluate, and again from the policy that came out.

Each round is what `cairn train distill`, `train sft` and `eval` do, in a folder of its own; between two rounds `train
rl` may run. `rounds.json` says what is finished, so a run that is resumed repeats no finished part, and goes on inside
of the one that was cut off.

Sources: expert iteration with one model (STaR, arXiv 2203.14465; ReST-EM, 2312.06585); GRPO that alternates with
self-distillation (Search-E1, 2605.22511).
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from agent.build.sources import with_world
from agent.errors import SetupError
from agent.sources.questions import GoldQuestion
from train.common.interrupt import check_folder
from train.common.recipe import AdapterSettings, read_recipe
from train.common.saving import as_a_whole
from train.distill.keep import key_of
from train.distill.rollouts import make_rollouts, questions_of
from train.distill.run import ROWS, DistillRecipe, distill
from train.evaluation.questions import fingerprint
from train.evaluation.session import Evaluation
from train.iterate.recipe import IterateRecipe, QuestionSettings
from train.iterate.record import RECORDS, PartRecord, best_of, read_records, write_records, write_report
from train.models.adapters import read_adapter
from train.models.pretrained import ADAPTER, base_folder, in_hub_form, start_folder
from train.safety.manifest import RunManifest, hash_of, kept_manifest
from train.sft.memory import give_back
from train.sft.run import SftProgress, SftRun
from train.sft.states import is_begun

_HUB: Final = "hub"
_DEV: Final = "dev"

OnProgress = Callable[[str, int, int], None]
"""Takes what is done now, how much of it is done, and how much there is."""


class IterateRun:
    """One run. `go` it once."""

    def __init__(self, recipe: IterateRecipe, out: Path, *, threads: int = 0) -> None:
        """Take note of a run; nothing is loaded yet.

        Args:
            recipe: of the run.
            out: its folder.
            threads: for the engine of reinforcement learning on a CPU; 0: what torch takes.
        """
        self.recipe = recipe
        self.out = out
        self.records: list[PartRecord] = []
        """Of the parts that are done or begun."""
        self._threads = threads
        self._show: OnProgress = lambda *_: None

    def go(self, show: OnProgress, *, resume: bool = False) -> bool:
        """Run all rounds; False where it was interrupted (its state is saved then).

        Args:
            show: called as each part goes on.
            resume: go on with the run in the folder.

        Raises:
            SetupError: something cannot be used, a round keeps nothing, or there is nothing to resume.
        """
        check_folder(self.out, begun=(self.out / RECORDS).exists(), resume=resume)
        self._check_recipes()
        self.records, self._show = read_records(self.out), show
        recipe = self.recipe
        files = {f"{path.name} ({what})": hash_of(path) for what, path in self._files().items() if path.exists()}
        with kept_manifest(self.out, recipe=recipe, seeds={"recipe": recipe.seed}, data=files) as manifest:
            self._start = self._start_hub()
            manifest.data |= self._checked_questions()
            write_records(self.out, self.records)
            for number in range(recipe.rounds + 1):
                parts = ["start"] if number == 0 else ["sft", *(["rl"] if recipe.rl and number < recipe.rounds else [])]
                for part in parts:
                    if not self._done(PartRecord.model_validate({"round": number, "part": part})):
                        manifest.interrupted()
                        return False
            self._end(manifest)
        return True

    def _check_recipes(self) -> None:
        """Read what the rounds will use, before hours of work.

        Raises:
            SetupError: something of it cannot be used.
        """
        from train.rl.recipe import read_rl_recipe

        self.recipe.rules()
        read_recipe(self.recipe.sft, rows=self.out / ROWS, start=self.recipe.start)
        if self.recipe.rl:
            read_rl_recipe(self.recipe.rl, start=self.recipe.start)

    def _done(self, new: PartRecord) -> bool:
        """Do what is left of a part; False where it was interrupted."""
        place = next((at for at, one in enumerate(self.records) if one.name == new.name), len(self.records))
        if place == len(self.records):
            self.records.append(new)
        record = self.records[place]
        before = self.records[place - 1] if place else None
        if before is not None and record.part == "sft" and record.kept is None:
            self._timed(record, lambda: self._sample(record, before))
        if before is not None and not record.trained:
            train = self._supervised if record.part == "sft" else self._reinforced
            if not self._timed(record, lambda: train(record, before)):
                return False
            give_back()
        if not record.evaluated:
            self._timed(record, lambda: self._evaluate(record))
        return True

    def _timed(self, record: PartRecord, work: Callable[[], bool]) -> bool:
        """Do a piece of a part, and write down that it is done, where it is."""
        began = time.perf_counter()
        done = work()
        record.seconds += time.perf_counter() - began
        write_records(self.out, self.records)
        return done

    def _sample(self, record: PartRecord, before: PartRecord) -> bool:
        """Rollouts of the previous part's policy, and the rows that the check keeps."""
        recipe, sample, folder = self.recipe, self.recipe.sample, self.out / record.name
        settings = recipe.settings(self._hub(before), sample, temperature=sample.temperature)
        seeds = tuple(range(record.round * sample.tries, (record.round + 1) * sample.tries))
        found = make_rollouts(
            settings,
            sample.questions,
            folder,
            dataset=sample.dataset,
            seeds=seeds,
            choice=recipe.choice(sample, number=record.round),
            concurrency=sample.concurrency,
            show=lambda so_far: self._show(f"{record.name}: rollouts of a try", so_far.done, so_far.total),
        )
        keep = recipe.keep
        made_by = DistillRecipe(
            name=f"{recipe.name} {record.name}", **keep.model_dump(), seeds=seeds, agent=recipe.agent | sample.agent
        )
        done = asyncio.run(distill(found, self._questions(sample), recipe.rules(), folder, recipe=made_by))
        record.rollouts, record.kept, record.not_kept = len(done.verdicts), len(done.kept), done.reasons
        return True

    def _supervised(self, record: PartRecord, before: PartRecord) -> bool:
        """`train sft` on the round's rows; False where it was interrupted."""
        folder = self.out / record.name
        recipe = read_recipe(self.recipe.sft, rows=folder / ROWS, start=self.recipe.start)
        if self.recipe.sft_from == "previous":
            recipe = recipe.model_copy(update={"start": self._start_of(before, recipe.adapter)})
        begun = is_begun(folder / record.part)
        if not begun:
            shutil.rmtree(folder / record.part, ignore_errors=True)
        run = SftRun(recipe.model_copy(update={"name": f"{self.recipe.name}-{record.round}"}), folder / record.part)
        if begun:
            run.resume()

        def on_progress(progress: SftProgress) -> None:
            self._show(f"{record.name}: trained tokens", progress.tokens, run.recipe.optimizer.tokens)

        if not run.done and not run.run(on_progress):
            return False
        run.save_hub()
        record.trained, record.tokens = True, run.place.tokens
        return True

    def _reinforced(self, record: PartRecord, before: PartRecord) -> bool:
        """`train rl` from the round's policy; False where it was interrupted."""
        from train.rl.recipe import read_rl_recipe
        from train.rl.run import RlRun
        from train.rl.states import newest_state

        assert self.recipe.rl is not None
        recipe = read_rl_recipe(self.recipe.rl, start=self.recipe.start)
        own = {"name": f"{self.recipe.name}-{record.round}-rl", "seed": recipe.seed + record.round - 1}
        recipe = recipe.model_copy(update={**own, "start": self._start_of(before, recipe.adapter)})
        folder = self.out / record.name / record.part
        run = RlRun(recipe, folder, threads=self._threads)

        def on_step(step: int, _: object) -> None:
            self._show(f"{record.name}: steps", step, recipe.steps)

        record.rollouts = recipe.steps * recipe.rollout.prompts * recipe.rollout.group
        record.trained = run.go(on_step, resume=newest_state(folder) is not None)
        return record.trained

    def _evaluate(self, record: PartRecord) -> bool:
        """EM on the dev questions, greedily."""
        dev = self.recipe.dev
        evaluation = Evaluation(
            self.recipe.settings(self._hub(record), dev, temperature=0.0),
            dev.questions,
            dataset=dev.dataset,
            choice=self.recipe.choice(dev, number=0),
            concurrency=self.recipe.sample.concurrency,
            out=self.out / record.name / _DEV,
            retry_failed=True,
        )
        figures = evaluation.run(lambda so_far: self._show(f"{record.name}: dev questions", so_far.done, so_far.total))
        if failed := figures["infrastructure"]:
            raise SetupError(
                f"{record.name}: {failed} dev questions failed, so its EM would not be that of the others; see to the "
                "source or the engine, then go on with --resume: those that failed are evaluated again"
            )
        record.dev_em, record.dev_questions, record.evaluated = figures["em"], figures["n"], True
        return True

    def _end(self, manifest: RunManifest) -> None:
        """Keep the best part's model, and report."""
        best = best_of(self.records)
        self._copy(self._hub(best), _HUB)
        if (adapter := self._hub(best).parent / ADAPTER).is_dir() and best.part != "start":
            self._copy(adapter, ADAPTER)
        write_report(self.out, self.records, name=self.recipe.name)
        manifest.figures = {
            **{f"dev_em {record.name}": record.dev_em for record in self.records if record.dev_em is not None},
            "seconds": sum(record.seconds for record in self.records),
        }

    def _copy(self, folder: Path, name: str) -> None:
        with as_a_whole(self.out / name) as made:
            shutil.copytree(folder, made)

    def _start_hub(self) -> Path:
        """The start in the hub's form; an adapter is merged into its model, once."""
        folder = start_folder(self.recipe.start)
        if read_adapter(folder) is None:
            return base_folder(self.recipe.start)
        hub = self.out / "round-0" / _HUB
        if not hub.is_dir():
            with in_hub_form(folder) as whole, as_a_whole(hub) as made:
                shutil.copytree(whole, made)
        return hub

    def _hub(self, record: PartRecord) -> Path:
        """The folder of a part's policy in the hub's form."""
        return self._start if record.part == "start" else self.out / record.name / record.part / _HUB

    def _start_of(self, record: PartRecord, adapter: AdapterSettings | None) -> str:
        """What a training begins from: a part's adapter, if it is of the shape that is trained, else its model."""
        if record.part == "start":
            return self.recipe.start
        there = self._hub(record).parent / ADAPTER
        found = read_adapter(there) if adapter is not None else None
        same = found is not None and adapter is not None and (found.rank, found.alpha) == (adapter.rank, adapter.alpha)
        return str(there if same else self._hub(record))

    def _files(self) -> dict[str, Path]:
        """What the recipe names, for the manifest."""
        recipe = self.recipe
        named = {"sft": recipe.sft, "rl": recipe.rl, "sample": recipe.sample.questions, "dev": recipe.dev.questions}
        return {what: path for what, path in named.items() if path is not None}

    def _questions(self, part: QuestionSettings) -> "Sequence[GoldQuestion]":
        settings = self.recipe.settings(self._start, part, temperature=0.0)
        return questions_of(with_world(settings), part.questions, part.dataset)

    def _rl_questions(self) -> Sequence[GoldQuestion]:
        """Those of the list that the recipe of reinforcement learning names; its little worlds have seeds of training.

        Raises:
            SetupError: they cannot be read.
        """
        from train.evaluation.datasets import read_dataset
        from train.rl.recipe import read_rl_recipe

        data = read_rl_recipe(self.recipe.rl, start=self.recipe.start).data if self.recipe.rl else None
        return read_dataset(data.questions, data.dataset).questions if data and data.questions else ()

    def _checked_questions(self) -> dict[str, str]:
        """Refuse dev questions that are also trained on; gives the hashes of both lists.

        Raises:
            SetupError: some are in both.
        """
        sample, dev = self._questions(self.recipe.sample), self._questions(self.recipe.dev)
        for trained, how in ((sample, "sampled"), (self._rl_questions(), "trained on by `rl`")):
            known = {key_of(question.question, question.history) for question in trained}
            if both := [one for one in dev if key_of(one.question, one.history) in known]:
                raise SetupError(
                    f"{len(both)} of {len(dev)} dev questions are {how}, too, {both[0].id!r} for one: dev would choose "
                    "what was learned by heart; name other questions under [dev]"
                )
        return {"questions (sample)": fingerprint(sample), "questions (dev)": fingerprint(dev)}
