"""The report of the whole way: it counts what a stage took over several sittings, and refuses what it does not fit."""

from pathlib import Path

import pytest

from agent.errors import SetupError
from train.tiny import ledger as of
from train.tiny.ledger import REPORT, Ledger
from train.tiny.recipe import SHIPPED, read_recipes
from train.tiny.report import rows, write_report


def opened(out: Path, *, resume: bool = False, recipes: dict[str, object] | None = None) -> Ledger:
    return Ledger.opened(out, name="small", recipes=recipes or {"a": 1}, processes=2, resume=resume)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(of, "perf_counter", clock)
    return clock


def test_a_stage_that_was_killed_keeps_the_seconds_of_its_last_beat_and_counts_on(tmp_path: Path, clock: Clock) -> None:
    first = opened(tmp_path / "out")
    entered = first.timing("sft")
    entered.__enter__()
    clock.now += 40
    first.beat()
    clock.now += 2
    first.beat()  # too soon after the other one to be written

    second = opened(tmp_path / "out", resume=True)  # as after a kill: the first one never ended
    assert (second.entry("sft").seconds, second.entry("sft").done) == (40.0, False)
    with second.timing("sft"):
        clock.now += 10
    third = opened(tmp_path / "out", resume=True)
    assert (third.entry("sft").seconds, third.entry("sft").sittings, third.entry("sft").done) == (50.0, 2, True)
    assert third.told.seconds == 50.0


def test_a_stage_that_failed_is_not_done(tmp_path: Path, clock: Clock) -> None:
    ledger = opened(tmp_path / "out")

    def fail() -> None:
        with ledger.timing("rl"):
            clock.now += 5
            raise SetupError("no")

    with pytest.raises(SetupError, match="no"):
        fail()
    again = opened(tmp_path / "out", resume=True).entry("rl")
    assert (again.seconds, again.done) == (5.0, False)


def test_a_folder_with_a_run_is_gone_on_with_only_when_it_is_said(tmp_path: Path) -> None:
    opened(tmp_path / "out").write()
    with pytest.raises(SetupError, match="add --resume"):
        opened(tmp_path / "out")
    assert opened(tmp_path / "out", resume=True).told.name == "small"


def test_another_recipe_and_a_damaged_report_and_a_strange_folder_are_refused(tmp_path: Path) -> None:
    opened(tmp_path / "out").write()
    with pytest.raises(SetupError, match="another recipe"):
        opened(tmp_path / "out", resume=True, recipes={"a": 2})
    (tmp_path / "out" / REPORT).write_text("{", encoding="utf-8")
    with pytest.raises(SetupError, match="cannot be read"):
        opened(tmp_path / "out", resume=True)
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(SetupError, match="holds something else"):
        opened(tmp_path / "strange")


def test_the_table_has_the_stages_that_are_done_in_their_order_and_their_sum(tmp_path: Path, clock: Clock) -> None:
    ledger = opened(tmp_path / "out")
    for name, seconds in (("sft", 60), ("worlds", 3.5)):
        with ledger.timing(name) as entry:
            clock.now += seconds
            entry.said = f"did {name} | well"
    assert [(stage, seconds) for stage, _, seconds in rows(ledger)] == [
        ("worlds", "3.5"),
        ("SFT", "60.0"),
        ("all", "63.5"),
    ]
    write_report(ledger)
    written = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| SFT | did sft \\| well | 60.0 |" in written
    assert "Serve it: `cairn serve --model" in written


def test_the_shipped_recipes_fit_together_and_end_with_the_mix_that_is_asked(tmp_path: Path) -> None:
    from agent.world.v1.questions import MIX

    recipes = read_recipes(SHIPPED, start=tmp_path / "sft" / "hub")
    assert recipes.rl.start == str(tmp_path / "sft" / "hub")
    assert recipes.sft.curriculum[-1].mix == recipes.rl.curriculum[-1].mix == MIX
    assert recipes.sft.weights_at(0.0).environment > 0 == recipes.sft.weights_at(0.5).environment
    assert recipes.sft.optimizer.batches_per_step == 2


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("tiny.toml", 'kind = "tiny"', 'kind = "tiny"\ncolour = 1', "colour"),
        ("tiny.toml", 'sft = "sft.toml"', 'sft = "none.toml"', "none.toml"),
        ("rl.toml", '"multisearch"', '"cairn"', "does not teach"),
    ],
)
def test_recipes_that_do_not_fit_are_refused_by_name(tmp_path: Path, file: str, old: str, new: str, said: str) -> None:
    from tests.train.tiny.small import write_recipes

    path = write_recipes(tmp_path)
    wrong = tmp_path / file
    wrong.write_text(wrong.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(SetupError, match=said):
        read_recipes(path, start=tmp_path)
