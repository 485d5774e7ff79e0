"""The page of a study: the rule, the design, and of each claim what came out. It is written again from what is kept."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agent.errors import SetupError
from lab.reproduce.design import MIXES, WORLDS, Arm, Expected, Paper, Side
from lab.reproduce.findings import KEPT, MEANS, ArmResult, Findings, as_figures
from lab.reproduce.jobs import jobs_of
from lab.reproduce.ledger import Entry
from lab.reproduce.papers import PAPERS, all_arms, directions_of, trainings
from lab.reproduce.plots import forest
from lab.reproduce.study import Study
from lab.reproduce.verdict import Judged, Ruling, Verdict

PAGE: Final = "reproduction.md"
PLOTS: Final = "reproduction"
"""Folder of the plots and of the figures, beside the page."""
_MARKS: Final[dict[Verdict, str]] = {
    "holds": "**holds**",
    "does not hold": "**does not hold**",
    "undecided": "undecided",
    "not run": "not finished",
}
_LABELS: Final = {
    "em": "EM",
    "f1": "F1",
    "searches": "searches",
    "rounds": "rounds",
    "policy_tokens": "policy tokens",
    "snr_query": "useful words, query",
    "snr_information": "useful words, round",
    "snr_merge": "useful words, merge",
    "em_evidence": "EM from our evidence",
    "em_top_5": "EM from plain retrieval, top 5",
    "em_as_many_as_fit": "EM from plain retrieval, as many as fit",
}


def write_report(study: Study, findings: Findings, folder: Path) -> None:
    """Write the page, and plots and figures beside it.

    Raises:
        SetupError: the folder cannot be written.
    """
    try:
        (folder / PLOTS).mkdir(parents=True, exist_ok=True)
        for paper in PAPERS.values():
            own = _own(findings, paper)
            if any(one.judged for one in own):
                drawn = forest(own, f"{paper.title}: differences with their intervals")
                (folder / PLOTS / f"{paper.name}.svg").write_text(drawn, encoding="utf-8")
        (folder / KEPT).write_text(as_figures(study, findings), encoding="utf-8")
        (folder / PAGE).write_text(page(study, findings), encoding="utf-8")
    except OSError as error:
        raise SetupError(f"the page cannot be written to {folder}: {error.strerror or error}") from error


def page(study: Study, findings: Findings) -> str:
    """The whole page as Markdown."""
    papers = [_paper(study, findings, paper) for paper in PAPERS.values()]
    return "\n".join([_opening(findings), _design(study), *papers])


def _own(findings: Findings, paper: Paper) -> list[Ruling]:
    return [one for one in findings.rulings.values() if one.direction.paper == paper.name]


def _opening(findings: Findings) -> str:
    ruled = findings.rulings.values()
    counts = {name: sum(one.verdict == name for one in ruled) for name in _MARKS}
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    machine, took = findings.machine, sum(entry.seconds for entry in findings.jobs.values())
    earlier = len(findings.earlier)
    kept = f" {earlier} of them were judged by an earlier run of the same plan, and are as it left them."
    rows = [
        f"| [{one.direction.name}](#{_anchor(one)}) | {one.direction.claim} | {_verdict_of(one)} |" for one in ruled
    ]
    return "\n".join(
        [
            "# Five papers in miniature",
            "",
            "`cairn reproduce all --out runs/papers --write docs` writes this page. It tests what five papers claim on "
            "policies of four million parameters in little worlds. A verdict here says whether a claim shows at this "
            "size; it says nothing against a paper.",
            "",
            f"{len(ruled)} claims: {said}. {machine.cores} cores, {took / 60:.0f} core minutes so far."
            + (kept if earlier else ""),
            "",
            "| claim | in a sentence | verdict |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _design(study: Study) -> str:
    jobs = jobs_of(study, directions_of("all"))
    minutes = sum(job.seconds for job in jobs) / 60
    rollout, worlds = study.base["rollout"], study.recipe.worlds
    kinds = [
        f"| {kind} | {said} | {', '.join(f'{name} {share:g}' for name, share in MIXES[kind].items())} |"
        for kind, said in WORLDS.items()
    ]
    return "\n".join(
        [
            "## The rule",
            "",
            "It was fixed before any of these figures was there. The design was tried at small sizes before, and "
            "moved then: harder worlds, a lower rate, twice the steps for `reflect`. Afterwards came "
            "`reflect.as-good-as-always`, with the bounds of `reflect.known`, and the sentence on what "
            "`multisearch.signal` cannot say. Each claim is one or more inequalities between two figures, "
            "paired question by question and seed by seed. The interval (95 %) is a bootstrap in two steps: seeds are "
            f"drawn, then questions inside of each. With {_seeds(study)} it says what other questions would give, and "
            "only roughly what other seeds would.",
            "",
            "- **holds**: the interval of the difference excludes 0 in the claim's direction. This comes first; "
            "where it lies within the margin all the same, the table says *by less than the margin*.",
            "- **does not hold**: it excludes 0 in the other direction, or lies within the margin (given with each; "
            ".05 of EM where nothing else is said): whatever difference there is, is smaller than that.",
            "- **undecided**: neither.",
            "- Where a claim says *about as good*, it holds if the interval lies within the margin, and does not if it "
            "lies outside of it. Where it says *no better*, it holds if the interval's upper end is at most the "
            "margin.",
            "- A claim with several inequalities holds if all hold, and does not if one does not.",
            "- A training that stopped itself (a rule of collapse) is judged by its last saved state, or by the start "
            "where there is none; the table of arms says where that was so.",
            "",
            "## The design",
            "",
            f"One shared start for all trainings (`{study.recipe.sft}`): the shipped `tiny-v2`, "
            f"{study.sft.optimizer.tokens / 1e6:g} M tokens of trajectories later, three in four of which choose badly "
            "where a question allows it. It copies as well as before and stops too early, so there is something to "
            "learn in few steps; a smaller policy from nothing would spend its time on copying names. Trainings "
            f"(`{study.recipe.rl}`): {study.steps} steps of {rollout['prompts']} questions with {rollout['group']} "
            "rollouts each where the tables of arms say nothing else (PPO takes as many questions once), on worlds of "
            "the training split. Rewards are those of the papers as printed "
            "([rewards.md](rewards.md)), with exact matches in the place of judges.",
            "",
            f"Each seed is a training and an unseen world of {worlds.questions} questions with names of the dev split; "
            "both policies of a comparison get the same world. Greedy, int8. Claims about inference alone are "
            "tested on `tiny-v2` as it is shipped. Worlds have the difficulty of `test-v2`: a first world with the "
            "generator's own was answered to .975, where all arms look alike.",
            "",
            "| worlds | questions | mix |",
            "|---|---|---|",
            *kinds,
            "",
            f"{len(jobs)} jobs, planned at {minutes:.0f} minutes of one core in all (`--dry-run` shows each arm, and "
            "what is done). `--seeds`, `--steps` and `--only` make it smaller; with `--keep docs`, what this page has "
            "judged by the same plan is not tested again, whatever folder or machine it was tested in.",
            "",
        ]
    )


def _paper(study: Study, findings: Findings, paper: Paper) -> str:
    own = _own(findings, paper)
    lines = [f"## {paper.title}", ""]
    if any(one.judged for one in own):
        title = f"Differences of shares, {paper.title}"
        lines += [f"![{title}]({PLOTS}/{paper.name}.svg)", ""]
    for one in own:
        lines += _direction(one)
    return "\n".join([*lines, *_arms(study, findings, paper)])


def _direction(ruling: Ruling) -> list[str]:
    direction = ruling.direction
    lines = [
        f"### {direction.name}",
        "",
        f"{direction.claim} In the paper: {direction.figures} ({direction.place}). Here: {_verdict_of(ruling)}.",
        "",
        "| first | second | figure | first | second | difference (95 %) | margin | questions, seeds | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    judged = {id(one.expected): one for one in ruling.judged}
    lines += [_row(expected, judged.get(id(expected)), ruling.seeds) for expected in direction.expected]
    return [*lines, "", f"What it cannot say: {direction.cannot}", ""]


def _row(expected: Expected, one: Judged | None, seeds: int) -> str:
    first, second = expected.first, expected.second
    against = f"`{second.arm}`" if isinstance(second, Side) else "(a bound)"
    label = _label(first)
    if isinstance(second, Side) and second.metric != first.metric:
        label = f"{label} − {_label(second)}"
    sign = {"more": ">", "same": "≈", "no_more": "≤"}[expected.kind]
    start = f"| `{first.arm}` | {sign} {against} | {label}"
    if one is None:
        return f"{start} | – | – | – | {expected.margin:g} | – | not finished |"
    found = one.difference
    difference = f"{found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
    return (
        f"{start} | {one.first:.3f} | {one.second:.3f} | {difference} | {expected.margin:g} | {one.n:,}, {one.seeds} | "
        f"{_MARKS[one.verdict] if one.seeds >= seeds else f'{seeds - one.seeds} seeds missing'}"
        f"{', by less than the margin' if one.is_small else ''} |"
    )


def _label(side: Side) -> str:
    name = _LABELS.get(side.metric, side.metric)
    only = f", {', '.join(side.types)} only" if side.types else ""
    return f"{name}{only}" + (f", but {', '.join(side.but)}" if side.but else "")


def _arms(study: Study, findings: Findings, paper: Paper) -> list[str]:
    """Every arm of the paper with its means over the seeds."""
    names = [*(one.name for one in paper.trainings), *(one.name for one in paper.arms)]
    listed, none = all_arms(), ArmResult(seeds=0, means={})
    lines = [
        "### Arms",
        "",
        "| arm | what it is | protocol, worlds | steps, rate | seeds | EM | F1 | searches | rounds | policy tokens "
        "| reward |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        arm, result = listed[name], findings.arms.get(name, none)
        means = [f"{result.means[metric]:.3f}" if metric in result.means else "–" for metric in MEANS]
        course = _course(findings.jobs, arm.policy, study.seeds) if arm.trained and arm.policy == name else "–"
        kind = f"{arm.protocol}, {arm.world}"
        row = " | ".join([f"`{name}`", arm.says, kind, _trained(study, arm), f"{result.seeds or '–'}", *means, course])
        lines.append(f"| {row} |")
    return [*lines, ""]


def _trained(study: Study, arm: Arm) -> str:
    """Steps and rate of an arm's training."""
    if not arm.trained:
        return "–"
    recipe = study.rl_recipe(trainings()[arm.policy], study.seeds[0])
    return f"{recipe.steps}, {recipe.optimizer.lr:g}"


def _course(jobs: Mapping[str, Entry], name: str, seeds: Sequence[int]) -> str:
    kept = [entry.figures for seed in seeds if (entry := jobs.get(f"trained/{name}/{seed}")) is not None]
    moved = [f"{one['reward_first']:.2f} → {one['reward_last']:.2f}" for one in kept if "reward_first" in one]
    stopped = sum("stopped" in one for one in kept)
    return "; ".join([*moved, *([f"{stopped} stopped themselves"] if stopped else [])]) or "–"


def _verdict_of(one: Ruling) -> str:
    """A verdict; with how much, where that is little."""
    small = any(judged.is_small for judged in one.judged) and one.verdict == "holds"
    return _MARKS[one.verdict] + (", by less than the margin" if small else "")


def _seeds(study: Study) -> str:
    count = len(study.seeds)
    return "one seed" if count == 1 else f"{count} seeds"


def _anchor(one: Ruling) -> str:
    return one.direction.name.replace(".", "")
