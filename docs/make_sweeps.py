"""Sweep the little world's knobs with the shipped checkpoint: EM against noise, paraphrase and staleness.

Each point is a world of its own, alike but for one knob, with the types of questions that the checkpoint was trained
on. Writes sweeps.json and one plot for each knob; what is in sweeps.json already is not measured again.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict

from agent.cli.console import messages
from agent.settings import load_settings
from agent.world.card import WorldCard
from agent.world.knobs import Knobs
from agent.world.records import QuestionType
from agent.world.shards import make_world
from agent.world.store import GENERATOR, write_world
from train.evaluation.session import Evaluation

KNOBS: Final = ("noise", "paraphrase", "staleness")
VALUES: Final = (0.0, 0.33, 0.67, 1.0)
BASE: Final = Knobs(
    noise=0,
    paraphrase=0,
    staleness=0,
    contradiction=0,
    namesakes=0.1,
    exclusivity=1,
    hops=3,
    unanswerable=0,
    well_known=0,
)
"""Easy but for the knob that is turned."""
MIX: Final[dict[QuestionType, float]] = {
    "chain1": 0.3,
    "chain2": 0.2,
    "chain3": 0.1,
    "comparison": 0.15,
    "intersection": 0.1,
    "choice": 0.15,
}
"""More short questions than in a test list, so that there is something to lose."""


class Point(TypedDict):
    """EM of one world, with its 95 % interval."""

    knob: str
    value: float
    n: int
    em: float
    low: float
    high: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the JSON file and the plots")
    parser.add_argument("--questions", type=int, default=200, help="of each point")
    parser.add_argument("--protocol", default="cairn")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "sweeps.json"
    points: list[Point] = json.loads(file.read_text(encoding="utf-8"))["points"] if file.exists() else []
    done = {(point["knob"], point["value"]) for point in points}
    for knob in KNOBS:
        for value in VALUES:
            if (knob, value) in done:
                continue
            points.append(measure(knob, value, questions=args.questions, protocol=args.protocol))
            messages().print(f"{knob} {value}: EM {points[-1]['em']:.3f}")
            told = {"protocol": args.protocol, "base": BASE.model_dump(), "mix": MIX, "points": points}
            file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        drawn = [point for point in points if point["knob"] == knob]
        (args.out / f"{knob}.svg").write_text(plot(knob, drawn), encoding="utf-8")


def measure(knob: str, value: float, *, questions: int, protocol: str) -> Point:
    """EM of the embedded policy on a world with this knob turned to this value."""
    knobs = BASE.model_copy(update={knob: value})
    name = f"sweep-{knob}-{value}"
    world = make_world(77, split="test", people=120, questions=questions, name=name, knobs=knobs, mix=MIX)
    card = WorldCard(
        name=name,
        generator=GENERATOR,
        seed=77,
        split="test",
        people=120,
        documents=0,
        questions=0,
        files={},
        knobs=knobs,
    )
    with tempfile.TemporaryDirectory() as folder:
        write_world([world], card, Path(folder) / name)
        settings = load_settings(world=str(Path(folder) / name), protocol=protocol)
        figures = Evaluation(settings).run()
    low, high = figures["em_interval"]
    return Point(knob=knob, value=value, n=figures["n"], em=figures["em"], low=low, high=high)


def plot(knob: str, points: Sequence[Point]) -> str:
    """EM against the knob, with the intervals as bars; readable on light and dark pages."""
    left, top, width, height = 48, 24, 320, 180

    def x(value: float) -> float:
        return left + value * width

    def y(em: float) -> float:
        return top + (1 - em) * height

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 24} {top + height + 48}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="#777" stroke="none">',
        f"<title>EM against {knob}</title>",
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        lines.append(f'<path d="M{left} {y(share):.1f}h{width}" stroke="#777" stroke-opacity=".25"/>')
        lines.append(f'<text x="{left - 8}" y="{y(share) + 4:.1f}" text-anchor="end">{share:g}</text>')
        lines.append(f'<text x="{x(share):.1f}" y="{top + height + 18}" text-anchor="middle">{share:g}</text>')
    for p in points:
        bar = f"M{x(p['value']):.1f} {y(p['low']):.1f}V{y(p['high']):.1f}"
        lines.append(f'<path d="{bar}" stroke="#2b7fb8" stroke-width="2"/>')
        lines.append(f'<circle cx="{x(p["value"]):.1f}" cy="{y(p["em"]):.1f}" r="4" fill="#2b7fb8"/>')
    path = "L".join(f"{x(p['value']):.1f} {y(p['em']):.1f}" for p in points)
    lines.append(f'<path d="M{path}" stroke="#2b7fb8" stroke-width="1.5" fill="none"/>')
    lines.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">{knob}</text>')
    lines.append(f'<text x="{left}" y="{top - 8}">EM</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
