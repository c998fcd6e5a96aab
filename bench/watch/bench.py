"""The forward pass of a model of GPT-2 small's size, plain and watched: `scripts/bench watch [--quick]`.

Passes alternate; the overhead is the median of the ratios of neighbours."""

import argparse
import statistics
import time

import normscope as ns
import torch
from torch import nn

LAYERS, WIDTH, HEADS, VOCABULARY = 12, 768, 12, 50257


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU("tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                             for part in self.qkv(self.ln_1(x)).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln_2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(1024, WIDTH)
        self.h, self.ln_f = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[-1]))
        return self.ln_f(self.h(x)) @ self.wte.weight.T


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="fewer passes")
    passes = 3 if options.parse_args().quick else 11
    torch.manual_seed(1)
    model, tokens = Decoder().eval(), torch.randint(VOCABULARY, (1, 1024))
    with torch.no_grad():
        model(tokens)
        plain, watched = [], []
        for _ in range(passes):
            plain.append(seconds(lambda: model(tokens)))
            with ns.watch(model) as seen:
                model(tokens)  # makes the observers
                watched.append(seconds(lambda: model(tokens)))
    overhead = statistics.median(second / first for first, second in zip(plain, watched)) - 1
    summary = seconds(seen.result)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, 1024 tokens, {2 * LAYERS + 1} norms of {WIDTH}")
    print(f"forward {statistics.median(plain):.2f} s, watched {statistics.median(watched):.2f} s: "
          f"{100 * overhead:.0f} % more; the summary takes {summary:.2f} s")


if __name__ == "__main__":
    main()
