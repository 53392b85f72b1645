#!/usr/bin/env python3
"""One GRPO iteration of TRL on the CPU: sampling, scoring and update, the whole step.

8 groups × 8 completions of exactly 60 tokens on two-armed bandit prompts of about 165 tokens,
float32, one update a batch. The settings that decide speed are the constants below and are printed
with the result. A step's time runs from one optimiser step's start to its end as the trainer
reports them, so it contains generation. One JSON line per step and one at the end.

    pip install torch transformers trl datasets gguf accelerate
    python bench/smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf smollm2_hf
    python bench/trl_grpo.py --model smollm2_hf --steps 2
"""

import argparse
import random
import tempfile
import time

import smollm2

SYSTEM = (
    "You are an agent that plays a game of choices and wants as much reward as possible. "
    "Think first, then act. Put your reasoning between <think> and </think> and the name of your "
    "choice between <answer> and </answer>, and write nothing else."
)
USER = (
    "There are two slot machines in front of you, called {first} and {second}. One of them pays a "
    "small amount every time. The other one pays a large amount now and then and nothing "
    "otherwise. Their names say something about their character. You may pull one arm once. "
    "Which machine do you pull? Answer with {first} or {second} in the form "
    "<think> your thoughts </think> <answer> name of the machine </answer>. "
    "Use at most 60 tokens."
)
NAMES = ("Dragon", "Phoenix", "Teacher", "Engineer", "Trader", "Librarian", "Pilot", "Gardener")


def prompts(count, seed):
    """Chat prompts that differ in the two names."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        first, second = draw.sample(NAMES, 2)
        rows.append({
            "prompt": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": USER.format(first=first, second=second)},
            ]
        })
    return rows


def reward(completions, **_):
    """Spread rewards, so that no group is left out: the share of distinct words."""
    texts = [completion[0]["content"].split() for completion in completions]
    return [len(set(words)) / max(len(words), 1) for words in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="Hugging Face folder")
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=60)
    parser.add_argument("--micro-batch", type=int, default=8, help="completions per device batch")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    completions = options.groups * options.members
    if completions % options.micro_batch:
        parser.error("groups × members must be a multiple of --micro-batch")

    smollm2.set_threads(options.threads)
    import datasets
    import torch
    import transformers
    import trl

    settings = {
        "per_device_train_batch_size": options.micro_batch,
        "gradient_accumulation_steps": completions // options.micro_batch,
        "num_generations": options.members,
        "num_iterations": 1,
        "max_completion_length": options.new_tokens,
        "generation_kwargs": {"min_new_tokens": options.new_tokens},
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "beta": 0.0,
        "epsilon": 0.2,
        "loss_type": "grpo",
        "scale_rewards": "group",
        "learning_rate": 1e-6,
        "max_steps": options.steps,
        "gradient_checkpointing": False,
        "use_vllm": False,
        "use_cpu": True,
        "bf16": False,
        "fp16": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "seed": options.seed,
        "dataloader_pin_memory": False,
        "disable_tqdm": True,
    }

    class StepTimer(transformers.TrainerCallback):
        """Prints the seconds of every optimiser step."""

        def on_step_begin(self, args, state, control, **kwargs):
            self.start = time.perf_counter()

        def on_step_end(self, args, state, control, **kwargs):
            seconds = time.perf_counter() - self.start
            sampled = completions * options.new_tokens
            smollm2.emit(step=state.global_step - 1, seconds=seconds, sampled_tokens=sampled,
                         sampled_tokens_per_s=sampled / seconds)

    model = smollm2.load_model(options.model)
    tokenizer = smollm2.load_tokenizer(options.model)
    tokenizer.padding_side = "left"
    rows = prompts(options.groups * options.steps, options.seed)
    prompt_tokens = len(tokenizer.apply_chat_template(
        rows[0]["prompt"], add_generation_prompt=True, tokenize=True, return_dict=True
    )["input_ids"])
    with tempfile.TemporaryDirectory() as folder:
        trainer = trl.GRPOTrainer(
            model=model,
            args=trl.GRPOConfig(output_dir=folder, **settings),
            reward_funcs=reward,
            train_dataset=datasets.Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[StepTimer()],
        )
        trainer.train()
    smollm2.emit(
        peak_rss_bytes=smollm2.peak_rss_bytes(), prompt_tokens=prompt_tokens, settings=settings,
        threads=torch.get_num_threads(), trl=trl.__version__, torch=torch.__version__,
        transformers=transformers.__version__,
    )


if __name__ == "__main__":
    main()
