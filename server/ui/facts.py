"""What the page says and gets at its own addresses."""

from pydantic import BaseModel, ConfigDict, Field

from agent.rstool import Downstream, EvidenceBundle
from agent.sanitize.strict import Strict


class _Said(BaseModel):
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class LocalModels(_Said):
    """A model server that runs on the machine of this one."""

    server: str = Field(description="What it is, for example Ollama.")
    base_url: str
    models: list[str]
    command: str = Field(description="Serves Cairn with the first of these models.")


class PageFacts(_Said):
    """What a page must know before it can ask."""

    version: str
    policy: str
    protocol: str = Field(description="The one behind the model id `cairn`.")
    models: list[str]
    sources: list[str]
    answer_models: list[str] = Field(description="Other models that may answer from our evidence.")
    notices: list[str] = Field(description="What a person should know before believing an answer.")
    settings: bool = Field(description="Whether keys, sources and the model can be set here.")
    libraries: bool = Field(description="Whether files can be uploaded.")
    suffixes: list[str] = Field(description="Of the files that are read.")
    file_bytes: int = Field(description="A larger file is refused.")
    examples: list[str] = Field(description="Questions that can be answered here.")
    local_models: list[LocalModels] = Field(
        description="What could write instead; empty where a model is connected, or other machines are served."
    )


class AnswerWithRequest(Strict):
    """Which other model is to answer from a run's evidence."""

    model: str = Field(min_length=1, max_length=200)


class RunEvidence(_Said):
    """A run's evidence as RSTool gives it."""

    bundle: EvidenceBundle
    text: str = Field(description="The same for a model to read, labelled as untrusted.")


class RunAnswer(_Said):
    """What another model made of it."""

    downstream: Downstream
