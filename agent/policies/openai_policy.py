"""The policy behind an OpenAI-compatible endpoint, whatever it is: that is looked at once, before the first turn."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from agent.errors import CheckpointError, PolicyError
from agent.outbound.llm import LlmClient
from agent.policies.base import Context, Policy
from agent.policies.hub_form import HubForm, open_hub_form, special_tokens_in
from agent.policies.ladder.choosing import RungWanted, ladder_of
from agent.policies.ladder.moves import can_spell
from agent.policies.ladder.policy import LadderPolicy
from agent.policies.openai_abilities import Abilities, Continuation, Continues, continuation_of, gives_ids, look
from agent.policies.openai_chat import CONTEXT_TOKENS, SOURCES, ChatPolicy
from agent.policies.openai_completions import CompletionsPolicy
from agent.protocols.base import TextProtocol

Kind = Literal["auto", "completions", "chat"]


class OpenAiPolicy:
    """A chat by messages, or token ids through completions. Before `prepare` it is taken to be a chat."""

    def __init__(
        self,
        endpoint: LlmClient,
        *,
        kind: Kind = "auto",
        continues: Continues = "auto",
        tokenizer: str = "",
        marks: Sequence[str] = (),
        sources: Sequence[str] = SOURCES,
        rung: RungWanted = "protocol",
    ) -> None:
        """Take note of an endpoint; nothing is sent yet.

        Args:
            endpoint: of the server.
            kind: `completions` for a model that was trained on the protocol, at a server that takes and gives token
                ids; `chat` for a model whose prompt must hold the rules. `auto`: completions where the server gives ids
                and the model's tokenizer is at hand: named, or in the server's own folder if that is here and the
                tokenizer knows one of `marks`.
            continues: whether the server goes on inside the assistant's turn; `auto` finds out.
            tokenizer: folder of the model in the hub's form, or its name on the hub.
            marks: of the protocol.
            sources: what the instructions say can be searched.
            rung: how a model without training is spoken to, in protocols of our own. `auto`: on the best rung that it
                passes; `protocol`: by the protocol's own instructions.
        """
        self.name = endpoint.model
        self.endpoint = endpoint
        self._kind: Kind = kind
        self._continues: Continues = continues
        self._tokenizer = tokenizer
        self._marks = tuple(marks)
        self._sources = tuple(sources)
        self._preparing = asyncio.Lock()
        self._rung: RungWanted = rung
        self._chosen: ChatPolicy | CompletionsPolicy | None = None
        self._ladder: LadderPolicy | None = None

    def for_protocol(self, protocol: TextProtocol) -> Policy:
        """What speaks a protocol: a general model speaks our own ones on its rung."""
        return self._ladder if self._ladder and can_spell(protocol) else self

    @property
    def chosen(self) -> ChatPolicy | CompletionsPolicy:
        """What the endpoint turned out to be."""
        if self._chosen is None and (self._kind, self._continues, self._rung) == ("chat", "no", "protocol"):
            self._chosen = self._chat(Abilities())  # nothing is left to find out
        return self._chosen or self._chat(Abilities())

    @property
    def context_tokens(self) -> int:
        return self.chosen.context_tokens

    @property
    def continues(self) -> bool:
        return self.chosen.continues

    @property
    def instructed(self) -> bool:
        return self.chosen.instructed

    @property
    def special_tokens(self) -> tuple[str, ...]:
        return self.chosen.special_tokens

    async def prepare(self, *, fresh: bool = False) -> None:
        """Look at the server, the first time; afterwards it does nothing. What fails is tried again the next time.

        Args:
            fresh: a general model takes its exam also where it is remembered how it did.

        Raises:
            PolicyError: there is no server, it refuses the key, or it is not what the settings say.
        """
        async with self._preparing:
            if self._chosen is None:
                self._chosen = await self._look(fresh=fresh)

    @property
    def summary(self) -> str:
        """What is known of the server after `prepare`, for people."""
        context = f"a context of {(self._ladder or self.chosen).context_tokens:,} tokens"
        if isinstance(self._chosen, CompletionsPolicy):
            return f"{context}, and token ids through completions"
        inside = "goes on inside a turn" if self.continues else "begins a new turn each time"
        rung = f"; spoken to on the rung {self._ladder.rungs[0]} ({self._ladder.why})" if self._ladder else ""
        return f"{context}; {inside}{rung}"

    def open(
        self, protocol: TextProtocol, question: str, *, history: Sequence[tuple[str, str]] = (), date: str = ""
    ) -> Context:
        """Open a context, after `prepare`.

        Raises:
            ContextFull: the question is longer than the context.
        """
        return self.chosen.open(protocol, question, history=history, date=date)

    async def probe(self) -> None:
        """Ask the server for its models.

        Raises:
            PolicyError: there is no server, or it refuses the key.
        """
        await self.endpoint.models()

    async def aclose(self) -> None:
        await self.endpoint.aclose()

    async def _look(self, *, fresh: bool) -> ChatPolicy | CompletionsPolicy:
        abilities = await look(self.endpoint)
        if form := await self._form(abilities):
            length = abilities.context_tokens or form.context_tokens
            return CompletionsPolicy(self.endpoint, form.codec, context_tokens=length)
        special = await asyncio.to_thread(special_tokens_in, self._tokenizer or str(abilities.folder or ""))
        if self._rung != "protocol":
            self._ladder = await ladder_of(self.endpoint, abilities, self._rung, special_tokens=special, fresh=fresh)
        return self._chat(abilities, await continuation_of(self.endpoint, abilities, self._continues), special)

    def _chat(
        self, abilities: Abilities, continuation: Continuation | None = None, special: tuple[str, ...] = ()
    ) -> ChatPolicy:
        return ChatPolicy(
            self.endpoint,
            sources=self._sources,
            context_tokens=abilities.context_tokens or CONTEXT_TOKENS,
            continuation=continuation,
            special_tokens=special,
        )

    async def _form(self, abilities: Abilities) -> HubForm | None:
        """The model's tokenizer, if ids are to go through completions; None for a chat."""
        if self._kind == "chat":
            return None
        named = self._tokenizer or str(abilities.folder or "")
        if not named and self._kind == "completions":
            raise PolicyError(
                f"the tokenizer of {self.name} is not known: name the model's folder, or its name on the hub, "
                "with --tokenizer, or set endpoint to chat"
            )
        form = await asyncio.to_thread(self._open_form, named) if named else None
        if form is None:
            return None
        if await gives_ids(self.endpoint):
            return form
        if self._kind == "completions" and abilities.others:
            raise PolicyError(
                f"the server at {self.endpoint.base_url} does not list {self.name!r} among its models; set --model to "
                f"one of them, such as {', '.join(abilities.others[:3])}"
            )
        if self._kind == "completions":
            raise PolicyError(
                f"the server at {self.endpoint.base_url} gives no token ids through completions, as vLLM's does; "
                "set endpoint to chat"
            )
        return None

    def _open_form(self, named: str) -> HubForm | None:
        """Read the tokenizer; one that was not requested is left where the model knows none of the protocol's marks."""
        wanted = bool(self._tokenizer) or self._kind == "completions"
        try:
            form = open_hub_form(named, weights=False)
        except CheckpointError as error:
            if wanted:
                raise PolicyError(f"the tokenizer cannot be used: {error}") from error
            return None
        return form if wanted or any(form.codec.id_of(mark) is not None for mark in self._marks) else None
