#!/usr/bin/env python3
"""transformers' `generate` on the CPU: batch 64, prompts of 170 tokens, exactly 60 new tokens each.

Plain sampling at temperature 1 (no top-k, no top-p), float32, key-value cache on. Prompts are random
ids; the members of a group share theirs, which `generate` does not make use of. One JSON line per
run and one at the end.

    python bench/hf_generate.py --model SmolLM2-135M-Instruct.Q4_1.gguf
"""

import argparse
import time

import smollm2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help=".gguf file or Hugging Face folder; default: random weights")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--group-size", type=int, default=8, help="rows that share a prompt")
    parser.add_argument("--prompt-len", type=int, default=170)
    parser.add_argument("--new-tokens", type=int, default=60)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    smollm2.set_threads(options.threads)
    import torch
    import transformers

    model = smollm2.load_model(options.model).eval()
    torch.manual_seed(options.seed)
    groups = -(-options.batch // options.group_size)
    prompts = torch.randint(3, model.config.vocab_size, (groups, options.prompt_len))
    prompts = prompts.repeat_interleave(options.group_size, dim=0)[: options.batch]
    for run in range(options.runs):
        start = time.perf_counter()
        output = model.generate(
            prompts, attention_mask=torch.ones_like(prompts), do_sample=True, temperature=1.0,
            top_k=0, top_p=1.0, min_new_tokens=options.new_tokens,
            max_new_tokens=options.new_tokens, pad_token_id=model.config.pad_token_id,
        )
        seconds = time.perf_counter() - start
        new = output.shape[0] * (output.shape[1] - options.prompt_len)
        smollm2.emit(run=run, seconds=seconds, new_tokens=new, new_tokens_per_s=new / seconds)
    smollm2.emit(
        peak_rss_bytes=smollm2.peak_rss_bytes(), threads=torch.get_num_threads(),
        settings=vars(options), torch=torch.__version__, transformers=transformers.__version__,
    )


if __name__ == "__main__":
    main()
