import json
from pathlib import Path

import pytest

from agent.cli import run
from agent.errors import SetupError
from tests.train.evaluation.runs import failed, passage, result, stored, trace
from train.evaluation.compare import change, compared, markdown, probability, rows, table, verdict_of
from train.evaluation.compare_html import compare_page
from train.evaluation.report import main_rows, summarise
from train.evaluation.report_files import StoredRun, read_run, write_report
from train.evaluation.result import QuestionResult


def two(
    tmp_path: Path, first: list[QuestionResult], second: list[QuestionResult], **settings: str
) -> tuple[StoredRun, StoredRun]:
    return read_run(stored(tmp_path / "a", first)), read_run(stored(tmp_path / "b", second, settings=settings))


def test_differences_are_of_the_questions_that_both_scored(tmp_path: Path):
    first = [result(1), result(2, "no"), result(3, "no"), result(4, "no"), failed(5), result(6)]
    second = [result(1), result(2), result(3), result(4, "no"), result(5), failed(6), result(7)]
    figures = compared(*two(tmp_path, first, second))
    assert (figures["shared"], figures["n"], figures["only_first"], figures["only_second"]) == (6, 4, 0, 1)
    assert (figures["failed_first"], figures["failed_second"]) == (1, 1)
    em = figures["em"]
    assert (em["first"], em["second"], em["difference"], em["better"], em["worse"]) == (0.25, 0.75, 0.5, 2, 0)
    assert (em["p"], em["p_mcnemar"]) == (0.5, 0.5)  # 2 of 4 sign flips are as far; two coins on one side, twice
    assert em["interval"][0] <= 0.5 <= em["interval"][1]
    assert (figures["now_right"], figures["no_longer_right"]) == (["q2", "q3"], [])


def test_a_change_has_a_direction_and_a_failure_is_none():
    assert change(result(1, "no"), result(1)) == "now right"
    assert change(result(1), result(1, "no")) == "no longer right"
    assert change(result(1), failed(1)) == "otherwise changed"
    assert change(result(1, "no"), result(1, "?", abstained=True)) == "otherwise changed"
    assert change(result(1), result(1)) == ""


def test_groups_are_compared_on_their_own_with_p_for_their_number(tmp_path: Path):
    first = [result(n, "no", type="chain" if n < 8 else "choice") for n in range(16)]
    second = [result(n, "yes" if n < 8 else "no", type="chain" if n < 8 else "choice") for n in range(16)]
    groups = compared(*two(tmp_path, first, second))["by_type"]
    assert (groups["chain"]["difference"], groups["choice"]["difference"]) == (1.0, 0.0)
    assert (groups["chain"]["p"], groups["chain"]["p_holm"]) == (
        pytest.approx(2 / 2**8, abs=1e-5),
        pytest.approx(4 / 2**8, abs=1e-4),
    )


def test_a_sentence_is_only_sure_where_chance_is_unlikely(tmp_path: Path):
    first = [result(n, "no") for n in range(20)]
    assert "is unlikely to be chance alone" in verdict_of(
        compared(*two(tmp_path, first, [result(n) for n in range(20)]))
    )
    same = compared(*two(tmp_path, first, [result(0), *first[1:]]))
    assert "cannot be distinguished from chance" in verdict_of(same)
    assert "1 became right, 0 are no longer" in verdict_of(same)


def test_the_same_id_over_another_question_is_no_pair(tmp_path: Path):
    other = result(2, question="Something else?")
    figures = compared(*two(tmp_path, [result(1), result(2)], [result(1), other]))
    assert (figures["shared"], figures["only_first"], figures["only_second"]) == (1, 1, 1)
    with pytest.raises(SetupError, match="share no question"):
        compared(*two(tmp_path, [result(2)], [other]))
    with pytest.raises(SetupError, match="scored in both"):
        compared(*two(tmp_path, [result(1)], [failed(1)]))


def test_settings_that_differ_are_listed(tmp_path: Path):
    figures = compared(*two(tmp_path, [result(1)], [result(1)], policy="other"))
    assert figures["settings"] == {"policy": ["scripted", "other"]}
    text = markdown(figures)
    assert "- policy: scripted → other" in text
    assert "- now right: none" in text


