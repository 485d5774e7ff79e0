"""Tables here are worked by hand for a model of round numbers."""

import pytest

pytest.importorskip("torch")

from agent.errors import SetupError
from lab.plan.machines import Gpu, gpu_named
from lab.plan.memory import GIB, GpuMemory, RowLoad, host_bytes, rollouts_that_fit, server_memory, trainer_memory
from lab.plan.scale import Efficiency, Rollouts, Scale, Server, Trainer
from lab.plan.shapes import Shape
from lab.plan.times import StepWork, step_spans

pytestmark = pytest.mark.train

# width 1000, inner 2000: a layer has 2 x 1000 x 1000 (queries, output) + 2 x 1000 x 500 + 3 x 1000 x 2000 + 2000 weights
SHAPE = Shape(width=1000, inner=2000, layers=10, heads=10, kv_heads=5, head_dim=100, vocabulary=20_000, tied=True)
LAYER = 2_000_000 + 1_000_000 + 6_000_000 + 2_000
WEIGHTS = 10 * LAYER + 20_000_000 + 1_000
GPU = Gpu(memory=10e9, flops=1e12, bandwidth=1e11, link=1e10)
PLAIN = Efficiency(
    train=0.5, train_offloaded=0.25, prefill=0.5, decode=0.5, tail=2.0, handover=1e9, spare=0.1, context_gib=1.0
)


def lines(memory: GpuMemory) -> dict[str, float]:
    return {line.what: line.bytes for line in memory.lines}


def memory(
    trainer: Trainer, *, reference: int = 4, critic: bool = False, checkpointing: bool = True, rows: int = 2
) -> GpuMemory:
    return trainer_memory(
        SHAPE,
        RowLoad(rows=rows, row_tokens=100, logit_tokens=50),
        GPU,
        trainer,
        PLAIN,
        reference=reference,
        critic=critic,
        checkpointing=checkpointing,
    )


def test_the_weights_are_counted() -> None:
    assert SHAPE.layer_parameters == LAYER
    assert SHAPE.parameters == WEIGHTS
    assert SHAPE.cache_bytes == 2 * 2 * 10 * 500


def test_sharded_memory_equals_the_table() -> None:
    found = lines(memory(Trainer(gpus=4, sharded=True)))
    assert found["policy: weights"] == found["policy: gradients"] == found["reference"] == WEIGHTS
    assert found["policy: moments"] == 2 * WEIGHTS
    assert found["weights that are gathered"] == 4 * LAYER + 4 * 20_000_000
    assert found["activations: inputs of layers"] == 4 * 200 * 1000 * 10
    # of one token: norms and copies 26 x 1000, queries, keys, values 2 x 2000, output 2 x 1000, 4 x 10, inner 8 x 2000
    assert found["activations: one layer"] == 200 * (26_000 + 4_000 + 2_000 + 40 + 16_000)
    assert found["logits and the gradient of the head"] == 4 * 20_000 * 1000 + 4096 * 32768 * 2
    assert (found["CUDA and NCCL"], found["fragments"]) == (GIB, 1e9)


def test_offloaded_states_lie_on_the_host() -> None:
    there = Trainer(gpus=4, sharded=True, offload=True)
    found = lines(memory(there))
    assert found["policy: weights"] == found["policy: moments"] == found["reference"] == 0
    assert host_bytes(SHAPE, there, reference=4) == (there.gpus * (4 + 4) + 16 + 4) * WEIGHTS
    assert host_bytes(SHAPE, Trainer(), reference=4) == (4 + 4) * WEIGHTS


def test_a_critic_is_a_second_model_and_its_policy_holds_logits() -> None:
    found = lines(memory(Trainer(), reference=2, critic=True))
    assert found["critic: moments"] == found["policy: moments"] == 8 * WEIGHTS
    assert found["reference"] == 2 * WEIGHTS
    assert found["logits"] == 14 * 20_000 * 2 * 50
    assert "weights that are gathered" not in found


def test_more_rows_need_more_and_checkpointing_less() -> None:
    one = Trainer()
    assert memory(one, rows=4).bytes > memory(one, rows=2).bytes > memory(one, rows=2, reference=0).bytes
    assert memory(one, checkpointing=False).bytes > memory(one).bytes


SCALE = Scale(
    gpu="A100-80G",
    server=Server(gpus=2, gpu_memory_utilization=0.5, max_model_len=1000, max_num_seqs=4),
    rollouts=Rollouts(
        prompt_tokens=100, policy_tokens=50, environment_tokens=150, searches=2, search_seconds=0.5, reward_seconds=3
    ),
    efficiency=PLAIN,
)


def test_the_server_has_what_its_weights_leave() -> None:
    found = lines(server_memory(SHAPE, SCALE, GPU))
    assert found["weights"] == WEIGHTS
    assert found["keys and values"] == 5e9 - WEIGHTS - 2 * GIB
    assert rollouts_that_fit(SHAPE, SCALE, GPU, tokens=300) == int(2 * (5e9 - WEIGHTS - 2 * GIB) / (20_000 * 300))


def test_the_time_of_a_step_equals_the_table() -> None:
    work = StepWork(rollouts=10, prompts=5, micro_batches=3, epochs=2, reads=1, critic=False, checkpointing=True)
    spans = step_spans(SHAPE, SCALE, GPU, Trainer(gpus=2, sharded=True), work, at_once=100)
    found = {span.what: span.seconds for span in spans}
    assert found["weights to vLLM"] == 2 * WEIGHTS / 1e9
    # 4 at once: the weights and 4 x 275 tokens of keys and values for each token, over 2 GPUs at half of their bandwidth;
    # or the arithmetic, which takes longer here: 4 x 2 weights over 2 x 1e12 / 2
    token = max((2 * WEIGHTS + 4 * 275 * 20_000) / 1e11, 4 * 2 * WEIGHTS / 1e12)
    assert found["sampling"] == pytest.approx(10 * 50 / 4 * token * 2.0)
    assert found["reading"] == pytest.approx(2 * WEIGHTS * (10 * 150 + 5 * 100) / 1e12)
    assert found["searches that nothing hides"] == 2 * 0.5 * 3
    assert found["reward"] == 3
    forward = 2 * WEIGHTS + 2 * 10 * 1000 * 300
    assert found["learning"] == pytest.approx(4 * 2 * forward * 3000 / 1e12)
    assert found["reading for it"] == pytest.approx(forward * 3000 / 1e12)
    # a piece is gathered 3 times a pass and once to be read, and its gradients are scattered: 3 x (2 x 3 + 1) + 3 x 2
    assert found["gathering weights"] == pytest.approx(2 * WEIGHTS * 27 / 2 / 1e10)


def test_a_gpu_without_figures_is_refused() -> None:
    with pytest.raises(SetupError, match="there are: A100-80G"):
        gpu_named("TPU")
