"""What an agent is compared with: a perfect reader of one passage, plain RAG, and the agent with its gold passages."""

import dataclasses
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.errors import AgentError, SetupError, SourceError
from agent.evidence import Passage
from agent.loop.agent import Agent
from agent.plan import EVERY_SOURCE
from agent.policies.ladder.replies import ask
from agent.policies.openai_policy import OpenAiPolicy
from agent.sources.base import SearchRequest, SearchResult
from agent.trace import Answered, Gathered, Stopped, Timings, Trace, Usage
from agent.world import World
from train.evaluation.gold import TextDocument
from train.evaluation.questions import GoldQuestion
from train.evaluation.respondents import AskFailed, Rollouts
from train.world.reader import first_passage_answer

NO_ENDPOINT: Final = "plain RAG asks a model behind an endpoint; set --policy openai, --base-url and --model"
RAG_PASSAGES: Final = 5
_RAG_TOKENS: Final = 48
_RAG: Final = (
    "Answer the question from the passages in as few words as possible. Write the answer alone.\n\n{passages}\n\n"
    "Question: {question}\nAnswer:"
)


@dataclass
class FirstPassage:
    """Searches the world once, with the question as the query."""

    world: World

    def __post_init__(self) -> None:
        self._planned = {question.id: question for question in self.world.questions}

    async def ask(self, question: GoldQuestion) -> Trace:
        found = [p.model_copy(update={"number": 1}) for p in self.world.find("all", question.question, limit=1)]
        answer = first_passage_answer(self.world, self._planned[question.id])
        return Trace(
            id=f"first-passage-{question.id}",
            question=question.question,
            protocol="",
            policy="first-passage",
            steps=[Gathered(round=1, passages=tuple(found)), Answered(text=answer), Stopped(reason="answered")],
            passages=found,
            usage=Usage(searches=1, rounds=1, passages=len(found)),
        )

    async def aclose(self) -> None:
        """Nothing is held."""


class PlainRag:
    """Searches once with the question, shows a general model the best passages, and takes what it says as it is."""

    def __init__(self, agent: Agent) -> None:
        """Use the model and the sources of an agent.

        Raises:
            SetupError: its policy is no model behind an endpoint.
        """
        if not isinstance(agent.policy, OpenAiPolicy):
            raise SetupError(NO_ENDPOINT)
        self._agent, self._endpoint = agent, agent.policy.endpoint

    async def ask(self, question: GoldQuestion) -> Trace:
        begun = time.monotonic()
        text = question.question
        try:
            found = await self._found(text)
            shown = "\n".join(f"[{each.number}] {each.title}: {each.text}" for each in found)
            prompt = _RAG.format(passages=shown, question=text)
            roles = ("user", "assistant")
            messages = [
                {"role": r, "content": said} for turn in question.history for r, said in zip(roles, turn, strict=True)
            ]
            messages.append({"role": "user", "content": prompt})
            reply = await ask(self._endpoint, messages, max_tokens=_RAG_TOKENS, temperature=0)
        except SourceError as error:
            raise AskFailed("source", str(error)) from error
        except AgentError as error:
            raise AskFailed("engine", str(error)) from error
        return Trace(
            id=f"plain-rag-{question.id}",
            question=text,
            history=question.history,
            protocol="",
            policy=f"plain RAG with {self._endpoint.model}",
            steps=[Gathered(round=1, passages=tuple(found)), Answered(text=reply.text), Stopped(reason="answered")],
            passages=found,
            usage=Usage(searches=1, rounds=1, passages=len(found), policy_tokens=reply.tokens),
            timings=Timings(total=time.monotonic() - begun),
        )

    async def _found(self, query: str) -> list[Passage]:
        found = (await self._agent.sources[EVERY_SOURCE].search(SearchRequest(query, limit=RAG_PASSAGES))).passages
        return [passage.model_copy(update={"number": at}) for at, passage in enumerate(found, start=1)]

    async def aclose(self) -> None:
        await self._agent.aclose()


class GoldGiven:
    """The agent where every search gives the question's gold passages: what is left is reading and reasoning."""

    def __init__(
        self, agent: Agent, documents: Iterable[TextDocument], questions: Iterable[GoldQuestion], *, seed: int
    ) -> None:
        """Pick the gold passages of some questions.

        Args:
            agent: that answers.
            documents: of the corpus.
            questions: with the ids of their gold passages.
            seed: for sampling.

        Raises:
            SetupError: the corpus has no gold passage of any question.
        """
        self._agent, self._seed = agent, seed
        wanted = {key for question in questions for key in question.supporting}
        self._gold: dict[str, list[Passage]] = defaultdict(list)
        for document in documents:
            for key in {document.id, document.id.rpartition("#")[0]} & wanted:
                self._gold[key].append(_passage(document))
        if not self._gold:
            raise SetupError("the corpus has no gold passage of these questions; name it with `supporting` in each one")

    async def ask(self, question: GoldQuestion) -> Trace:
        gold = [passage for key in question.supporting for passage in self._gold.get(key, ())]
        sources = dict.fromkeys(self._agent.sources, _Given(gold))
        return await Rollouts(dataclasses.replace(self._agent, sources=sources), self._seed).ask(question)

    async def aclose(self) -> None:
        await self._agent.aclose()


def _passage(document: TextDocument) -> Passage:
    return Passage(id=document.id, source="corpus", title=document.title, text=document.text, url=document.url)


@dataclass(frozen=True)
class _Given:
    """A source that finds the same for every query, and all of it: the loop cuts what there is no room for."""

    passages: Sequence[Passage]

    async def search(self, request: SearchRequest) -> SearchResult:
        return SearchResult(tuple(self.passages))
