import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.evaluation.extract import short_answer, without_reasoning


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>Hm.</think>\nTrieste", "Trieste"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("<Thinking>\nwell\n</thinking> Trieste", "Trieste"),
        ("I wonder.</think>Trieste", "Trieste"),
        ("<think>it never ends <answer>Trieste</answer>", ""),
        ("I think that <b> is bold", "I think that <b> is bold"),
    ],
)
def test_reasoning_is_taken_out(text: str, rest: str):
    assert without_reasoning(text) == rest


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Trieste", "Trieste"),
        ("She was born there [1].\n<answer> Trieste </answer>", "Trieste"),
        ("<answer>Rome</answer> no: <answer>Trieste</answer>", "Trieste"),
        ("so <answer>Trieste", "Trieste"),
        (r"Hence \boxed{\text{Trieste}}.", "Trieste"),
        ("Let me see.\n**Final answer:** Trieste", "Trieste"),
        ("The answer is: Trieste", "Trieste"),
        ("Answer: Rome\nAnswer: Trieste\n\n", "Trieste"),
        ("Answer: Rome\nor rather not", "Answer: Rome\nor rather not"),
        ("Trieste [1][2]", "Trieste"),
        ("Trieste [1, 3].", "Trieste."),
        ("Trieste 【4†source】", "Trieste"),
        ("**Trieste** ([town](https://a.b/c_(d)))", "Trieste (town)"),
        ("Trieste [2](https://a.b/c)", "Trieste"),
        ("[Trieste](https://a.b/c)", "Trieste"),
        ("<answer>[1]</answer>", ""),
        ("<answer></answer>", ""),
        ("B[e]", "B[e]"),
        ("array[10000]", "array[10000]"),
    ],
)
def test_the_short_answer_is_found(said: str, answer: str):
    assert short_answer(said) == answer


@given(st.text(alphabet="ab <>/answer[]()*1", max_size=60))
def test_whatever_is_said_there_is_an_answer_that_stands_in_it(said: str):
    answer = short_answer(without_reasoning(said))
    assert len(answer) <= len(said)
    assert set(answer) <= set(said)


@given(st.text(alphabet="abc -é", min_size=1, max_size=20))
def test_a_plain_answer_stays_as_it_is(answer: str):
    assert short_answer(f"I looked. [1]\n<answer>{answer}</answer>") == answer.strip()
