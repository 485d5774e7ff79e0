"""Train the weak start in several ways, some seeds of each, and measure what each run gained on a dev world.

Two studies: `rl` compares GRPO, GDPO and DAPO; `credit` compares the settings of `[learning.credit]` with plain GRPO.
Writes runs into a folder (a run that ended is not made again), and a page, its figures and one plot of the curves
beside the other benchmarks. The dev world's names are in no training world; runs are compared question by question.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from agent.cli.console import messages
from agent.settings import load_settings
from lab.reproduce.power import Spread, t_interval, visible
from train.checkpoints.export import export_checkpoint
from train.evaluation.session import Evaluation
from train.evaluation.statistics import Comparison, compare
from train.evaluation.store import read_results
from train.rl.states import newest_state


@dataclass(frozen=True)
class Arm:
    """One way to train: a recipe, and the credit that is added to it."""

    colour: str
    recipe: str = "tiny_grpo.toml"
    credit: str = ""
    """A line under `[learning.credit]`."""
    minibatches: int = 1
    """Updates from one batch of rollouts."""


STUDIES: Final = {
    "rl": {
        "grpo": Arm("#2b7fb8"),
        "gdpo": Arm("#b8572b", "tiny_gdpo.toml"),
        "dapo": Arm("#3f9142", "tiny_dapo.toml"),
    },
    # Two updates a batch: with one, the policy is the one that sampled, and no token became less likely since.
    "credit": {
        "grpo": Arm("#2b7fb8", minibatches=2),
        "first_hit": Arm("#b8572b", credit="first_hit = 0.5", minibatches=2),
        "information_gain": Arm("#3f9142", credit="information_gain = {}", minibatches=2),
        "tree": Arm("#8a5fb0", credit="tree = { trees = 2, expansions = 2 }", minibatches=2),
        "keep_likelihood": Arm("#a08a1f", credit="keep_likelihood = 0.1", minibatches=2),
    },
}
RECIPES: Final = Path("train/recipes")
WORLD: Final = "dev-v2"
PROTOCOL: Final = "multisearch"
CHANGES: Final = {"prompts": 6, "group": 6, "lr": "3e-4", "evaluate_every_steps": 4, "dev_questions": 64}
"""In all recipes alike: small batches, and a rate at which thirty steps are enough."""
EXPECTED: Final = Spread(seeds=0.025, questions=0.0)
"""Deviation of the difference of two arms' EM between seeds, from three runs of GRPO of 24 steps on dev-v1 (EM .900,
.865 and .880)."""


def main() -> None:
    """Run what is missing of the study, and report it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="folder of the runs")
    parser.add_argument("--start", type=Path, required=True, help="the weak checkpoint, in the hub's form")
    parser.add_argument("--study", choices=list(STUDIES), default="rl", help="GRPO, GDPO and DAPO, or credit for turns")
    parser.add_argument("--out", type=Path, default=Path("docs/bench"), help="folder of the page, figures and plot")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--at-once", type=int, default=2, help="trainings beside each other, one thread each")
    args = parser.parse_args()
    if args.study == "credit" and len(args.seeds) < 2:
        parser.error("the study of credit compares the arms seed by seed: name two --seeds or more")
    arms = STUDIES[args.study]
    runs = [(arm, seed, args.runs / f"{name}-{seed}") for seed in args.seeds for name, arm in arms.items()]
    with ThreadPoolExecutor(args.at_once) as threads:
        list(threads.map(lambda one: train(*one, start=args.start, steps=args.steps), runs))
    answers = {folder.name: answered(folder / "hub", folder) for _, _, folder in runs}
    answers["start"] = answered(args.start, args.runs / "start")
    curves = {folder.name: curve(folder) for _, _, folder in runs}
    if args.study == "rl":
        rows = rows_of_gains(arms, answers, seeds=args.seeds)
        page = page_of_gains(rows, steps=args.steps, seeds=len(args.seeds))
    else:
        rows = rows_of_arms(arms, answers, curves, seeds=args.seeds)
        page = page_of_arms(rows, arms, steps=args.steps, seeds=len(args.seeds))
    figures = {"world": WORLD, "protocol": PROTOCOL, "steps": args.steps, "runs": rows, "curves": curves}
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / f"{args.study}.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    (args.out / f"{args.study}.svg").write_text(plot(curves, arms), encoding="utf-8")
    (args.out / f"{args.study}.md").write_text(page, encoding="utf-8")
    messages().print(page)


