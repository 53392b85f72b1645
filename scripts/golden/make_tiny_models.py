#!/usr/bin/env python3
"""Makes the tiny random models and golden values that the tests of `ragen-model` compare against.

What it is: the one source of `crates/model/tests/fixtures/tiny_*`. Every model is built by
`transformers`, given large random weights from a fixed seed, saved in Hugging Face format, read
back, and evaluated in float32 with eager attention, one sequence at a time (no padding).

What it is not: a test. The format of what it writes is described field by field in
`crates/model/tests/fixtures/README.md`.

    pip install torch transformers safetensors numpy
    python scripts/golden/make_tiny_models.py                 # rewrites all four folders
    python scripts/golden/make_tiny_models.py --only tiny_qwen2 --out /tmp/fixtures
"""

import argparse
import copy
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_OUT = ROOT / "crates" / "model" / "tests" / "fixtures"

SEQUENCE_LENGTHS = (5, 17, 40)
TEMPERATURES = (1.0, 0.7)
ADAMW = {"lr": 1e-2, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.05}
ADAMW_STEPS = 10
MAX_GRAD_NORM = 1.0

COMMON = {
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "attention_dropout": 0.0,
    "use_cache": False,
}


def rope(theta):
    """Rotary parameters in the nested form that transformers 5 reads and writes."""
    return {"rope_type": "default", "rope_theta": theta}


def specifications():
    """Name -> (model class, configuration, seed, how the folder is written)."""
    t = transformers
    return {
        # Head dimension even but no multiple of 16; 3 layers; one float32 file.
        "tiny_llama": (
            t.LlamaForCausalLM,
            t.LlamaConfig(
                vocab_size=101, hidden_size=48, intermediate_size=80, num_hidden_layers=3,
                num_attention_heads=4, num_key_value_heads=2, head_dim=12, rms_norm_eps=1e-5,
                rope_parameters=rope(10000.0), tie_word_embeddings=False, **COMMON,
            ),
            11,
            {},
        ),
        # SmolLM2's shape in small; configuration written the way older checkpoints have it:
        # `rope_theta` and `torch_dtype` at the top level, no `head_dim`.
        "tiny_llama_tied": (
            t.LlamaForCausalLM,
            t.LlamaConfig(
                vocab_size=61, hidden_size=48, intermediate_size=32, num_hidden_layers=2,
                num_attention_heads=3, num_key_value_heads=1, head_dim=16, rms_norm_eps=1e-5,
                rope_parameters=rope(100000.0), tie_word_embeddings=True, **COMMON,
            ),
            12,
            {"legacy_config": True},
        ),
        # Biases on q, k and v; tied; weights stored as bfloat16 (values exact in float32).
        "tiny_qwen2": (
            t.Qwen2ForCausalLM,
            t.Qwen2Config(
                vocab_size=67, hidden_size=32, intermediate_size=44, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-6,
                rope_parameters=rope(1000000.0), tie_word_embeddings=True,
                use_sliding_window=False, **COMMON,
            ),
            13,
            {"dtype": torch.bfloat16},
        ),
        # q_norm and k_norm; head dimension 12, not 32 / 4; untied; two shards with an index.
        "tiny_qwen3": (
            t.Qwen3ForCausalLM,
            t.Qwen3Config(
                vocab_size=73, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, head_dim=12, rms_norm_eps=1e-6,
                rope_parameters=rope(1000000.0), tie_word_embeddings=False,
                attention_bias=False, use_sliding_window=False, **COMMON,
            ),
            14,
            {"max_shard_size": "56KB"},
        ),
    }


def randomise(model, generator, storage_dtype):
    """Fills every parameter in the order of its name: matrices N(0, 0.15²), biases N(0, 0.3²),
    norm weights N(1, 0.2²). Values are rounded to the type they will be stored in."""
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("norm.weight"):
                value = 1.0 + 0.2 * noise
            elif name.endswith(".bias"):
                value = 0.3 * noise
            else:
                value = 0.15 * noise
            parameter.copy_(value.to(storage_dtype).float())


def write_model(model, folder, options):
    """Saves weights and configuration, in the variant asked for."""
    dtype = options.get("dtype", torch.float32)
    stored = copy.deepcopy(model).to(dtype)
    stored.config.dtype = dtype
    kwargs = {}
    if "max_shard_size" in options:
        kwargs["max_shard_size"] = options["max_shard_size"]
    stored.save_pretrained(folder, **kwargs)
    (folder / "generation_config.json").unlink(missing_ok=True)
    config_path = folder / "config.json"
    config = json.loads(config_path.read_text())
    if options.get("legacy_config"):
        config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
        config["rope_scaling"] = None
        config["torch_dtype"] = config.pop("dtype")
        config.pop("head_dim")
    config.pop("transformers_version", None)
    config_path.write_text(json.dumps(config, indent=2) + "\n")


