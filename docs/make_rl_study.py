"""Train the weak start with GRPO, GDPO and DAPO, three seeds each, and measure what each run gained on a dev world.

Writes runs into a folder (a run that ended is not made again), and rl.md, rl.json and one plot of the curves beside the
other benchmarks. The dev world's names are in no training world; runs are compared question by question.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from agent.cli.console import messages
from agent.settings import load_settings
from train.checkpoints.export import export_checkpoint
from train.evaluation.session import Evaluation
from train.evaluation.statistics import Comparison, compare
from train.evaluation.store import read_results

ALGORITHMS: Final = ("grpo", "gdpo", "dapo")
COLOURS: Final = {"grpo": "#2b7fb8", "gdpo": "#b8572b", "dapo": "#3f9142"}
RECIPES: Final = Path("train/recipes")
WORLD: Final = "dev-v2"
PROTOCOL: Final = "multisearch"
CHANGES: Final = {"prompts": 6, "group": 6, "lr": "3e-4", "evaluate_every_steps": 4, "dev_questions": 64}
"""In all three recipes alike: small batches, and a rate at which thirty steps are enough."""


def main() -> None:
    """Run what is missing of the study, and report it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="folder of the runs")
    parser.add_argument("--start", type=Path, required=True, help="the weak checkpoint, in the hub's form")
    parser.add_argument("--out", type=Path, default=Path("docs/bench"), help="folder of rl.md, rl.json and rl.svg")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    args = parser.parse_args()
    answers = {"start": answered(args.start, args.runs / "start")}
    for algorithm in args.algorithms:
        for seed in args.seeds:
            run = args.runs / f"{algorithm}-{seed}"
            train(algorithm, run, start=args.start, seed=seed, steps=args.steps)
            answers[run.name] = answered(run / "hub", run)
    if set(args.algorithms) == set(ALGORITHMS):
        report(answers, args.runs, seeds=args.seeds, steps=args.steps, out=args.out)


def train(algorithm: str, run: Path, *, start: Path, seed: int, steps: int) -> None:
    """One run, unless it has ended before; goes on where it was stopped."""
    if (run / "hub").is_dir():
        return
    run.mkdir(parents=True, exist_ok=True)
    recipe = run / "recipe.toml"
    text = (RECIPES / f"tiny_{algorithm}.toml").read_text(encoding="utf-8")
    for name, value in {**CHANGES, "seed": seed, "steps": steps}.items():
        text, found = re.subn(rf"^{name} = [^#\n]*", f"{name} = {value} ", text, count=1, flags=re.MULTILINE)
        if not found:
            sys.exit(f"the recipe of {algorithm} has no {name}; write it there")
    recipe.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "agent.cli", "train", "rl", "--recipe", str(recipe), "--start", str(start)]
    again = ["--resume"] if (run / "states").is_dir() else []
    subprocess.run([*command, "--out", str(run), "--threads", "1", *again], check=True)


def answered(hub: Path, folder: Path) -> dict[str, float | None]:
    """For each question of the dev world, whether the checkpoint answers it (exact match), greedily and in int8."""
    kept = folder / "dev"
    if not (folder / "ct2" / "model.bin").is_file():
        export_checkpoint(hub, folder / "ct2")
    settings = load_settings(world=WORLD, protocol=PROTOCOL, policy="embedded", checkpoint=folder / "ct2")
    Evaluation(settings, out=kept).run()
    return {result.id: result.metrics["em"] for result in read_results(kept)}


def report(
    answers: Mapping[str, Mapping[str, float | None]], runs: Path, *, seeds: Sequence[int], steps: int, out: Path
) -> None:
    """Write the table, the figures and the plot."""
    rows: list[dict[str, Any]] = []
    for algorithm in ALGORITHMS:
        names = [f"{algorithm}-{seed}" for seed in seeds]
        rows += [row(name, compare(answers["start"], answers[name])) for name in names]
        rows.append(row(f"{algorithm}, all seeds", compare(answers["start"], mean_of([answers[n] for n in names]))))
    curves = {path.name: curve(path) for path in sorted(runs.glob("*-*")) if (path / "monitors.jsonl").is_file()}
    figures = {"world": WORLD, "protocol": PROTOCOL, "steps": steps, "runs": rows, "curves": curves}
    out.mkdir(parents=True, exist_ok=True)
    (out / "rl.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    (out / "rl.svg").write_text(plot(curves), encoding="utf-8")
    (out / "rl.md").write_text(page(rows, steps=steps), encoding="utf-8")
    messages().print((out / "rl.md").read_text(encoding="utf-8"))


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


def page(rows: Sequence[Mapping[str, Any]], *, steps: int) -> str:
    """The study as Markdown."""
    lines = [
        "# Reinforcement learning from a weak start",
        "",
        f"`python docs/make_rl_study.py RUNS --start WEAK/hub`: {steps} steps of {CHANGES['prompts']} questions with "
        f"{CHANGES['group']} rollouts each, rate {CHANGES['lr']}, under `{PROTOCOL}`; the start is made by "
        f"`train/recipes/tiny_weak.toml`. EM on the {rows[0]['n']} questions of `{WORLD}`, greedy, int8; gains "
        "question by question, with 95 % bootstrap intervals. In the rows of all seeds a question counts by the "
        "share of seeds that answer it.",
        "",
        "| run | EM before | EM after | gain | 95 % |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        figures = f"{row['before']:.3f} | {row['after']:.3f} | {row['gain']:+.3f}"
        lines.append(f"| {row['run']} | {figures} | {row['low']:+.3f} to {row['high']:+.3f} |")
    return "\n".join([*lines, "", "![EM on dev questions by step, of each run](rl.svg)", ""])


def plot(curves: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """EM on the runs' own dev questions against the step; readable on light and dark pages."""
    left, top, width, height = 48, 24, 420, 200
    last = max((step for points in curves.values() for step, _ in points), default=1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 72} {top + height + 48}" role="img" '
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
        colour = COLOURS[name.partition("-")[0]]
        lines.append(f'<path d="M{path}" stroke="{colour}" stroke-width="1.5" fill="none"><title>{name}</title></path>')
    for place, (name, colour) in enumerate(COLOURS.items()):
        lines.append(f'<text x="{left + width + 12}" y="{top + 16 + 18 * place}" fill="{colour}">{name}</text>')
    lines.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">step</text>')
    return "\n".join([*lines, f'<text x="{left}" y="{top - 8}">EM</text>', "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
