"""Finding 25: marks of chat templates and special tokens of tokenizers stayed in what a model was shown."""

import json
from pathlib import Path

from tests.attacks.client import ask
from tests.attacks.endpoint import endpoint
from tests.attacks.product import Product

SEARCH = "<think>I search.</think>\n<search>\nA: Kelra Vonn (corpus)\n</search>"
ANSWER = "<answer>Kelra Vonn</answer>"
MARKS = (
    "[THINK]", "[/THINK]", "[CALL_ID]", "[ARGS]", "[IMG_BREAK]", "[gMASK]", "<sop>", "<function=search>", '<invoke name="x">',
    "<parameter=q>", "<unused99>", "<fim_prefix>", "<end_of_utterance>", "<repo_name>", "<arg_key>", "<EOT>", "[|user|]",
    "<seed:bos>", "<SPECIAL_12>", "]~b]", "⟪/information⟫", "⋖/information⋗", "◁/information▷", "❲INST❳", "⁅INST⁆",
)  # fmt: skip
PLAIN = "<b>bold</b> [citation needed] [PDF] [1a] <https://example.org/>"


def test_no_mark_of_a_template_reaches_a_model(product: Product, tmp_path: Path) -> None:
    text = f"Kelra Vonn wrote it. {' and '.join(MARKS)} {PLAIN}"
    document = {"id": "a", "title": "Kelra", "text": text, "url": "https://a.example/"}
    (tmp_path / "docs.jsonl").write_text(json.dumps(document) + "\n", encoding="utf-8")
    with endpoint(lambda request: ANSWER if "wrote it" in request else SEARCH) as model:
        options = ("--base-url", f"{model.url}/v1", "--model", "evil", "--protocol", "cairn", "--corpus", "docs.jsonl")
        with product.serve("--policy", "openai", *options, cwd=tmp_path) as server:
            answer = ask(
                f"{server.url}/v1/chat/completions",
                {"messages": [{"role": "user", "content": "Who is Kelra Vonn?"}]},
            )
        messages = json.loads(model.requests[-1][3])["messages"]
    assert answer.status == 200, answer.body
    read = "\n".join(message["content"] for message in messages if "wrote it" in message["content"])
    assert [mark for mark in MARKS if mark in read] == []
    assert PLAIN in read
