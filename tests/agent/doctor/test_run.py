"""How checks run: together, bounded, none of them at another's cost; and the command that shows what they found."""

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run
from agent.doctor import CheckResult, Diagnosis, DoctorCheck, diagnose
from agent.errors import SetupError
from tests.agent.doctor.look import no_folder


def check(name: str, verdict: CheckResult | Exception) -> DoctorCheck:
    async def see() -> CheckResult:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return DoctorCheck(name, see)


def test_findings_keep_the_order_of_their_checks_and_each_is_reported_when_it_is_there() -> None:
    reported: list[Diagnosis] = []
    found = diagnose(
        [check("a", CheckResult("ok", "fine")), check("b", CheckResult("warn", "low", "fill"))], report=reported.append
    )
    assert found == [Diagnosis("a", "ok", "fine"), Diagnosis("b", "warn", "low", "fill")]
    assert sorted(reported, key=lambda finding: finding.name) == found


def test_a_check_that_breaks_costs_the_others_nothing() -> None:
    found = diagnose(
        [check("a", KeyError("x")), check("b", SetupError("no; fix it")), check("c", CheckResult("ok", ""))]
    )
    assert [(f.name, f.state) for f in found] == [("a", "bad"), ("b", "bad"), ("c", "ok")]
    assert "KeyError" in found[0].says
    assert found[1].says == "no; fix it"


def test_a_thread_that_hangs_is_not_waited_for() -> None:
    release = threading.Event()

    async def hang() -> CheckResult:
        await asyncio.to_thread(release.wait, 20)
        return CheckResult("ok", "")

    started = time.monotonic()
    found = diagnose([DoctorCheck("disk", hang)], seconds=0.05)
    assert time.monotonic() - started < 5
    release.set()
    assert (found[0].state, found[0].says) == ("bad", "no answer in 0.05 s")


def test_what_loads_a_model_may_take_longer_and_is_bounded_too() -> None:
    async def hang() -> CheckResult:
        await asyncio.Event().wait()
        return CheckResult("ok", "")

    quick, slow = diagnose([DoctorCheck("port", hang), DoctorCheck("corpus", hang, slow=True)], seconds=0.02)
    assert (quick.says, slow.says) == ("no answer in 0.02 s", "no answer in 0.12 s")


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options with which nothing is wrong, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAIRN_CACHE", str(tmp_path / "cache"))
    return ["doctor", "--port", "0"]


def test_when_all_is_well_each_line_has_its_mark(quiet: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status = run(quiet)
    lines = capsys.readouterr().out.splitlines()
    assert status == (1 if any(line.startswith("✗") for line in lines) else 0)
    assert lines[0].split(maxsplit=2) == ["✓", "settings", "the defaults; no cairn.toml here"]
    assert any(line.startswith("· live") for line in lines)
    assert any(line.startswith("· local models") for line in lines)
    assert any(line.startswith("✓ world") for line in lines)


def test_what_is_wrong_has_its_fix_below_and_a_status(quiet: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*quiet, "--base-url", "http://127.0.0.1:1/v1", "--model", "m"]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("✗ policy"))
    assert lines[at + 1].strip().startswith("→ start the server")


def test_as_json_it_is_one_object(
    quiet: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_CACHE", no_folder())
    assert run([*quiet, "--json"]) == 1
    printed: Any = json.loads(capsys.readouterr().out)
    assert printed["ok"] is False
    states = {check["name"]: check["state"] for check in printed["checks"]}
    assert (states["settings"], states["policy"], states["cache"]) == ("ok", "ok", "bad")


def test_settings_that_cannot_be_read_are_the_finding(
    quiet: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "cairn.toml").write_text("prot = 8000\n", encoding="utf-8")
    assert run([*quiet, "--json"]) == 1
    printed: Any = json.loads(capsys.readouterr().out)
    assert [check["name"] for check in printed["checks"]] == ["settings"]
    assert "did you mean 'port'" in printed["checks"][0]["says"]


def test_a_probe_says_before_what_it_costs(
    quiet: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_SOURCES", "news")
    monkeypatch.setenv("CAIRN_NEWS", "gnews")
    monkeypatch.setenv("CAIRN_GNEWS_KEY", "k")
    monkeypatch.setenv("CAIRN_GNEWS_URL", "http://127.0.0.1:1")
    assert run([*quiet, "--probe"]) == 1
    assert "one question; credits: gnews 1" in capsys.readouterr().err
