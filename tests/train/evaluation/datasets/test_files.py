"""Files as such: their content decides what they are, and a wrong one is refused with a sentence that helps."""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from agent.errors import CorpusError
from agent.sources.corpus.documents import read_file
from agent.sources.corpus.finding import SourceFile
from agent.sources.extract.text import Extracted
from train.evaluation.datasets import read_dataset, write_corpus, write_questions
from train.evaluation.datasets.files import literal_list, read_rows
from train.evaluation.questions import read_questions

FILES = Path(__file__).parents[3] / "fixtures" / "datasets"


class NoReader:
    """Nothing here is parsed in another process."""

    def read(self, path: Path, kind: str) -> Extracted:
        raise AssertionError(f"{path} is no JSON")


@pytest.mark.parametrize("name", ["hotpotqa.json", "nq-open.jsonl", "popqa.tsv", "mmlu.csv"])
def test_a_compressed_file_and_another_name_change_nothing(tmp_path: Path, name: str):
    packed = tmp_path / "download"
    packed.write_bytes(gzip.compress((FILES / name).read_bytes()))
    assert read_dataset(packed).questions == read_dataset(FILES / name).questions


def test_a_byte_order_mark_and_windows_lines_change_nothing(tmp_path: Path):
    for name in ("bamboogle.csv", "nq-open.jsonl", "mmlu.csv"):
        text = (FILES / name).read_text(encoding="utf-8")
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
        assert read_dataset(tmp_path / name).questions == read_dataset(FILES / name).questions


