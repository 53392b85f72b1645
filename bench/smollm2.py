"""The model that all comparisons run: SmolLM2-135M, its real weights or only its shape.

What it is: one loader for the scripts beside it, so that each of them measures the same float32
model. What it is not: a benchmark.

    python bench/smollm2.py MODEL OUT      # writes MODEL as a Hugging Face folder in float32
"""

import json
import os
import pathlib
import resource
import sys

# SmolLM2-135M as its `config.json` has it.
SHAPE = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
}
ROPE_THETA = 100000.0


def set_threads(threads):
    """Call before torch is imported: OpenMP and MKL read these when they start."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    torch.set_num_threads(threads)


def load_model(path):
    """A float32 causal language model on the CPU.

    `path`: a `.gguf` file, a Hugging Face folder, or None for random weights of SmolLM2's shape.
    """
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    if path is None:
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            **SHAPE, rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA}
        )
        return transformers.LlamaForCausalLM(config).float()
    path = pathlib.Path(path)
    if path.suffix != ".gguf":
        return transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, local_files_only=True
        )
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, local_files_only=True
    )
    # The loader marks the model as quantised although its weights are plain float32 by now, and
    # such a model can be neither trained nor saved. A fresh one with the same weights can.
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = type(loaded)(config).float()
    model.load_state_dict(loaded.state_dict())
    model.tie_weights()
    return model


def load_tokenizer(path):
    """The tokenizer that belongs to `path`; None for random weights."""
    import transformers

    if path is None:
        return None
    path = pathlib.Path(path)
    if path.suffix == ".gguf":
        return transformers.AutoTokenizer.from_pretrained(
            path.parent, gguf_file=path.name, local_files_only=True
        )
    return transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)


def peak_rss_bytes():
    """Largest resident set of this process so far (Linux reports kibibytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def emit(**fields):
    """One JSON object on one line, flushed, so that a reader sees each step as it ends."""
    print(json.dumps(fields), flush=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    set_threads(2)
    load_model(sys.argv[1]).save_pretrained(sys.argv[2])
    load_tokenizer(sys.argv[1]).save_pretrained(sys.argv[2])


if __name__ == "__main__":
    main()