def train(arm: Arm, seed: int, run: Path, *, start: Path, steps: int) -> None:
    """One run, unless it has ended before; goes on where it was stopped."""
    if (run / "hub").is_dir():
        return
    run.mkdir(parents=True, exist_ok=True)
    recipe = run / "recipe.toml"
    recipe.write_text(recipe_text(arm, seed=seed, steps=steps), encoding="utf-8")
    command = [sys.executable, "-m", "agent.cli", "train", "rl", "--recipe", str(recipe), "--start", str(start)]
    again = ["--resume"] if newest_state(run) else []
    subprocess.run([*command, "--out", str(run), "--threads", "1", *again], check=True)


def recipe_text(arm: Arm, *, seed: int, steps: int) -> str:
    """The arm's recipe, with the values of this study."""
    text = (RECIPES / arm.recipe).read_text(encoding="utf-8")
    for name, value in {**CHANGES, "seed": seed, "steps": steps}.items():
        text, found = re.subn(rf"^{name} = [^#\n]*", f"{name} = {value} ", text, count=1, flags=re.MULTILINE)
        if not found:
            sys.exit(f"{arm.recipe} has no {name}; write it there")
    if arm.minibatches > 1:
        text = text.replace("[optimizer]\n", f"[optimizer]\nminibatches = {arm.minibatches}\n")
    return text + (f"\n[learning.credit]\n{arm.credit}\n" if arm.credit else "")


def answered(hub: Path, folder: Path) -> dict[str, float | None]:
    """For each question of the dev world, whether the checkpoint answers it (exact match), greedily and in int8."""
    kept = folder / "dev"
    if not (folder / "ct2" / "model.bin").is_file():
        export_checkpoint(hub, folder / "ct2")
    settings = load_settings(world=WORLD, protocol=PROTOCOL, policy="embedded", checkpoint=folder / "ct2")
    Evaluation(settings, out=kept).run()
    return {result.id: result.metrics["em"] for result in read_results(kept)}


