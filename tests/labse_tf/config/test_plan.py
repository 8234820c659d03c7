"""Plans: weights as built, memory and operations by hand, remedies that help."""

from __future__ import annotations

import dataclasses

import pytest
from repository import ROOT

from labse_tf.cli.main import main
from labse_tf.config import EncoderConfig, load_config
from labse_tf.config.devices import find_device
from labse_tf.config.plan import count_weights, make_plan
from labse_tf.errors import InputError

BASE = str(ROOT / "configs" / "labse_base.yaml")
PAPER = load_config(BASE)
SMALL = EncoderConfig(
    vocab_size=50, hidden_size=8, num_attention_heads=2, intermediate_size=12, max_positions=16
)


def plan_of(*overrides, device="tpu-v3", replicas=32, sections=("train",), **options):
    config = load_config(BASE, list(overrides))
    return make_plan(config, find_device(device), replicas=replicas, sections=sections, **options)


def test_weights_are_those_that_are_built():
    from labse_tf.model.encoder import build_encoder
    from labse_tf.model.mlm_head import build_mlm_head, trained_variables

    for layers in (0, 1, 2):
        built = build_encoder(dataclasses.replace(SMALL, num_layers=layers))
        table, others = count_weights(SMALL, layers)
        assert table == built.get_embedding_table().numpy().size == 400
        assert table + others == sum(one.numpy().size for one in built.trainable_variables)
    built = trained_variables(built, build_mlm_head(SMALL, built))
    pretrain = dataclasses.replace(PAPER.pretrain, batch_size=1, stage_steps=[1])
    encoder = dataclasses.replace(SMALL, num_layers=2)
    config = dataclasses.replace(PAPER, encoder=encoder, pretrain=pretrain)
    [stage] = make_plan(config, find_device("tpu-v3"), sections=["pretrain"]).stages
    # A float32 is four bytes.
    assert stage.memory.weights / 4 == sum(one.numpy().size for one in built)


def test_the_papers_step_on_a_core_of_a_tpu_v3():
    """4,096 pairs of 128 tokens on 32 cores; docs/scaling.md works it out."""
    [stage] = plan_of().stages
    memory = stage.memory
    # 501,153 rows of 768, and 85,646,592 other weights + 590,592 of the pooler.
    weights = 501_153 * 768 + 12 * 7_087_872 + 514 * 768 + 2 * 768 + 590_592
    assert memory.weights == memory.gradients == 4 * weights
    assert memory.optimizer == 8 * weights
    # 34 bytes a column, and 5 a head and token attended to; 12 layers, 2 x 128 x 128 tokens.
    assert memory.activations == (34 * 768 + 5 * 12 * 128) * 12 * 32_768
    # 2 x 4,096 vectors and their gradients; 128 x 4,096 similarities each way, thrice.
    assert memory.loss == 4 * (2 * 2 * 4096 * 768 + 3 * 2 * 128 * 4096)
    assert memory.total == pytest.approx(20.9e9, abs=0.05e9) and stage.remedy
    # 6 for each of 84,934,656 weights of matrices, 12 for each column and token attended to.
    operations = (6 * 84_934_656 + 12 * 12 * 128 * 768) * 32_768
    assert stage.operations == operations == pytest.approx(17.2e12, abs=0.05e12)
    assert stage.steps_per_second == pytest.approx(0.4 * 61.5e12 / operations)
    assert plan_of().days == pytest.approx(50_000 * operations / (0.4 * 61.5e12) / 86_400)


