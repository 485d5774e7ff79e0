"""What the page says and gets at its own addresses."""

from pydantic import BaseModel, ConfigDict, Field

from agent.rstool import Downstream, EvidenceBundle


class _Said(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class PageFacts(_Said):
    """What a page must know before it can ask."""

    version: str
    policy: str
    protocol: str = Field(description="The one behind the model id `cairn`.")
    models: list[str]
    sources: list[str]
    answer_models: list[str] = Field(description="Other models that may answer from our evidence.")
    notices: list[str] = Field(description="What a person should know before believing an answer.")
    examples: list[str] = Field(description="Questions that can be answered here.")


class AnswerWithRequest(BaseModel):
    """Which other model is to answer from a run's evidence."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(min_length=1, max_length=200)


class RunEvidence(_Said):
    """A run's evidence as RSTool gives it."""

    bundle: EvidenceBundle
    text: str = Field(description="The same for a model to read, labelled as untrusted.")


class RunAnswer(_Said):
    """What another model made of it."""

    downstream: Downstream
