#!/usr/bin/env python3
"""One reinforcement-learning update in PyTorch: the padded batch that today's trainers make.

8 groups × 8 members, prompts of 170 tokens (the members of a group share theirs), responses of 60,
PPO-clip loss with an entropy bonus on the response tokens only, group-normalised advantages, AdamW
once over the whole batch, gradient accumulation over micro-batches. Only the positions that predict
response tokens go through the vocabulary projection; the shared prompts are computed once a member,
as padded trainers do. One JSON line per step: seconds, sampled (response) tokens and all tokens a
second. Sampling is not part of it: see hf_generate.py.

    python bench/torch_rl_step.py --steps 2
    python bench/torch_rl_step.py --model SmolLM2-135M-Instruct.Q4_1.gguf --score-first
"""

import argparse
import time

import smollm2


def make_batch(options, vocab_size):
    """Right-padded ids [rows, prompt + response], response lengths and one advantage a row."""
    import torch

    generator = torch.Generator().manual_seed(options.seed)
    rows = options.groups * options.members
    prompts = torch.randint(3, vocab_size, (options.groups, options.prompt_len), generator=generator)
    prompts = prompts.repeat_interleave(options.members, dim=0)
    responses = torch.randint(3, vocab_size, (rows, options.response_len), generator=generator)
    shortest = options.min_response_len or options.response_len
    lengths = torch.randint(shortest, options.response_len + 1, (rows,), generator=generator)
    rewards = torch.randn(options.groups, options.members, generator=generator)
    advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-6)
    return torch.cat([prompts, responses], dim=1), lengths, advantages.flatten()


def response_scores(model, ids, lengths, prompt_len):
    """Log-probability and entropy of the response tokens, both [rows, response], and their mask."""
    import torch

    response_len = ids.shape[1] - prompt_len
    mask = torch.arange(response_len)[None, :] < lengths[:, None]
    attention_mask = torch.cat([torch.ones(ids.shape[0], prompt_len, dtype=torch.bool), mask], dim=1)
    hidden = model.model(
        input_ids=ids, attention_mask=attention_mask.long(), use_cache=False
    ).last_hidden_state
    logits = model.lm_head(hidden[:, prompt_len - 1 : -1])
    log_p = torch.log_softmax(logits, dim=-1)
    log_prob = log_p.gather(2, ids[:, prompt_len:, None])[..., 0]
    entropy = -(log_p.exp() * log_p).sum(-1)
    return log_prob, entropy, mask


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help=".gguf file or Hugging Face folder; default: random weights")
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--prompt-len", type=int, default=170)
    parser.add_argument("--response-len", type=int, default=60)
    parser.add_argument("--min-response-len", type=int, help="vary lengths from here; default: equal")
    parser.add_argument("--micro-batch", type=int, default=8, help="rows per forward and backward")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--score-first", action="store_true",
                        help="also time the pass for the old log-probabilities, without gradient")
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy-coeff", type=float, default=0.001)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--lr", type=float, default=1e-6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    smollm2.set_threads(options.threads)
    import torch
    import transformers

    model = smollm2.load_model(options.model).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    ids, lengths, advantages = make_batch(options, model.config.vocab_size)
    sampled = int(lengths.sum())
    micro_batches = list(zip(*(t.split(options.micro_batch) for t in (ids, lengths, advantages)),
                             strict=True))
    for step in range(options.steps):
        start = time.perf_counter()
        old = [None] * len(micro_batches)
        if options.score_first:
            with torch.no_grad():
                old = [response_scores(model, i, n, options.prompt_len)[0]
                       for i, n, _ in micro_batches]
        scored = time.perf_counter()
        total = 0.0
        for (rows, row_lengths, advantage), old_log_prob in zip(micro_batches, old, strict=True):
            log_prob, entropy, mask = response_scores(model, rows, row_lengths, options.prompt_len)
            if old_log_prob is None:
                old_log_prob = log_prob.detach()
            ratio = torch.exp(log_prob - old_log_prob)
            clipped = ratio.clamp(1 - options.clip, 1 + options.clip)
            surrogate = torch.minimum(ratio * advantage[:, None], clipped * advantage[:, None])
            objective = surrogate + options.entropy_coeff * entropy
            loss = -(objective * mask).sum() / sampled
            loss.backward()
            total += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), options.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end = time.perf_counter()
        smollm2.emit(
            step=step, update_s=end - scored, score_s=scored - start, sampled_tokens=sampled,
            all_tokens=ids.numel(), sampled_tokens_per_s=sampled / (end - scored),
            all_tokens_per_s=ids.numel() / (end - scored), loss=total, gradient_norm=norm.item(),
        )
    smollm2.emit(
        peak_rss_bytes=smollm2.peak_rss_bytes(), threads=torch.get_num_threads(),
        settings=vars(options), torch=torch.__version__, transformers=transformers.__version__,
    )


if __name__ == "__main__":
    main()
