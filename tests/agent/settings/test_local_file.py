"""What a settings file may set that is merely found, and where keys may go."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from agent.build.sources import SOURCE_NAMES
from agent.errors import NotTrusted, SetupError
from agent.settings import BudgetSettings, CairnSettings, VllmSettings, load_settings, needing_consent
from agent.settings.consent import give_consent, take_back
from agent.settings.live import STANDALONE
from agent.settings.local_file import HARMLESS, OWN_SOURCES, beyond_harmless, refuse_plain_key
from agent.sources.plugins import BUILT_IN

TABLES = {"budgets": BudgetSettings, "vllm": VllmSettings}
SETTINGS = [name for name in CairnSettings.model_fields if name not in TABLES] + [
    f"{table}.{name}" for table, model in TABLES.items() for name in model.model_fields
]
DANGEROUS = (
    "url",
    "key",
    "file",
    "path",
    "host",
    "port",
    "address",
    "store",
    "cache",
    "model",
    "vllm",
    "work",
    "plugin",
)


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_unknown_kind_of_setting_needs_consent():
    assert beyond_harmless({"new_setting": 1, "budgets": {"new": 1}}, tables=TABLES) == ["new_setting", "budgets.new"]


def test_what_is_harmless_is_a_setting_and_names_no_address_path_or_process():
    assert set(HARMLESS) <= set(SETTINGS)
    assert not [name for name in HARMLESS for word in DANGEROUS if word in name.split("_")]
    secret = [name for name, field in CairnSettings.model_fields.items() if field.annotation is SecretStr]
    paths = [name for name, field in CairnSettings.model_fields.items() if "Path" in str(field.annotation)]
    assert not set(HARMLESS) & {*secret, *paths}


def test_the_sources_of_a_folder_are_our_own():
    assert {*SOURCE_NAMES, "all"} == OWN_SOURCES
    assert needing_consent({"sources": ["web", "glossary"]}) == ["sources"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("protocol", "./mine.toml"),
        ("protocol", "/etc/mine.toml"),
        ("protocol", 3),
        ("protocols", ["cairn", "mine.toml"]),
        ("world", "./world"),
        ("world", ".."),
        ("world", ["test"]),
        ("sources", {"a": "b"}),
    ],
)
def test_a_name_that_could_be_a_path_needs_consent(name: str, value: object):
    assert needing_consent({name: value}) == [name]


def test_a_folder_says_how_questions_are_answered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CAIRN_WORLD")
    text = 'protocol = "multisearch"\nworld = "test-v1"\nsources = ["web"]\nanswer_style = "sentence"\n[budgets]\nrounds = 2\n'
    Path("cairn.toml").write_text(text, encoding="utf-8")
    settings = load_settings()
    assert (settings.protocol, settings.world, settings.budgets.rounds) == ("multisearch", "test-v1", 2)


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - set(HARMLESS)))
def test_every_other_setting_is_refused_until_the_file_is_trusted(name: str):
    table, _, inner = name.partition(".")
    Path("cairn.toml").write_text(f"[{table}]\n{inner} = 1\n" if inner else f"{name} = 1\n", encoding="utf-8")
    with pytest.raises(NotTrusted, match=rf"sets {name}, which .* run: cairn trust \./cairn\.toml"):
        load_settings()


def test_consent_holds_for_the_content_and_ends_with_it():
    path, text = Path("cairn.toml"), "port = 9000\n"
    path.write_text(text, encoding="utf-8")
    give_consent(path, text.encode())
    assert load_settings().port == 9000
    path.write_text("port = 9001\n", encoding="utf-8")
    with pytest.raises(NotTrusted, match="It has changed since you trusted it"):
        load_settings()
    path.write_text(text, encoding="utf-8")
    assert take_back(path)
    with pytest.raises(NotTrusted, match=r"unless you trust it\. Read it"):
        load_settings()


def test_consent_does_not_follow_a_link_to_another_folder(tmp_path: Path):
    trusted, other = tmp_path / "cairn.toml", tmp_path / "other"
    trusted.write_text("port = 9000\n", encoding="utf-8")
    give_consent(trusted, trusted.read_bytes())
    other.mkdir()
    (other / "cairn.toml").symlink_to(trusted)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(other)
        with pytest.raises(NotTrusted):
            load_settings()


def test_who_names_a_file_consents_to_it():
    Path("mine.toml").write_text("port = 9000\n", encoding="utf-8")
    assert load_settings(Path("mine.toml")).port == 9000


def test_a_list_of_trusted_files_that_others_can_write_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = Path("cairn.toml")
    path.write_text("port = 9000\n", encoding="utf-8")
    give_consent(path, path.read_bytes())
    (tmp_path / "config" / "cairn").chmod(0o777)
    with pytest.raises(SetupError, match=r"other users|belongs to another"):
        load_settings()


@pytest.mark.parametrize(
    "url", ["http://example.org/v1", "HTTP://10.0.0.1", "http://localhost.evil.org", "http://[::2]:8/"]
)
def test_a_key_is_not_sent_unencrypted(url: str):
    with pytest.raises(SetupError, match="sent there unencrypted"):
        refuse_plain_key(url, "key")
    with pytest.raises(SetupError, match="CAIRN_PLAIN_HTTP"):
        load_settings(base_url=url, api_key="key")
    refuse_plain_key(url, "")


@pytest.mark.parametrize(
    "url", ["https://example.org/v1", "http://127.0.0.1:1/v1", "http://localhost", "http://[::1]:8/"]
)
def test_a_key_is_sent_encrypted_or_to_this_machine(url: str):
    refuse_plain_key(url, "key")


def test_a_host_that_the_user_names_may_get_a_key_unencrypted():
    settings = load_settings(base_url="http://vllm:8000/v1", api_key="key", plain_http="vllm")
    assert settings.plain_http == ("vllm",)
    with pytest.raises(SetupError, match="a key would be sent"):
        load_settings(base_url="http://user:secret@vllm2:8000/v1", plain_http="vllm")


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_value_is_judged_without_an_error(value: object):
    for name in CairnSettings.model_fields:
        assert needing_consent({name: value}) in ([], [name]) or isinstance(value, dict)


@pytest.mark.parametrize("name", sorted(CairnSettings.model_fields))
def test_a_name_in_capitals_is_no_setting(name: str):
    Path("cairn.toml").write_text(f'{name.upper()} = "x"\n', encoding="utf-8")
    with pytest.raises(SetupError, match=f"there is no setting '{name.upper()}'"):
        load_settings()


def test_many_wrong_names_get_one_short_error_and_a_number_of_any_length_one():
    Path("cairn.toml").write_text("".join(f"x{n} = 1\n" for n in range(50_000)), encoding="utf-8")
    with pytest.raises(SetupError, match="there is no setting 'x0'") as caught:
        load_settings()
    assert len(str(caught.value)) < 1000
    Path("cairn.toml").write_text(f"temperature = {'9' * 6000}\n", encoding="utf-8")
    with pytest.raises(SetupError, match="cannot be read"):
        load_settings()


def test_a_folder_turns_no_source_of_papers_or_code_on():
    assert {*STANDALONE} <= BUILT_IN
    for name in STANDALONE:
        assert needing_consent({"sources": ["corpus", name]}) == ["sources"]
        with pytest.raises(SetupError, match="sent there unencrypted"):
            load_settings(None, **{f"{name}_url": "http://papers.example", f"{name}_key": "key"})