def rows_of_gains(
    arms: Mapping[str, Arm], answers: Mapping[str, Mapping[str, float | None]], *, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """What each run, and each arm over all seeds, gained over the start."""
    rows: list[dict[str, Any]] = []
    for arm in arms:
        names = [f"{arm}-{seed}" for seed in seeds]
        rows += [row(name, compare(answers["start"], answers[name])) for name in names]
        rows.append(row(f"{arm}, all seeds", compare(answers["start"], mean_of([answers[n] for n in names]))))
    return rows


def rows_of_arms(
    arms: Mapping[str, Arm],
    answers: Mapping[str, Mapping[str, float | None]],
    curves: Mapping[str, Sequence[tuple[int, float]]],
    *,
    seeds: Sequence[int],
) -> list[dict[str, Any]]:
    """Each arm beside the first, seed by seed: EM at the end, and the mean of its curve without the start."""
    ends = {arm: [mean_em(answers[f"{arm}-{seed}"]) for seed in seeds] for arm in arms}
    means = {arm: [fmean(em for step, em in curves[f"{arm}-{seed}"] if step) for seed in seeds] for arm in arms}
    first = next(iter(arms))
    return [
        {
            "run": arm,
            "n": len(answers["start"]),
            "start": mean_em(answers["start"]),
            "end": fmean(ends[arm]),
            "curve": fmean(means[arm]),
            "end_difference": difference(ends[arm], ends[first]),
            "curve_difference": difference(means[arm], means[first]),
        }
        for arm in arms
    ]


def mean_em(answers: Mapping[str, float | None]) -> float:
    """The mean EM over all questions."""
    return fmean(em or 0.0 for em in answers.values())


def difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """The mean over the seeds, and the ends of Student's interval."""
    found = t_interval([one - other for one, other in zip(ours, theirs, strict=True)])
    return found.value, found.low, found.high


def mean_of(answers: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The share of the seeds that answer each question."""
    return {key: fmean(one[key] or 0.0 for one in answers) for key in answers[0]}


def row(name: str, found: Comparison | None) -> dict[str, Any]:
    """One line of the table."""
    if found is None:
        sys.exit(f"{name} answered no question that the start answered, too")
    gain = found.difference
    return {
        "run": name,
        "n": found.n,
        "before": found.first,
        "after": found.second,
        "gain": gain.value,
        "low": gain.low,
        "high": gain.high,
    }


def curve(run: Path) -> list[tuple[int, float]]:
    """The dev questions' EM during a run, by step."""
    lines = map(json.loads, (run / "monitors.jsonl").read_text(encoding="utf-8").splitlines())
    return [(line["step"], line["trainer/dev_em"]) for line in lines if "trainer/dev_em" in line]


def page_of_gains(rows: Sequence[Mapping[str, Any]], *, steps: int, seeds: int) -> str:
    """The study of algorithms as Markdown."""
    lines = [
        "# Reinforcement learning from a weak start",
        "",
        f"`python docs/make_rl_study.py RUNS --start WEAK/hub`: {steps} steps of {CHANGES['prompts']} questions with "
        f"{CHANGES['group']} rollouts each, rate {CHANGES['lr']}, under `{PROTOCOL}`; the start is made by "
        f"`train/recipes/tiny_weak.toml`. EM on the {rows[0]['n']} questions of `{WORLD}`, greedy, int8; gains "
        f"question by question, with 95 % bootstrap intervals. In the rows of all {seeds} seeds a question counts by "
        "the share of seeds that answer it.",
        "",
        "| run | EM before | EM after | gain | 95 % |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        figures = f"{row['before']:.3f} | {row['after']:.3f} | {row['gain']:+.3f}"
        lines.append(f"| {row['run']} | {figures} | {row['low']:+.3f} to {row['high']:+.3f} |")
    return "\n".join([*lines, "", "![EM on dev questions by step, of each run](rl.svg)", ""])


def page_of_arms(rows: Sequence[Mapping[str, Any]], arms: Mapping[str, Arm], *, steps: int, seeds: int) -> str:
    """The study of credit as Markdown."""
    detected = f"{visible(EXPECTED, seeds=seeds, questions=rows[0]['n']):.3f}"
    lines = [
        "# Credit for turns",
        "",
        f"`python docs/make_rl_study.py RUNS --start WEAK/hub --study credit`: {steps} steps of {CHANGES['prompts']} "
        f"questions with {CHANGES['group']} rollouts each in two updates, {seeds} seeds an arm, rate {CHANGES['lr']}, "
        f"under `{PROTOCOL}`; the start is made by `train/recipes/tiny_weak.toml` (EM {rows[0]['start']:.3f}). EM at "
        f"the end is that of the {rows[0]['n']} questions of `{WORLD}`, greedy, int8; the mean of the curve is that of "
        f"{CHANGES['dev_questions']} questions of other worlds, every {CHANGES['evaluate_every_steps']} steps. "
        "Differences from plain GRPO seed by seed, with Student's 95 % interval.",
        "",
        f"Stated before: EM at the end decides. If the differences of two arms deviate by {EXPECTED.seeds:g} between "
        f"seeds, {seeds} seeds detect a difference of {detected} in four of five studies. Four arms are compared, and "
        "no interval is widened for that: by chance, one of twenty excludes 0.",
        "",
        "| arm | setting | EM at the end | difference | mean of the curve | difference |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        setting = f"`{arms[row['run']].credit}`" if arms[row["run"]].credit else "–"
        end, mean = (
            "–" if row is rows[0] else "{:+.3f} ({:+.3f} to {:+.3f})".format(*row[key])
            for key in ("end_difference", "curve_difference")
        )
        lines.append(f"| {row['run']} | {setting} | {row['end']:.3f} | {end} | {row['curve']:.3f} | {mean} |")
    return "\n".join([*lines, "", "![EM on dev questions by step, of each run](credit.svg)", ""])


def plot(curves: Mapping[str, Sequence[tuple[int, float]]], arms: Mapping[str, Arm]) -> str:
    """EM on the runs' own dev questions against the step; readable on light and dark pages."""
    left, top, width, height = 48, 24, 420, 200
    last = max((step for points in curves.values() for step, _ in points), default=1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 132} {top + height + 48}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#777" stroke="none">',
        "<title>EM on dev questions by step</title>",
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + (1 - share) * height
        lines.append(f'<path d="M{left} {y:.1f}h{width}" stroke="#777" stroke-opacity=".25"/>')
        lines.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{share:g}</text>')
    reported = sorted({step for points in curves.values() for step, _ in points})
    for step in reported[:: 1 + len(reported) // 9]:
        x = left + step / last * width
        lines.append(f'<text x="{x:.1f}" y="{top + height + 18}" text-anchor="middle">{step}</text>')
    for name, points in curves.items():
        path = "L".join(f"{left + step / last * width:.1f} {top + (1 - em) * height:.1f}" for step, em in points)
        colour = arms[name.partition("-")[0]].colour
        lines.append(f'<path d="M{path}" stroke="{colour}" stroke-width="1.5" fill="none"><title>{name}</title></path>')
    for place, (name, arm) in enumerate(arms.items()):
        lines.append(f'<text x="{left + width + 12}" y="{top + 16 + 18 * place}" fill="{arm.colour}">{name}</text>')
    lines.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">step</text>')
    return "\n".join([*lines, f'<text x="{left}" y="{top - 8}">EM</text>', "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