def test_probabilities_never_read_as_zero():
    assert (probability(0.0001), probability(0.05)) == ("< 0.001", "0.050")


def test_a_table_for_people_shows_the_scores_and_what_differs(tmp_path: Path):
    first = [result(n, "no", searches=1, rounds=1) for n in range(4)]
    second = [result(n, "no", searches=2, rounds=1) for n in range(4)]
    figures = compared(*two(tmp_path, first, second))
    assert [line[0] for line in rows(figures)][:4] == ["EM", "F1", "Cover", "Searches"]
    assert table(figures).row_count == len(rows(figures))


def test_the_page_holds_both_traces_of_what_changed_and_of_nothing_else(tmp_path: Path):
    found = [passage(1, "One.")]
    first = stored(tmp_path / "a", [result(1), result(2, "no")], [trace(1, found), trace(2, found, thought="before")])
    second = stored(tmp_path / "b", [result(1), result(2)], [trace(1, found), trace(2, found, thought="afterwards")])
    runs = read_run(first), read_run(second)
    page = compare_page(compared(*runs), *runs)
    data = json.loads(page.split('data-form="json">')[1].split("</script>")[0])
    assert [(changed["id"], changed["change"]) for changed in data["changed"]] == [("q2", "now right")]
    assert data["names"] == ["a", "b"]
    thoughts = [data["changed"][0][side]["trace"]["steps"][0]["text"] for side in ("first", "second")]
    assert thoughts == ["before", "afterwards"]
    assert "Content-Security-Policy" in page


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    a, b = stored(tmp_path / "a", [result(1, "no")]), stored(tmp_path / "b", [result(1)])
    assert run(["eval-compare", str(a), str(b), "--out", str(tmp_path / "c"), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["n"], figures["em"]["difference"]) == (1, 1.0)
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"compare.json", "compare.md", "compare.html"}
    assert run(["eval-compare", str(a), str(b)]) == 0
    assert "1 became right" in " ".join(capsys.readouterr().out.split())


def test_a_report_is_drawn_again_from_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = stored(tmp_path / "a", [failed(1), result(1), result(2, "no")], [trace(1, []), trace(2, [])])
    assert run(["eval-report", str(folder), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["n"], figures["em"], figures["infrastructure"]) == (2, 0.5, 0)
    first = (folder / "report.html").read_bytes()
    assert run(["eval-report", str(folder)]) == 0
    assert (folder / "report.html").read_bytes() == first
    (folder / "report.html").unlink()
    assert run(["eval-report", str(folder), "--no-html"]) == 0
    assert not (folder / "report.html").exists()


def test_what_only_the_run_knew_outlives_a_new_report(tmp_path: Path):
    folder = stored(tmp_path, [result(1, judged=1.0)])
    run_settings = {**read_run(folder).settings, "concurrency": "16"}
    figures = summarise([result(1, judged=1.0)], run_settings) | {"judge_failures": {"no verdict": 2}}
    write_report(folder, figures, [result(1)], title="dev: cairn", html=False)
    again = read_run(folder)
    assert again.title == "dev: cairn"
    assert again.figures() == figures
    assert ("judge gave no verdict", "2", "") in main_rows(again.figures())


@pytest.mark.parametrize("command", [["eval-report"], ["eval-compare", "."]])
def test_a_folder_without_a_run_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
):
    monkeypatch.chdir(tmp_path)
    assert run([*command, "gone"]) == 1
    assert "has no run" in capsys.readouterr().err


def test_damaged_lines_are_named_and_a_cut_off_one_is_left_out(tmp_path: Path):
    folder = stored(tmp_path, [result(1)])
    with (folder / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "q2"')
    assert [r.id for r in read_run(folder).results] == ["q1"]
    (folder / "results.jsonl").write_text('{"id": 1}\n', encoding="utf-8")
    with pytest.raises(SetupError, match="line 1 is not a result"):
        read_run(folder)
    (folder / "results.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(SetupError, match="has no results yet"):
        read_run(folder)
    (folder / "run.json").write_text("[", encoding="utf-8")
    with pytest.raises(SetupError, match=r"run\.json is damaged"):
        read_run(folder)
