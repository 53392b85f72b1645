#!/usr/bin/env python3
"""One full training step of SmolLM2-135M in PyTorch and transformers, on the CPU, in float32.

A step is: forward with the loss on all tokens, backward, AdamW over all parameters. No gradient
checkpointing, no mixed precision, no compilation. Prints one JSON line per step and one at the end.

    python bench/torch_train_step.py --steps 3
    python bench/torch_train_step.py --model SmolLM2-135M-Instruct.Q4_1.gguf
"""

import argparse
import time

import smollm2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help=".gguf file or Hugging Face folder; default: random weights")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--len", type=int, default=256, help="tokens per sequence")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--fused", action="store_true", help="PyTorch's fused AdamW")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    smollm2.set_threads(options.threads)
    import torch
    import transformers

    model = smollm2.load_model(options.model).train()
    load_peak = smollm2.peak_rss_bytes()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, fused=options.fused or None)
    generator = torch.Generator().manual_seed(options.seed)
    tokens = options.batch * options.len
    for step in range(options.steps):
        ids = torch.randint(
            3, model.config.vocab_size, (options.batch, options.len), generator=generator
        )
        start, cpu_start = time.perf_counter(), time.process_time()
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        forward_end = time.perf_counter()
        loss.backward()
        backward_end = time.perf_counter()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end, cpu_end = time.perf_counter(), time.process_time()
        smollm2.emit(
            step=step, tokens=tokens, seconds=end - start, tokens_per_s=tokens / (end - start),
            forward_s=forward_end - start, backward_s=backward_end - forward_end,
            optimizer_s=end - backward_end, cpu_s=cpu_end - cpu_start, loss=loss.item(),
        )
    smollm2.emit(
        peak_rss_bytes=smollm2.peak_rss_bytes(), peak_rss_after_load_bytes=load_peak,
        parameters=model.num_parameters(), threads=torch.get_num_threads(), batch=options.batch,
        len=options.len, torch=torch.__version__, transformers=transformers.__version__,
    )


if __name__ == "__main__":
    main()
