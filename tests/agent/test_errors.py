"""What a user got wrong, as a sentence."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.errors import PolicyError, SetupError, first_of, nearest, wrong_fields


class Part(BaseModel):
    least: int = Field(default=0, ge=0)
    most: int = 9

    @model_validator(mode="after")
    def _in_order(self) -> "Part":
        if self.least > self.most:
            raise ValueError(f"at least {self.least} cannot be at most {self.most}")
        return self


class Whole(BaseModel):
    parts: list[Part]
    name: str


def refused(kind: type[BaseModel], said: object) -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        kind.model_validate(said)
    return raised.value


def test_each_thing_that_is_wrong_is_reported_with_its_place():
    error = refused(Whole, {"parts": [{}, {"least": -1}]})
    assert wrong_fields(error) == "parts.1.least: Input should be greater than or equal to 0; name: it is missing"
    assert wrong_fields(error, most=1) == "parts.1.least: Input should be greater than or equal to 0; and 1 more"


def test_what_is_wrong_with_everything_together_has_the_place_that_it_is_given():
    error = refused(Part, {"least": 5, "most": 4})
    assert wrong_fields(error) == "at least 5 cannot be at most 4"
    assert wrong_fields(error, whole="the line") == "the line: at least 5 cannot be at most 4"


def test_what_was_given_is_not_repeated():
    assert "secret" not in wrong_fields(refused(Part, {"least": "secret"}))


@pytest.mark.parametrize(
    ("name", "hint"), [("nws", "; did you mean 'news'?"), ("wbe", "; did you mean 'web'?"), ("mars", "")]
)
def test_an_unknown_name_is_reported_with_the_nearest_known_one(name: str, hint: str):
    assert nearest(name, ["web", "news", "arxiv"]) == hint


def test_a_misspelt_field_is_held_against_those_that_are_missing():
    class Group(BaseModel):
        model_config = ConfigDict(extra="forbid")
        group: int

    assert wrong_fields(refused(Group, {"grop": 8})) == (
        "grop: there is no such field; did you mean 'group'?; group: it is missing"
    )


def test_the_first_error_of_a_kind_is_found_in_groups_of_groups():
    wanted = SetupError("wanted")
    other = ExceptionGroup("", [ValueError("first"), ExceptionGroup("", [wanted, SetupError("second")])])
    assert first_of(other, SetupError) is wanted
    assert first_of(other, PolicyError) is other
