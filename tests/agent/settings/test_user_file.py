"""The user's own settings file: under everything else, private, and no key of it goes to another address."""

from pathlib import Path

import pytest

from agent.build.shipped import CHECKPOINTS
from agent.errors import SetupError
from agent.settings import load_settings
from agent.settings.user_file import read_user_file, user_file, write_user_file


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def test_it_counts_less_than_a_file_the_environment_and_a_flag(monkeypatch: pytest.MonkeyPatch):
    write_user_file({"answer_style": "sentence", "port": 9001})
    assert (load_settings().answer_style, load_settings().port) == ("sentence", 9001)
    Path("cairn.toml").write_text('answer_style = "with_evidence"\n', encoding="utf-8")
    assert load_settings().answer_style == "with_evidence"
    monkeypatch.setenv("CAIRN_PORT", "9002")
    assert load_settings().port == 9002
    assert load_settings(port=9003).port == 9003


def test_what_is_written_is_read_again_and_for_the_user_alone():
    values = {"model": 'a "quoted" \\ name — Ω', "live": True, "sources": ["web", "news"], "port": 8001}
    write_user_file(values)
    assert read_user_file() == values
    assert user_file().stat().st_mode & 0o077 == 0
    write_user_file({})
    assert read_user_file() == {}


@pytest.mark.parametrize(("other", "sent"), [("", "sk-own"), ("https://elsewhere.example/v1", "")])
def test_a_key_goes_only_to_the_address_that_it_was_given_for(other: str, sent: str):
    write_user_file({"base_url": "https://own.example/v1", "model": "m", "api_key": "sk-own"})
    settings = load_settings(base_url=other or None)
    assert settings.api_key.get_secret_value() == sent


def test_a_key_of_a_vendor_goes_to_no_address_of_a_flag():
    write_user_file({"tavily_key": "tv-own"})
    assert load_settings().tavily_key.get_secret_value() == "tv-own"
    assert load_settings(tavily_url="https://elsewhere.example").tavily_key.get_secret_value() == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [("BASE_URL = 'x'\n", "no setting 'BASE_URL'"), ("a = \n", "cannot be read"), ("port = 'x'\n", "port")],
)
def test_what_is_wrong_in_it_is_a_sentence(content: str, said: str):
    write_user_file({})
    user_file().write_text(content, encoding="utf-8")
    with pytest.raises(SetupError, match=said):
        load_settings()


def test_a_checkpoint_that_a_flag_names_counts_more_than_an_endpoint_of_the_file(monkeypatch: pytest.MonkeyPatch):
    write_user_file({"base_url": "https://own.example/v1", "model": "m", "api_key": "sk-own"})
    assert load_settings().policy == "openai"
    checkpoint = CHECKPOINTS / "tiny-v2" / "ct2"
    assert load_settings(checkpoint=checkpoint).policy == "embedded"
    assert load_settings(checkpoint=checkpoint, policy="openai").policy == "openai"
    monkeypatch.setenv("CAIRN_BASE_URL", "https://own.example/v1")
    assert load_settings(checkpoint=checkpoint).policy == "embedded"


def test_a_host_that_the_file_allows_may_get_a_key_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CAIRN_API_KEY", "sk-mine")
    with pytest.raises(SetupError, match="plain_http"):
        load_settings(base_url="http://gpu.lan:8000/v1", model="m")
    write_user_file({"plain_http": ["gpu.lan"]})
    assert load_settings(base_url="http://gpu.lan:8000/v1", model="m").api_key.get_secret_value() == "sk-mine"
    with pytest.raises(SetupError, match="plain_http"):
        load_settings(base_url="http://other.lan:8000/v1", model="m")


def test_an_empty_path_is_none(monkeypatch: pytest.MonkeyPatch):
    for name in ("CORPUS", "LIBRARY_FOLDER", "KG", "CHECKPOINT"):
        monkeypatch.setenv(f"CAIRN_{name}", "")
    settings = load_settings()
    assert (settings.corpus, settings.library_folder, settings.kg, settings.checkpoint) == (None, None, None, None)
