#!/usr/bin/env python3
"""llama.cpp through its Python bindings: prefill and decode speed at batch 1, 16 and 64.

Prompts of 170 tokens, 60 decode steps, random ids fed in place of sampled ones (so no sampling is
timed, in its favour), every sequence prefilled on its own. For each decode step all sequences are
decoded together in one call, and logits are made for each. One JSON line per file and batch size.

Named so that it does not hide the module `llama_cpp` that it imports.

    pip install llama-cpp-python          # compiles llama.cpp: needs cmake and a C++ compiler
    pip install gguf && python bench/gguf_to_f32.py SmolLM2-135M-Instruct.Q4_1.gguf smollm2-f32.gguf
    python bench/llama_cpp_decode.py smollm2-f32.gguf SmolLM2-135M-Instruct.Q4_1.gguf
"""

import argparse
import json
import random
import resource
import sys
import time

CONTEXT_MULTIPLE = 256  # llama.cpp rounds the context of a sequence up to this


def fill(batch, entries):
    """Puts (token, position, sequence, wants logits) into a llama_batch."""
    batch.n_tokens = len(entries)
    for i, (token, position, sequence, wants_logits) in enumerate(entries):
        batch.token[i] = token
        batch.pos[i] = position
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = sequence
        batch.logits[i] = wants_logits


def decode(llama_cpp, context, batch, entries):
    fill(batch, entries)
    status = llama_cpp.llama_decode(context, batch)
    if status != 0:
        sys.exit(f"llama_decode returned {status} for {len(entries)} tokens")


def measure(llama_cpp, model, vocab_size, sequences, options):
    """Seconds of prefill and of decoding for one batch size."""
    per_sequence = options.prompt_len + options.new_tokens
    per_sequence = -(-per_sequence // CONTEXT_MULTIPLE) * CONTEXT_MULTIPLE
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = sequences * per_sequence
    params.n_batch = max(options.chunk, sequences)
    params.n_ubatch = max(options.chunk, sequences)
    params.n_seq_max = sequences
    params.n_threads = options.threads
    params.n_threads_batch = options.threads
    context = llama_cpp.llama_init_from_model(model, params)
    if not context:
        sys.exit(f"llama.cpp made no context of {params.n_ctx} tokens")
    batch = llama_cpp.llama_batch_init(params.n_batch, 0, 1)
    draw = random.Random(options.seed)
    last = options.prompt_len - 1
    prompt = [
        (draw.randrange(3, vocab_size), position, sequence, position == last)
        for sequence in range(sequences)
        for position in range(options.prompt_len)
    ]
    start = time.perf_counter()
    for at in range(0, len(prompt), options.chunk):
        decode(llama_cpp, context, batch, prompt[at : at + options.chunk])
    llama_cpp.llama_synchronize(context)
    prefilled = time.perf_counter()
    for step in range(options.new_tokens):
        decode(llama_cpp, context, batch, [
            (draw.randrange(3, vocab_size), options.prompt_len + step, sequence, True)
            for sequence in range(sequences)
        ])
        llama_cpp.llama_synchronize(context)
    end = time.perf_counter()
    llama_cpp.llama_batch_free(batch)
    llama_cpp.llama_free(context)
    return prefilled - start, end - prefilled


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("--batch", type=int, action="append", help="default: 1, 16 and 64")
    parser.add_argument("--prompt-len", type=int, default=170)
    parser.add_argument("--new-tokens", type=int, default=60)
    parser.add_argument("--chunk", type=int, default=512, help="tokens per prefill call")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        import llama_cpp
    except ImportError as error:
        sys.exit(f"llama-cpp-python is not installed ({error}); see the top of this file")

    llama_cpp.llama_backend_init()
    for path in options.models:
        model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        if not model:
            sys.exit(f"llama.cpp cannot load {path}")
        vocab_size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        for sequences in options.batch or (1, 16, 64):
            prefill_s, decode_s = measure(llama_cpp, model, vocab_size, sequences, options)
            print(json.dumps({
                "model": path, "batch": sequences,
                "prefill_s": prefill_s,
                "prefill_tokens_per_s": sequences * options.prompt_len / prefill_s,
                "decode_s": decode_s,
                "decode_tokens_per_s": sequences * options.new_tokens / decode_s,
                "threads": options.threads,
                "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "llama_cpp_python": llama_cpp.__version__,
            }), flush=True)
        llama_cpp.llama_model_free(model)


if __name__ == "__main__":
    main()