def test_a_list_on_one_line_and_lines_without_a_list_are_the_same_rows(tmp_path: Path):
    rows = json.loads((FILES / "hotpotqa.json").read_text(encoding="utf-8"))
    forms = {
        "line.json": json.dumps(rows),
        "lines.jsonl": "\n".join(map(json.dumps, rows)),
        "held.json": json.dumps({"version": 1, "data": rows}),
        "one.json": json.dumps(rows[0], indent=2),
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = {name: read_dataset(tmp_path / name).questions for name in forms}
    assert found["line.json"] == found["lines.jsonl"] == found["held.json"]
    assert found["one.json"] == found["line.json"][:1]


def test_a_row_that_holds_a_list_of_its_own_is_still_a_row(tmp_path: Path):
    row = {"id": "1", "question": "x?", "answers": ["y"], "data": [1, 2]}
    (tmp_path / "q.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row | {'id': '2'})}\n", encoding="utf-8")
    assert [question.id for question in read_dataset(tmp_path / "q.jsonl").questions] == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"[]", "has no list of questions"),
        (b"[1]", "question 1: not a JSON object"),
        (b'{"a": 1}', "has no known format; give lines of"),
        (b'[{"question": "x"', "is not valid JSON: .*is the file complete"),
        (b'{"id": "1", "question": "x?", "answers": ["y"]}\n{"id"', r"line 2: not valid JSON .*each line"),
        (b'{"id": "1", "question": "x?", "answers": ["y"]}\n7', "line 2: not a JSON object"),
        (b'{"id": "1", "question": "x?"}', "line 1: the field 'answers' is missing; the project's own is lines of"),
        (b'{"id": "1", "question": "x?", "answers": []}', "line 1: .* at least one answer"),
        (b'{"id": "1", "question": " ", "answers": ["y"]}', "line 1: the field 'question' cannot be used: is empty"),
        (b"city,country\nTarn,Orlen\n", "has no known format"),
        (b"Question,Answer\n", "no questions in"),
        (b"\xff\xfe\x00q", "not UTF-8 text"),
        (b"\x1f\x8bbroken", "cannot be read"),
        (b'{"id": "q", "question": "x?", "golden_answers": ["y"]}\n' * 2, "line 2: the id 'q' occurs twice"),
        (b'{"question": "x?", "choices": ["y", "z"], "answer": 2}', "the right option is not among the options"),
        (b'{"question": "x?", "choices": ["y"], "answer": 0}', "'options'"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_what_was_expected(tmp_path: Path, content: bytes, message: str):
    file = tmp_path / "questions"
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        read_dataset(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"none\.json cannot be read"):
        read_dataset(tmp_path / "none.json")


def test_a_file_of_another_form_than_named_says_what_it_looks_like():
    with pytest.raises(CorpusError, match=r"is not TriviaQA, which is unfiltered.*it looks like HotpotQA \(hotpotqa\)"):
        read_dataset(FILES / "hotpotqa.json", "triviaqa")
    with pytest.raises(CorpusError, match=r"unknown question set 'squad'; choose from: .*musique"):
        read_dataset(FILES / "hotpotqa.json", "squad")


def test_a_test_file_without_answers_says_which_field_is_missing(tmp_path: Path):
    rows = json.loads((FILES / "hotpotqa.json").read_text(encoding="utf-8"))
    del rows[1]["answer"]
    (tmp_path / "test.json").write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(CorpusError, match="question 2: the field 'answer' is missing; HotpotQA is"):
        read_dataset(tmp_path / "test.json")


def test_broken_aliases_beside_are_not_passed_over(tmp_path: Path):
    (tmp_path / "dev.json").write_bytes((FILES / "2wiki/dev.json").read_bytes())
    (tmp_path / "id_aliases.json").write_text('{"id": "Q903"}\n', encoding="utf-8")
    with pytest.raises(CorpusError, match="line 1: not a line of id_aliases"):
        read_dataset(tmp_path / "dev.json")


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is there")
def test_parquet_names_what_it_needs(tmp_path: Path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1....PAR1")
    with pytest.raises(CorpusError, match="needs pyarrow: pip install pyarrow"):
        list(read_rows(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    "name", ["hotpotqa.json", "2wiki/dev.json", "musique.jsonl", "morehopqa.json", "flashrag.jsonl"]
)
def test_the_corpus_of_a_file_holds_every_gold_passage_once(tmp_path: Path, name: str):
    out = tmp_path / "corpus.jsonl"
    written = write_corpus(FILES / name, out)
    documents = list(read_file(SourceFile(out, "lines", out), NoReader()))
    ids = [document.id for document in documents]
    assert written == len(ids) == len(set(ids))
    gold = {key for question in read_dataset(FILES / name).questions for key in question.supporting}
    assert gold
    assert gold <= set(ids)
    assert {d.title for d in documents if d.id in gold} >= {"Tarn Harbour", "Ilse Marn"}


def test_two_paragraphs_of_one_title_are_two_passages(tmp_path: Path):
    write_corpus(FILES / "musique.jsonl", tmp_path / "corpus.jsonl")
    lines = (tmp_path / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["title"] for line in lines) == ["Ilse Marn", "Ilse Marn", "Tarn Harbour"]


def test_a_set_without_paragraphs_makes_no_corpus_and_leaves_no_file(tmp_path: Path):
    with pytest.raises(CorpusError, match="no paragraphs come with the questions"):
        write_corpus(FILES / "nq-open.jsonl", tmp_path / "corpus.jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["hotpotqa.json", "musique.jsonl", "mmlu.csv", "frames.tsv"])
def test_questions_written_in_our_form_are_read_back_the_same(tmp_path: Path, name: str):
    questions = read_questions(FILES / name)
    assert write_questions(questions, tmp_path / "own.jsonl") == len(questions)
    assert read_questions(tmp_path / "own.jsonl") == questions


@pytest.mark.parametrize(
    ("cell", "items"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['it''s', \"b\"]", ["its", "b"]),
        ("('a',)", ["a"]),
        ("[1912]", ["1912"]),
        ("a, b", ["a, b"]),
        ("[broken", ["[broken"]),
        ("", []),
        ("7", ["7"]),
    ],
)
def test_a_list_in_a_cell_is_read_and_never_run(cell: str, items: list[str]):
    assert literal_list(cell) == items
