from pathlib import Path

import pytest

from agent.errors import SetupError
from agent.protocols import load_protocol, profile_names, protocol_named, protocol_names
from train.checkpoints.export import as_toml, put_beside

PAPERS = sorted((Path(__file__).parents[3] / "train" / "recipes" / "papers").glob("*.protocol.toml"))


@pytest.mark.parametrize("name", [*protocol_names(), *profile_names()])
def test_a_protocol_is_the_same_after_it_was_written_and_read(name: str, tmp_path: Path) -> None:
    protocol = protocol_named(name).model_copy(update={"description": 'A "name" \\ in\ttabs,\nüñí🙂 and \x7f.'})
    path = tmp_path / "own.toml"
    path.write_text(as_toml(protocol), encoding="utf-8")
    assert load_protocol(path) == protocol


def test_files_are_put_beside_a_checkpoint_with_their_texts_and_names_stay_names(tmp_path: Path) -> None:
    assert len(PAPERS) == 5
    said = [*map(str, PAPERS), "cairn"]
    assert put_beside(tmp_path, said) == ("dag", "evidence", "kg", "multisearch", "reflect", "cairn")
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["dag", "evidence", "kg", "multisearch", "reflect"]
    for path in PAPERS:
        protocol = load_protocol(path)
        assert protocol.system
        assert load_protocol(tmp_path / f"{protocol.name}.toml") == protocol


def test_a_file_that_is_no_protocol_or_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"none\.toml cannot be used"):
        put_beside(tmp_path, [str(tmp_path / "none.toml")])
    path = tmp_path / "far.toml"
    path.write_text(as_toml(protocol_named("dag").model_copy(update={"name": "../far"})), encoding="utf-8")
    with pytest.raises(SetupError, match=r"'\.\./far', which no file can be"):
        put_beside(tmp_path, [str(path)])
