"""The published forms that are known, how each is recognised, and what a file of it looks like."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ConfigDict

from agent.sources.questions import GoldQuestion
from train.evaluation.datasets.base import AnswerAliases, PublishedQuestion, Row
from train.evaluation.datasets.multihop import Hotpot, MoreHop, Musique, TwoWiki
from train.evaluation.datasets.open_domain import (
    Bamboogle,
    ChoiceRow,
    FlashRag,
    FramesRow,
    NaturalQuestions,
    PopQa,
    TriviaQa,
    is_choice,
)


class CairnQuestion(PublishedQuestion):
    """The project's own question list; checked where it is read, field by field."""

    model_config = ConfigDict(extra="allow")

    def to_question(self, number: int, beside: AnswerAliases) -> GoldQuestion:
        return GoldQuestion.model_validate(self.model_extra)


@dataclass(frozen=True, slots=True)
class Format:
    """One published form."""

    name: str
    label: str
    expects: str
    """What a file of it looks like, in a few words."""
    row: type[PublishedQuestion]
    fits: Callable[[Row], bool]


def _has(*names: str, without: tuple[str, ...] = ()) -> Callable[[Row], bool]:
    return lambda row: row.keys() >= set(names) and not row.keys() & set(without)


def _is_nq(row: Row) -> bool:
    answer = row.get("answer_and_def_correct_predictions", row.get("answer"))
    return "question" in row and (isinstance(answer, list | tuple) or isinstance(row.get("answers"), str))


def _is_trivia(row: Row) -> bool:
    return isinstance(row.get("Answer", row.get("answer")), Mapping) and bool(
        {"QuestionId", "question_id"} & row.keys()
    )


_ALL: Final = (
    Format(
        "2wikimultihopqa",
        "2WikiMultiHopQA",
        'train.json or dev.json: a list of {"_id", "type", "question", "answer", "supporting_facts", "context", '
        '"evidences", "answer_id"}; id_aliases.json beside it adds the other names of answers',
        TwoWiki,
        _has("question", "answer", "context", "evidences"),
    ),
    Format(
        "hotpotqa",
        "HotpotQA",
        'hotpot_dev_distractor_v1.json: a list of {"_id", "question", "answer", "type", "supporting_facts": [[title, '
        'sentence]], "context": [[title, [sentences]]]}',
        Hotpot,
        _has("question", "answer", "supporting_facts", without=("previous_question",)),
    ),
    Format(
        "musique",
        "MuSiQue",
        'musique_ans_v1.0_dev.jsonl: lines of {"id", "question", "answer", "answer_aliases", "answerable", '
        '"paragraphs": [{"title", "paragraph_text", "is_supporting"}]}',
        Musique,
        _has("question", "paragraphs"),
    ),
    Format(
        "morehopqa",
        "MoreHopQA",
        'morehopqa_final.json: a list of {"_id", "question", "answer", "previous_question", "no_of_hops", '
        '"question_decomposition", "context"}',
        MoreHop,
        _has("question", "answer", "previous_question", "no_of_hops"),
    ),
    Format(
        "triviaqa",
        "TriviaQA",
        'unfiltered-web-dev.json: {"Data": [{"QuestionId", "Question", "Answer": {"Value", "Aliases", '
        '"NormalizedAliases"}}]}',
        TriviaQa,
        _is_trivia,
    ),
    Format(
        "popqa",
        "PopQA",
        "popQA.tsv: a table with the columns id, question, possible_answers (a JSON list), prop",
        PopQa,
        _has("question", "possible_answers"),
    ),
    Format(
        "frames",
        "FRAMES",
        "test.tsv: a table with the columns Prompt, Answer, reasoning_types, wiki_links",
        FramesRow,
        _has("Prompt", "Answer"),
    ),
    Format(
        "bamboogle", "Bamboogle", "a table with the columns Question, Answer", Bamboogle, _has("Question", "Answer")
    ),
    Format(
        "flashrag",
        "FlashRAG or Search-R1",
        'test.jsonl: lines of {"id", "question", "golden_answers": ["…"], "metadata"?}',
        FlashRag,
        _has("question", "golden_answers"),
    ),
    Format(
        "choice",
        "multiple choice",
        "MMLU's tables (question, A, B, C, D, answer), or lines of {question, choices or options, answerKey or answer}"
        " as in ARC, CommonsenseQA, OpenBookQA, MMLU-Pro and MedQA",
        ChoiceRow,
        is_choice,
    ),
    Format(
        "nq",
        "Natural Questions",
        'NQ-open.dev.jsonl: lines of {"question", "answer": ["…"]}, or DPR\'s table of questions and lists of answers',
        NaturalQuestions,
        _is_nq,
    ),
    Format(
        "cairn",
        "the project's own",
        'lines of {"id", "question", "answers": ["…"], "supporting"?, "titles"?, "hops"?, "type"?, "options"?, '
        '"unanswerable"?}',
        CairnQuestion,
        lambda row: "question" in row and bool({"id", "answers"} & row.keys()),
    ),
)

FORMATS: Final[Mapping[str, Format]] = {form.name: form for form in _ALL}
"""By name, in the order in which a file is tried."""


def recognised(row: Row) -> Format | None:
    return next((form for form in FORMATS.values() if form.fits(row)), None)
