"""The design page: of each claim what is run, by what it is judged, and how many seeds that takes. From the plan alone.

`python docs/make_reproduction.py` writes docs/reproduction_design.md; a test checks that both agree.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from lab.reproduce.design import (
    CURVES,
    DIFFICULTIES,
    ENDS,
    INFERRED,
    LIKELY,
    MIXES,
    ROOM,
    WORLDS,
    Arm,
    CheckKind,
    Direction,
    Expected,
    Paper,
    Side,
    Training,
    Untested,
)
from lab.reproduce.jobs import REAL_SECONDS, jobs_of
from lab.reproduce.papers import PAPERS, all_arms, directions_of, trainings
from lab.reproduce.power import LEVEL, POWER, seeds_needed, visible
from lab.reproduce.real import ARMS, REAL, REAL_UNTESTED, RECIPE, RealRecipe
from lab.reproduce.study import Study, Worlds
from lab.reproduce.tables import checked, inequality
from train.common.recipe_files import read_model
from train.world.questions import counts_of

_NORMAL: Final = 1.96 + 0.84
"""Standard errors of an effect that is seen in four of five studies of many questions."""


def design_page(study: Study) -> str:
    """The whole page as Markdown."""
    parts = [*_opening(study), *_rule(), *_start(study), *_worlds(study)]
    for paper in PAPERS.values():
        parts += [f"## {paper.title}", ""]
        for one in paper.directions:
            parts += _claim(study, one)
        parts += _untested(paper)
    parts += _real()
    return "\n".join(_planned(parts)).rstrip() + "\n"


def _planned(lines: Sequence[str]) -> Iterator[str]:
    """The lines, with a mark above each table: its numbers are those of a plan."""
    before = ""
    for line in lines:
        if line.startswith("|") and not before.startswith("|"):
            yield from ("<!-- not measured -->", "")
        yield line
        before = line


def _opening(study: Study) -> list[str]:
    directions = directions_of("all")
    jobs = jobs_of(study, directions)
    hours = sum(job.seconds for job in jobs) / 3600
    without = sum(len(paper.untested) for paper in PAPERS.values())
    return [
        "# Five papers in miniature: the design",
        "",
        "`python docs/make_reproduction.py` writes this page from the plan that `cairn reproduce` runs; a test checks "
        "that they agree. What came out is in [reproduction.md](reproduction.md).",
        "",
        f"{len(directions)} claims are tested in little worlds, on policies of four million parameters; {without} "
        f"cannot be at this size, and are named below. {len(jobs)} jobs of about {hours:.1f} hours of one core in all, "
        f"so half of that on two. Each trained claim has {len(study.seeds)} seeds: trainings with other draws, and "
        "unseen worlds of their own.",
        "",
    ]


def _rule() -> list[str]:
    return [
        "## The rule",
        "",
        "A claim is one or more inequalities between two figures of two arms, paired question by question and seed by "
        f"seed. The interval ({LEVEL:.0%}) is Student's over the seeds' mean differences. The figure, the margin and "
        "the seeds of each are fixed here, before the first run. Titles and figures were held against the tables and "
        "sections of the papers that they name. Where a paper gives a figure, the margin is half of "
        "its effect.",
        "",
        "- **cannot be seen here**: a check failed. What the arms change must differ between them (or the arms must "
        "have moved, where it says so), the interval excluding 0; what the start does must be uncertain, with a "
        f"probability between {LIKELY[0]:g} and {LIKELY[1]:g} at temperature 1; and the oracle, through the same "
        f"searches, must be at least {ROOM:g} EM above. This comes first: the inequalities then mean nothing. Each "
        f"claim below lists its own checks, and not all have every one: {_without('room')} has none with the oracle, "
        "nor has any claim on real questions, so a difference may be small there because there is little to lose; "
        f"{_without('uncertain')} have none of the start's behaviour.",
        "- **holds**: the interval excludes 0 in the claim's direction. Where it lies within the margin all the same, "
        "the table says *by less than the margin*.",
        "- **does not hold**: it excludes 0 in the other direction, or lies within the margin.",
        "- **undecided**: neither.",
        "- *About as good* holds if the interval lies within the margin. *No better* holds if its upper end is at most "
        "the margin.",
        "- A claim with several inequalities holds if all hold, and does not if one does not. The table says which "
        "verdicts change when any one seed is left out.",
        "- A training that stopped itself (a rule of collapse) is judged by its last saved state.",
        "",
        "**Power.** A difference of a seed varies by the deviation between seeds, σₛ, and by that between questions, "
        "σ_q, over the root of their number. *Needs* is the number of seeds from which the interval excludes 0 in "
        f"{POWER:.0%} of studies, if the difference is twice the margin (for *no better*: is 0, and the margin is to "
        f"be excluded). *Sees* is the smallest difference for which the seeds of the plan suffice. Expected: σₛ "
        f"{ENDS.seeds:g}, σ_q {ENDS.questions:g} between the ends of two trainings from one start; {CURVES.seeds:g} "
        f"and {CURVES.questions:g} between the areas under their curves, which are means of several evaluations; "
        f"{INFERRED.seeds:g} and {INFERRED.questions:g} between two set-ups of one policy. They are guesses from an "
        "earlier study of three seeds; the page of results has what came out.",
        "",
    ]


def _without(kind: CheckKind) -> str:
    """The claims that have no check of a kind."""
    lacking = [one for one in directions_of("all") if all(check.kind != kind for check in one.checks)]
    return ", ".join(f"`{one.name}`" for one in lacking)


def _start(study: Study) -> list[str]:
    data, rollout = study.sft.data, study.base["rollout"]
    rows = [
        f"| `{protocol}` | {', '.join(f'{habit} {share:g}' for habit, share in habits.items())} |"
        for protocol, habits in data.habits.items()
    ]
    return [
        "## The start and the trainings",
        "",
        f"One shared start (`{study.recipe.sft}`): the shipped `tiny-v2` after {study.sft.optimizer.tokens / 1e6:g} M "
        "tokens of trajectories of an expert with habits, each shown with a probability of its own where a question "
        "allows it. So the behaviours under test are neither certain nor absent; `cairn reproduce starts` measures "
        "them before anything is trained: how probable each is, and the EM of rollouts with and without it. The "
        "start overdoes what is frequent in the trajectories, so the probabilities were set by those measurements.",
        "",
        "| protocol | habits |",
        "|---|---|",
        *rows,
        "",
        f"Trainings (`{study.recipe.rl}`): {study.recipe.steps} steps of {rollout['prompts']} questions with "
        f"{rollout['group']} rollouts each, where the table says nothing else (PPO takes as many questions once), on "
        f"worlds of the training split; evaluated at {study.recipe.points} steps that are equally far apart, greedily "
        "and in int8. The context is the model's 3,072 tokens. Each protocol has its paper's budgets of observation "
        "([protocols.md](protocols.md)), of which `reflect`'s 4,096 tokens are more than that context holds.",
        "",
    ]


def _worlds(study: Study) -> list[str]:
    said = study.recipe.worlds
    rows = [
        f"| {kind} | {words} | {said.questions_of(kind)} | "
        f"{', '.join(f'{name} {share:g}' for name, share in MIXES[kind].items())} | "
        f"{', '.join(f'{name} {value:g}' for name, value in DIFFICULTIES.get(kind, {}).items()) or '–'} |"
        for kind, words in WORLDS.items()
    ]
    difficulty = ", ".join(
        f"{name} {value:g}" for name, value in said.difficulty.model_dump(exclude_defaults=True).items()
    )
    return [
        "## Worlds",
        "",
        f"Unseen ones of {said.people} people, with names of the dev split: {difficulty}, where their kind says "
        "nothing else.",
        "",
        "| worlds | questions | number | mix | own difficulty |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *_left_over(said),
    ]


def _left_over(worlds: Worlds) -> list[str]:
    """What rounding leaves over goes to single hops, also in worlds that are to have none."""
    found: list[str] = []
    for kind, mix in MIXES.items():
        total = worlds.questions_of(kind)
        if "chain1" not in mix and (single := counts_of(total, mix)["chain1"]):
            found.append(f"{single} of the {total} of `{kind}`")
    said = "Numbers are rounded down, and what is left over are single hops, which the mix does not have"
    return [f"{said}: {', '.join(found)}.", ""] if found else []


def _real() -> list[str]:
    """The second column: the same claims at inference, on real questions."""
    recipe = read_model(RECIPE, RealRecipe)
    groups = {arm.name: arm.group for arm in ARMS}
    each = [REAL_SECONDS[arm.group] for arm in ARMS for one in recipe.sets if one.group == arm.group]
    hours = sum(each) * recipe.questions / 3600
    lines = [
        "## On real questions",
        "",
        f"`cairn reproduce real --data DIR` asks the shipped policy that reads English (`small-v1`), greedily, "
        f"{recipe.questions} questions of each set (`{RECIPE.name}`), in about {hours:.1f} hours of one core. "
        "Its intervals are bootstraps over questions, "
        "paired: there is one policy. No oracle is among the arms: none of them is expected to "
        "answer more than half of the questions.",
        "",
        "| set | group | questions | graph |",
        "|---|---|---|---|",
        *(f"| {one.name} | {one.group} | `{one.questions}` | "
          f"{f'{one.share:.0%} of the triples of its questions' if one.triples else '–'} |" for one in recipe.sets),
        "",
        "| arm | what it is | protocol, group |",
        "|---|---|---|",
        *(f"| `{arm.name}` | {arm.says} | {arm.protocol}, {arm.group} |" for arm in ARMS),
        "",
        "| claim | manipulated | inequality | margin | sees | checked | departures |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for one in REAL:
        sets = sum(own.group == groups[one.expected[0].first.arm] for own in recipe.sets)
        for expected in one.expected:
            sees = _NORMAL * expected.spread.questions / (sets * recipe.questions) ** 0.5
            checks = "; ".join(checked(check) for check in one.checks)
            lines.append(
                f"| `{one.name}` | {one.manipulated} | {inequality(expected)} | {expected.margin:g}, "
                f"{one.margin_from} | {sees:.3g} | {checks} | {'; '.join(one.departures)} |"
            )
    return [*lines, "", "Not tested on real questions:", "", *_reasons(REAL_UNTESTED), ""]


def _claim(study: Study, one: Direction) -> list[str]:
    arms = all_arms()
    compared = [arms[side.arm] for expected in one.expected for side in (expected.first, expected.second)
                if isinstance(side, Side)]  # fmt: skip
    lines = [
        f"### {one.name}",
        "",
        f"{one.claim} In the paper: {one.figures} ({one.place}).",
        "",
        f"- start: {_start_of(compared)}",
        f"- worlds: {', '.join(dict.fromkeys(arm.world for arm in compared))}",
        f"- manipulated: {one.manipulated}",
        f"- margin: {one.margin_from}",
        *(f"- checked: {checked(check)}" for check in one.checks),
        *([f"- a larger effect than the paper's is expected: {one.larger_because}"] if one.larger_because else []),
        f"- departures: {'; '.join(one.departures)}",
        "",
        "| inequality | margin | σₛ, σ_q | questions, seeds | needs | sees |",
        "|---|---|---|---|---|---|",
        *(_power(study, expected, arms) for expected in one.expected),
        "",
    ]
    own = list(dict.fromkeys(arm.name for arm in compared))
    return [*lines, "| arm | what it is | protocol | trained |", "|---|---|---|---|",
            *(_arm(study, arms[name]) for name in own), ""]  # fmt: skip


def _start_of(compared: list[Arm]) -> str:
    kinds = {"the shared start, and what is trained from it" if arm.trained or arm.policy == "start" else
             "`tiny-v2` as it is shipped" for arm in compared}  # fmt: skip
    return "; ".join(sorted(kinds))


def _power(study: Study, expected: Expected, arms: dict[str, Arm]) -> str:
    questions = study.recipe.worlds.questions_of(arms[expected.first.arm].world)
    seeds = len(study.seeds)
    needs, sees = seeds_for(expected, questions), visible(expected.spread, seeds=seeds, questions=questions)
    spread = f"{expected.spread.seeds:g}, {expected.spread.questions:g}"
    return (
        f"| {inequality(expected)} | {expected.margin:g} | {spread} | {questions}, {seeds} | {needs or '> 200'} | "
        f"{sees:.3g} |"
    )


def seeds_for(expected: Expected, questions: int) -> int | None:
    """Seeds that an inequality needs; None for more than can be thought of."""
    effect = 2 * expected.margin if expected.kind == "more" else expected.margin
    try:
        return seeds_needed(effect, expected.spread, questions=questions)
    except ValueError:
        return None


def _arm(study: Study, arm: Arm) -> str:
    training = trainings().get(arm.policy)
    return f"| `{arm.name}` | {arm.says} | {arm.protocol} | {_trained(study, training) if training else '–'} |"


def _trained(study: Study, training: Training) -> str:
    recipe = study.rl_recipe(training, study.seeds[0])
    rollouts = f"{recipe.rollout.prompts} × {recipe.rollout.group}"
    rewards = ", ".join(stage.name for stage in recipe.reward)
    return f"{recipe.steps} steps of {rollouts}, {recipe.learning.name}, rate {recipe.optimizer.lr:g}, {rewards}"


def _untested(paper: Paper) -> Iterator[str]:
    if not paper.untested:
        return
    yield from ("### Not tested in little worlds", "", *_reasons(paper.untested), "")


def _reasons(left: Sequence[Untested]) -> list[str]:
    rows = [f"| `{one.name}`: {one.claim} | {one.figures} | {one.why} |" for one in left]
    return ["| claim | in the paper | why not |", "|---|---|---|", *rows]