def test_the_largest_chunk_that_fits_is_proposed():
    [whole] = plan_of().stages
    assert whole.remedy == "add --set train.chunk_size=32"
    for chunk in (16, 32, 64):
        [stage] = plan_of(f"train.chunk_size={chunk}").stages
        assert (stage.remedy is None) == (chunk <= 32)
        # One more forward pass: 8 of 6 operations.
        assert stage.operations == pytest.approx(whole.operations * 4 / 3)
    # The divisors of 100 are 1, 2, 4, 5, 10, 20, 25 and 50.
    sizes = ("train.batch_size=3200", "train.bucket_lengths=[160]")
    assert plan_of(*sizes).stages[0].remedy == "add --set train.chunk_size=25"
    assert not plan_of(*sizes, "train.chunk_size=25").stages[0].remedy
    assert plan_of(*sizes, "train.chunk_size=50").stages[0].remedy
    # Layers that are computed again keep 12 inputs of 768 16-bit numbers a token, and one layer.
    [stage] = plan_of("compute.rematerialize=true").stages
    inputs, layer = 12 * 2 * 768, 34 * 768 + 5 * 12 * 128
    assert stage.memory.activations == (inputs + layer) * 32_768 and not stage.remedy
    assert stage.operations == pytest.approx(whole.operations * 4 / 3)
    # The gradient cache's first pass keeps nothing, so that chunks add one pass more.
    [both] = plan_of("compute.rematerialize=true", "train.chunk_size=32").stages
    assert both.operations == pytest.approx(whole.operations * 5 / 3)


def test_chunks_and_a_sampled_softmax_of_pre_training():
    options = {"replicas": 512, "sections": ["pretrain"]}
    whole = plan_of(**options).stages[-1]
    half = plan_of("pretrain.chunk_size=8", **options).stages[-1]
    assert whole.phase.local == 16
    assert half.memory.activations == whole.memory.activations / 2
    assert half.memory.loss == whole.memory.loss / 2
    # No pass more: only the gradient cache has two.
    assert half.operations == whole.operations
    assert whole.remedy == "add --set pretrain.chunk_size=8" and not half.remedy
    # On a GPU, sampling saves the table's gradient, too.
    options["device"], sampled = "h100", "pretrain.sampled_softmax=8192"
    whole, less = plan_of(**options).stages[-1], plan_of(sampled, **options).stages[-1]
    assert less.memory.loss == pytest.approx(whole.memory.loss * 8192 / 501_153)
    assert whole.memory.gradients > 4 * 501_153 * 768 > less.memory.gradients


@pytest.mark.parametrize(
    ("overrides", "options", "problem"),
    [
        ([], {"replicas": 3}, "4096 cannot be split evenly over 3 replicas"),
        ([], {"replicas": 0}, "--replicas is 0"),
        ([], {"device": "abacus"}, "no device 'abacus'"),
        (["train.chunk_size=24"], {}, "a replica's batch of 128 does not split into chunks of 24"),
        (["compute.precision=bfloat16"], {"device": "t4"}, "does not compute"),
        (["encoder.network=bilstm", "encoder.hidden_size=24"], {}, "'encoder.network'"),
        (["train.joint=true"], {}, "'train.joint'"),
        (["encoder.num_layers=0", "encoder.subwords=[2]"], {}, "'encoder.subwords'"),
    ],
)
def test_what_cannot_be_planned(overrides, options, problem):
    with pytest.raises(InputError, match=problem):
        plan_of(*overrides, **options)


def test_the_command(capsys, vocab_file):
    command = ["plan", BASE, "--device", "tpu-v3", "--replicas", "512"]
    assert main([*command, "--only", "pretrain"]) == 0
    shown = capsys.readouterr().out
    for number, layers in enumerate((3, 6, 12), start=1):
        assert f"pretrain, stage {number} of 3: {layers} layers" in shown
    assert "12 layers, 1,800,000 steps of 8,192 sequences" in shown
    # This machine, a vocabulary, no layers.
    config = str(ROOT / "configs" / "tiny.yaml")
    assert main(["plan", config]) == 2
    assert "add --set encoder.vocab_size=N" in capsys.readouterr().err
    assert main(["plan", config, "--set", f"tokenizer.vocab_file={vocab_file}"]) == 0
    assert "1 x cpu" in capsys.readouterr().out
    config = str(ROOT / "configs" / "static.yaml")
    sets = ["--set", "encoder.vocab_size=1000", "--set", "encoder.subwords=[]"]
    assert main(["plan", config, *sets]) == 0
    shown = capsys.readouterr().out
    assert "try a few steps" in shown and "in all:" not in shown
