"""Break runs of reinforcement learning on purpose, each beside one that differs in the setting that fixes it.

Writes runs into a folder (a run that ended, or stopped itself, is not made again) and collapse.json with a plot of each
case beside the other benchmarks; docs/collapse.md shows them.
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
from typing import Any, Final

RECIPE: Final = Path("train/recipes/tiny_grpo.toml")
START: Final = Path("lab/checkpoints/tiny-v2/hub")
COMMON: Final = {"prompts": 6, "group": 6, "evaluate_every_steps": 4, "dev_questions": 32, "save_every_steps": 100}
BROKEN: Final = "#b8572b"
FIXED: Final = "#2b7fb8"
Curve = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Case:
    """A way to break a run: settings that do it, and those that do not."""

    title: str
    breaks: tuple[Mapping[str, Any], Mapping[str, str]]
    """Values in the place of the recipe's, and lines that are put under a table of it."""
    fixes: tuple[Mapping[str, Any], Mapping[str, str]]
    figure: str
    """That shows it early, beside the EM on dev questions."""


LEARNS: Final[tuple[Mapping[str, Any], Mapping[str, str]]] = ({"lr": "3e-4"}, {})
CASES: Final = {
    "rate": Case("a rate that is too high", ({"lr": "3e-3"}, {}), LEARNS, "answer/closed_share"),
    "flat": Case(
        "a reward that all rollouts get",
        ({"lr": "3e-4", "steps": 22}, {"reward": "settings = { format_bonus = 1.0 }\nweights = { answer = 0.0 }"}),
        LEARNS,
        "reward/total_std",
    ),
}


def main() -> None:
    """Make the runs that are missing, and write what they show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="folder of the runs")
    parser.add_argument("--out", type=Path, default=Path("docs/bench"), help="folder of the figures and plots")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--at-once", type=int, default=2, help="runs beside each other, one thread each")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    args = parser.parse_args()
    wanted = {run_of(name, side): (name, side) for name in args.cases for side in ("broken", "fixed")}
    with ThreadPoolExecutor(args.at_once) as threads:
        said = threads.map(lambda run: made(args.runs / run, *wanted[run], steps=args.steps), wanted)
        report(args.cases, dict(zip(wanted, said, strict=True)), args.runs, out=args.out)


def run_of(name: str, side: str) -> str:
    """The folder of a run; what fixes several cases is run once."""
    case = CASES[name]
    if side == "broken":
        return f"{name}-broken"
    return next(f"{one}-fixed" for one, other in CASES.items() if other.fixes == case.fixes)


def made(run: Path, name: str, side: str, *, steps: int) -> str:
    """Make a run, unless it is there; gives the sentence with which it stopped itself, empty where it did not."""
    case, done = CASES[name], run / "ended.txt"
    if done.is_file():
        return done.read_text(encoding="utf-8")
    run.mkdir(parents=True, exist_ok=True)
    changes, extra = case.breaks if side == "broken" else case.fixes
    recipe = run / "recipe.toml"
    recipe.write_text(recipe_of({**COMMON, "steps": steps, **changes}, extra), encoding="utf-8")
    command = [sys.executable, "-m", "agent.cli", "train", "rl", "--recipe", str(recipe), "--start", str(START)]
    ended = subprocess.run(
        [*command, "--out", str(run / "run"), "--threads", "1"], capture_output=True, text=True, check=False
    )
    why = re.search(r"the run stopped itself at step.*", ended.stderr)
    if ended.returncode and not why:
        sys.exit(f"{name}, {side}, failed: {ended.stderr[-600:]}")
    said = why[0] if why else ""
    done.write_text(said, encoding="utf-8")
    return said


def recipe_of(changes: Mapping[str, Any], extra: Mapping[str, str]) -> str:
    """The text of a recipe: the common one with other values, and lines that are put under its tables."""
    text = RECIPE.read_text(encoding="utf-8")
    for name, value in changes.items():
        text, found = re.subn(rf"^{name} = [^#\n]*", f"{name} = {value} ", text, count=1, flags=re.MULTILINE)
        if not found:
            sys.exit(f"{RECIPE} has no {name}; write it there")
    for table, lines in extra.items():
        text, found = re.subn(rf"^(\[+{table}\]+\n)", rf"\g<1>{lines}\n", text, count=1, flags=re.MULTILINE)
        if not found:
            sys.exit(f"{RECIPE} has no table {table}; write it there")
    return text


def report(cases: Sequence[str], said: Mapping[str, str], runs: Path, *, out: Path) -> None:
    """Write the figures of all cases, and a plot of each."""
    figures: dict[str, Any] = {}
    for name in cases:
        case, sides = CASES[name], {}
        for side in ("broken", "fixed"):
            run, names = run_of(name, side), ("trainer/dev_em", case.figure)
            curves = {figure: curve(runs / run / "run", figure) for figure in names}
            sides[side] = {"stopped": said[run], **curves}
        figures[name] = {"title": case.title, "figure": case.figure, **sides}
        (out / f"collapse-{name}.svg").write_text(plot(case, sides), encoding="utf-8")
    out.mkdir(parents=True, exist_ok=True)
    (out / "collapse.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def curve(run: Path, figure: str) -> list[tuple[int, float]]:
    """A figure of a run by step."""
    lines = map(json.loads, (run / "monitors.jsonl").read_text(encoding="utf-8").splitlines())
    return [(line["step"], line[figure]) for line in lines if figure in line]


def plot(case: Case, sides: Mapping[str, Mapping[str, Any]]) -> str:
    """EM on dev questions and the telling figure by step, of both runs; readable on light and dark pages."""
    left, top, width, height, gap = 44, 30, 250, 130, 70
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + 2 * width + gap + 20} {top + height + 54}" '
        'role="img" font-family="sans-serif" font-size="12" fill="#777" stroke="none">',
        f"<title>{case.title}</title>",
    ]
    last = max((step for one in sides.values() for step, _ in one[case.figure]), default=1)
    for place, figure in enumerate(("trainer/dev_em", case.figure)):
        x0 = left + place * (width + gap)
        values = [value for one in sides.values() for _, value in one[figure]]
        most = max([1.0] if figure.endswith(("em", "share")) else [*values, 1e-3]) * 1.0
        drawn.append(f'<text x="{x0}" y="{top - 12}">{"EM on dev" if place == 0 else figure}</text>')
        for share in (0, 0.5, 1):
            y = top + (1 - share) * height
            drawn.append(f'<path d="M{x0} {y:.1f}h{width}" stroke="#777" stroke-opacity=".25"/>')
            drawn.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{share * most:.2g}</text>')
        for colour, side in ((FIXED, "fixed"), (BROKEN, "broken")):
            points = [
                f"{x0 + step / last * width:.1f} {top + (1 - min(value, most) / most) * height:.1f}"
                for step, value in sides[side][figure]
            ]
            drawn.append(f'<path d="M{"L".join(points)}" stroke="{colour}" stroke-width="1.5" fill="none"/>')
        for step in (0, last // 2, last):
            x = x0 + step / last * width
            drawn.append(f'<text x="{x:.1f}" y="{top + height + 18}" text-anchor="middle">{step}</text>')
    for place, (colour, side) in enumerate(((BROKEN, "broken"), (FIXED, "fixed"))):
        drawn.append(f'<text x="{left + 80 * place}" y="{top + height + 42}" fill="{colour}">{side}</text>')
    return "\n".join([*drawn, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
