import json
from pathlib import Path

import pytest

from agent.cli import run
from agent.protocols import profile_names, protocol_names
from agent.trace.io import write_traces
from agent.trace.samples import to_samples
from tests.agent.test_golden_protocols import FOREIGN, rollout

GOLDEN = Path(__file__).parent.parent.parent / "golden"
WELL = "<think>a</think>\n<answer>b</answer>"


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = run(["protocol", *arguments])
    return status, capsys.readouterr().out


def test_list_names_every_protocol_and_profile(capsys: pytest.CaptureFixture[str]):
    status, text = called(capsys, "list", "--json")
    rows = json.loads(text)["protocols"]
    assert status == 0
    assert [row["name"] for row in rows] == [*protocol_names(), *profile_names()]
    assert called(capsys, "list")[1].count("search-r1") == 1


def test_show_prints_what_a_protocol_holds(capsys: pytest.CaptureFixture[str]):
    status, text = called(capsys, "show", "search-r1", "--json")
    assert status == 0
    assert json.loads(text)["wrapper"] == "\n\n<information>{passages}</information>\n\n"
    assert r"\n\n<information>{passages}" in called(capsys, "show", "search-r1")[1]


def test_an_unknown_name_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]):
    assert run(["protocol", "show", "serch-r1"]) == 1
    assert "did you mean 'search-r1'?" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "status", "verdict"), [(WELL, 0, "well-formed"), ("I think.", 1, "rejected")])
def test_check_ends_with_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, status: int, verdict: str
):
    file = tmp_path / "rollout.txt"
    file.write_text(text, encoding="utf-8")
    found, said = called(capsys, "check", str(file), "--json")
    (report,) = json.loads(said)["transcripts"]
    assert (found, report["verdict"], report["protocol"]) == (status, verdict, "cairn")
    assert verdict in called(capsys, "check", str(file))[1]


def test_check_prints_tokens_and_loss_mask_of_each_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "rollout.txt").write_text(
        "<search> q </search>\n\n<information>d</information>\n\n<answer>a</answer>", encoding="utf-8"
    )
    _, text = called(capsys, "check", str(tmp_path / "rollout.txt"), "--protocol", "search-r1", "--json")
    (report,) = json.loads(text)["transcripts"]
    rows = [(block["role"], block["trained"], block["tokens"] > 0) for block in report["blocks"]]
    assert rows == [("search", True, True), ("information", False, True), ("answer", True, True)]
    assert report["tokens"] == sum(block["tokens"] for block in report["blocks"])
    assert report["trained_tokens"] == report["tokens"] - report["blocks"][1]["tokens"]
    assert report["blocks"][0]["plan"][0]["query"] == "q"


def test_check_reads_a_trace_with_its_own_protocol(capsys: pytest.CaptureFixture[str]):
    status, text = called(capsys, "check", str(GOLDEN / "multisearch-answered.jsonl"), "--json")
    (report,) = json.loads(text)["transcripts"]
    assert (status, report["protocol"], report["blocks"][0]["role"]) == (0, "multisearch", "prompt")
    assert report["answer"] == "Herbert"


def test_the_tokens_of_a_trace_are_those_that_it_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Also where a block's text would be encoded otherwise than it was sampled."""
    trace = rollout("recall")
    write_traces(tmp_path / "trace.jsonl", [trace])
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps({"system": FOREIGN["system"]}), encoding="utf-8")
    arguments = ["check", str(tmp_path / "trace.jsonl"), "--prompt-file", str(texts), "--json"]
    _, text = called(capsys, *arguments, "--tokenizer", str(GOLDEN / "protocols"))
    (report,) = json.loads(text)["transcripts"]
    (sample,) = to_samples(trace)
    assert report["tokens_kept"]
    assert (report["tokens"], report["trained_tokens"]) == (len(sample.ids), sum(sample.mask))


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\x0c"])
def test_check_reads_traces_whose_passages_hold_what_only_looks_like_a_line_end(
    character: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    trace = rollout("search-r1")
    environment = next(at for at, segment in enumerate(trace.segments) if segment.by == "environment")
    changed = trace.segments[environment].model_copy(
        update={"text": trace.segments[environment].text.replace("</information>", f"one{character}two</information>")}
    )
    trace.segments[environment] = changed
    write_traces(tmp_path / "traces.jsonl", [trace, trace])
    status, text = called(capsys, "check", str(tmp_path / "traces.jsonl"), "--json")
    assert status == 0
    assert [one["protocol"] for one in json.loads(text)["transcripts"]] == ["search-r1"] * 2


def test_check_reads_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": WELL}]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    status, text = called(capsys, "check", str(tmp_path / "chat.json"), "--json")
    assert (status, json.loads(text)["transcripts"][0]["blocks"][0]["by"]) == (0, "prompt")


def test_check_takes_another_tokenizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "rollout.txt").write_text(WELL, encoding="utf-8")
    folder = GOLDEN / "protocols"
    assert called(capsys, "check", str(tmp_path / "rollout.txt"), "--tokenizer", str(folder))[0] == 0
    assert run(["protocol", "check", str(tmp_path / "rollout.txt"), "--tokenizer", str(tmp_path)]) == 1
    assert "tokenizer.json cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\xff", b'{"segments": 3}'])
def test_what_cannot_be_checked_is_a_wrong_call(tmp_path: Path, content: bytes):
    (tmp_path / "file").write_bytes(content)
    assert run(["protocol", "check", str(tmp_path / "file")]) == 2
    assert run(["protocol", "check", str(tmp_path / "missing")]) == 2
