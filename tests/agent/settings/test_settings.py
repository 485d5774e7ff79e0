from pathlib import Path

import pytest

from agent.errors import SetupError
from agent.settings import CairnSettings, load_settings, settings_of, wants_debug
from agent.settings.consent import give_consent


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "cairn.toml") -> Path:
    """A settings file that the user trusts."""
    Path(name).write_text(text, encoding="utf-8")
    give_consent(Path(name), text.encode())
    return Path(name)


def test_without_anything_the_defaults_hold():
    settings = load_settings()
    assert (settings.policy, settings.protocol, settings.sources, settings.host) == (
        "embedded",
        "cairn",
        (),
        "127.0.0.1",
    )


def test_a_flag_beats_the_environment_which_beats_the_file(monkeypatch: pytest.MonkeyPatch):
    write('port = 9000\nprotocol = "multisearch"\nmodel = "from-the-file"')
    monkeypatch.setenv("CAIRN_PORT", "9001")
    monkeypatch.setenv("CAIRN_PROTOCOL", "cairn")
    settings = load_settings(port=9002)
    assert (settings.port, settings.protocol, settings.model) == (9002, "cairn", "from-the-file")


def test_a_flag_that_says_nothing_leaves_the_setting_alone():
    write("port = 9000")
    assert load_settings(port=None).port == 9000


def test_budgets_of_several_layers_join(monkeypatch: pytest.MonkeyPatch):
    write("[budgets]\nrounds = 2\nseconds = 9.5")
    monkeypatch.setenv("CAIRN_BUDGETS__ROUNDS", "7")
    budgets = load_settings(budgets={"searches": 3, "rounds": None, "seconds": None}).budgets
    assert (budgets.rounds, budgets.seconds, budgets.searches) == (7, 9.5, 3)


def test_sources_may_be_written_with_commas_or_as_a_list(monkeypatch: pytest.MonkeyPatch):
    assert load_settings(sources="web, news").sources == ("web", "news")
    assert load_settings(write('sources = ["web", "kg"]', "other.toml")).sources == ("web", "kg")
    monkeypatch.setenv("CAIRN_SOURCES", "arxiv,kg")
    assert load_settings().sources == ("arxiv", "kg")


def test_who_names_an_endpoint_means_it_unless_a_policy_is_named():
    assert load_settings(base_url="http://127.0.0.1:1/v1").policy == "openai"
    assert load_settings(base_url="http://127.0.0.1:1/v1", policy="embedded").policy == "embedded"
    assert load_settings().policy == "embedded"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('polcy = "openai"', "there is no setting 'polcy'; did you mean 'policy'?"),
        ("[budgets]\nroundz = 2", "there is no setting 'budgets.roundz'; did you mean 'budgets.rounds'?"),
        ("port = 70000", "the setting 'port' cannot be used"),
        ("port = ", "the settings file cairn.toml cannot be read"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_key_and_the_fix(text: str, sentence: str):
    write(text)
    with pytest.raises(SetupError) as caught:
        load_settings()
    assert sentence in str(caught.value)


def test_a_settings_file_that_is_named_must_be_there():
    with pytest.raises(SetupError, match=r"nowhere\.toml cannot be read"):
        load_settings(Path("nowhere.toml"))


def test_an_unknown_environment_variable_of_ours_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CAIRN_POLICCY", "openai")
    with pytest.raises(SetupError, match="CAIRN_POLICCY is not a setting; did you mean 'CAIRN_POLICY'"):
        load_settings()


def test_an_unknown_flag_is_refused():
    with pytest.raises(SetupError, match="there is no setting 'flavour'"):
        load_settings(flavour="sweet")


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CAIRN_API_KEY", "swordfish")
    settings = load_settings(server_key="swordfish")
    assert "swordfish" not in repr(settings) + settings.model_dump_json()
    assert settings.api_key.get_secret_value() == "swordfish"


def test_a_wrong_value_is_not_repeated_in_the_sentence():
    with pytest.raises(SetupError) as caught:
        load_settings(api_key={"a": "swordfish"})
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize(("value", "wanted"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_environment_can_ask_for_tracebacks(monkeypatch: pytest.MonkeyPatch, value: str, wanted: bool):
    monkeypatch.setenv("CAIRN_DEBUG", value)
    assert wants_debug() is wanted


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        CairnSettings().port = 1


def test_a_key_makes_the_sources_live_and_is_never_printed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CAIRN_TAVILY_KEY", "tvly-very-secret")
    settings = load_settings()
    assert settings.is_live
    assert {*settings.usable} - {"ddgs"} == {"tavily"}
    assert "very-secret" not in repr(settings)
    assert not load_settings(live=False).is_live


def test_limits_and_prices_are_set_by_the_backends_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CAIRN_LIMITS__BRAVE__REQUESTS", "2")
    monkeypatch.setenv("CAIRN_PRICES", '{"tavily": 0.005}')
    settings = load_settings()
    assert settings.limits["brave"].requests == 2
    assert settings.prices == {"tavily": 0.005}


def test_limits_of_a_backend_that_does_not_exist_are_refused_with_the_names_there_are(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("CAIRN_LIMITS__BRAVO__REQUESTS", "2")
    with pytest.raises(SetupError, match="no backend 'bravo'; choose from: tavily"):
        load_settings()


def test_vllm_gets_what_was_set_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    assert load_settings().vllm.arguments == {}
    monkeypatch.setenv("CAIRN_VLLM__MAX_NUM_SEQS", "64")
    monkeypatch.setenv("CAIRN_VLLM__MORE__swap_space", "2")
    found = load_settings(vllm={"gpu_memory_utilization": 0.5}).vllm.arguments
    assert found["max_num_seqs"] == 64
    assert found["gpu_memory_utilization"] == 0.5
    assert {name.lower() for name in found} == {"max_num_seqs", "gpu_memory_utilization", "swap_space"}


def test_a_setting_of_vllm_that_is_spelled_wrong_is_refused():
    with pytest.raises(SetupError, match=r"vllm\.max_num_seq"):
        load_settings(vllm={"max_num_seq": 3})


def test_a_run_that_others_repeat_hears_of_no_environment_and_no_file(monkeypatch: pytest.MonkeyPatch):
    wanted = settings_of(max_runs=3)
    write("port = 1")
    monkeypatch.setenv("CAIRN_BUDGETS__ROUNDS", "1")
    assert load_settings().budgets.rounds == 1
    assert settings_of(max_runs=3).model_dump() == wanted.model_dump()
    with pytest.raises(SetupError, match="no setting"):
        settings_of(no_such_thing=1)