def read_model(folder, dtype=torch.float32):
    """Reads a folder back the way a user of transformers would."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", local_files_only=True
    )
    return model.to(dtype).eval()


def token_scores(model, ids, temperature):
    """log p(ids[i+1] | ids[..=i]) and the entropy (nats) of that distribution, i < len - 1."""
    logits = model(torch.tensor([ids])).logits[0, :-1]
    log_p = torch.log_softmax(logits.double() / temperature, dim=-1)
    targets = torch.tensor(ids[1:])
    log_prob = log_p.gather(1, targets[:, None])[:, 0]
    entropy = -(log_p.exp() * log_p).sum(-1)
    return log_prob, entropy


def loss_of(model, sequences, temperature):
    """L = sum over all predicted tokens of c_i * log_prob_i + e_i * entropy_i."""
    total = torch.zeros((), dtype=torch.float64)
    for sequence in sequences:
        log_prob, entropy = token_scores(model, sequence["ids"], temperature)
        c = torch.tensor(sequence["c"], dtype=torch.float64)
        e = torch.tensor(sequence["e"], dtype=torch.float64)
        total = total + (c * log_prob).sum() + (e * entropy).sum()
    return total


def gradients(model, sequences, temperature):
    """Loss, its gradient by parameter name, and the global gradient norm."""
    model.zero_grad(set_to_none=True)
    loss = loss_of(model, sequences, temperature)
    loss.backward()
    grads = {name: p.grad.detach().clone() for name, p in model.named_parameters()}
    norm = torch.sqrt(sum((g.double() ** 2).sum() for g in grads.values()))
    return loss.item(), grads, norm.item()


def adamw_run(model, sequences):
    """ADAMW_STEPS optimiser steps on the same loss; one parameter group, everything decayed."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=ADAMW["lr"], betas=tuple(ADAMW["betas"]), eps=ADAMW["eps"],
        weight_decay=ADAMW["weight_decay"],
    )
    losses, norms = [], []
    for _ in range(ADAMW_STEPS):
        loss, _, norm = gradients(model, sequences, 1.0)
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        losses.append(loss)
        norms.append(norm)
    final = {name: p.detach().clone() for name, p in model.named_parameters()}
    return losses, norms, final, loss_of(model, sequences, 1.0).item()


def make_sequences(vocab_size, generator):
    """Random ids; the second sequence starts with the first three ids of the first one."""
    sequences = []
    for length in SEQUENCE_LENGTHS:
        ids = torch.randint(3, vocab_size, (length,), generator=generator).tolist()
        if len(sequences) == 1:
            ids[:3] = sequences[0]["ids"][:3]
        # Coefficients have few digits so that they mean the same number in every language.
        c = (torch.randn(length - 1, generator=generator) * 0.5).tolist()
        e = (torch.randn(length - 1, generator=generator) * 0.2).tolist()
        sequences.append({"ids": ids, "c": [round(x, 4) for x in c], "e": [round(x, 4) for x in e]})
    return sequences


def digits(values, n=9):
    """Numbers with n significant digits, so that the files stay small and stable."""
    return [float(f"{x:.{n}g}") for x in values]


def largest_difference(a, b):
    """max |a - b| over two maps of tensors."""
    return max((a[k].double() - b[k].double()).abs().max().item() for k in a)


def make(name, out):
    model_class, config, seed, options = specifications()[name]
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(seed)
    built = model_class(config).float()
    randomise(built, generator, options.get("dtype", torch.float32))
    write_model(built, folder, options)

    model = read_model(folder)
    saved = dict(built.named_parameters())
    for key, value in model.named_parameters():
        assert torch.equal(value, saved[key]), f"{name}: {key} changed on the way through the file"

    sequences = make_sequences(config.vocab_size, generator)
    for sequence in sequences:
        sequence["scores"] = []
        for temperature in TEMPERATURES:
            with torch.no_grad():
                log_prob, entropy = token_scores(model, sequence["ids"], temperature)
            sequence["scores"].append({
                "temperature": temperature,
                "log_prob": digits(log_prob.tolist()),
                "entropy": digits(entropy.tolist()),
            })

    # The same in float64 (transformers keeps parts in float32) to see how large rounding is.
    wide = read_model(folder, torch.float64)
    gradient_entries = []
    for temperature in TEMPERATURES:
        loss, grads, norm = gradients(model, sequences, temperature)
        _, wide_grads, _ = gradients(wide, sequences, temperature)
        entry = {
            "temperature": temperature,
            "loss": loss,
            "norm": norm,
            "norm_per_parameter": {
                k: float(f"{g.double().norm().item():.9g}") for k, g in sorted(grads.items())
            },
            "largest_difference_to_float64": float(f"{largest_difference(grads, wide_grads):.2g}"),
        }
        if temperature == 1.0:
            entry["file"] = "golden_grads.safetensors"
            save_file(grads, folder / entry["file"])
        gradient_entries.append(entry)

    losses, norms, final, final_loss = adamw_run(model, sequences)
    _, _, wide_final, _ = adamw_run(wide, sequences)
    save_file(final, folder / "golden_after_adamw.safetensors")

    golden = {
        "made_with": {"torch": torch.__version__, "transformers": transformers.__version__},
        "seed": seed,
        "sequences": sequences,
        "gradients": gradient_entries,
        "adamw": {
            **ADAMW,
            "max_grad_norm": MAX_GRAD_NORM,
            "steps": ADAMW_STEPS,
            "loss": digits(losses, 10),
            "gradient_norm": digits(norms, 10),
            "loss_after": final_loss,
            "file": "golden_after_adamw.safetensors",
            "largest_difference_to_float64": float(f"{largest_difference(final, wide_final):.2g}"),
        },
    }
    (folder / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    size = sum(f.stat().st_size for f in folder.iterdir())
    entropies = [x for s in sequences for x in s["scores"][0]["entropy"]]
    smallest = min(g["norm_per_parameter"][k] for g in gradient_entries for k in g["norm_per_parameter"])
    print(
        f"{name}: {size} bytes, loss {losses[0]:.6f} -> {final_loss:.6f}, norm {norms[0]:.4f}, "
        f"entropy {min(entropies):.2f}..{max(entropies):.2f}, smallest parameter norm {smallest:.3g}, "
        f"f32-f64: gradient {gradient_entries[0]['largest_difference_to_float64']}, "
        f"parameters {golden['adamw']['largest_difference_to_float64']}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=DEFAULT_OUT)
    parser.add_argument("--only", choices=sorted(specifications()), action="append")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in arguments.only or specifications():
        make(name, arguments.out)


if __name__ == "__main__":
    main()
