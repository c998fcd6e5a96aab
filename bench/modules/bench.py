"""Small and large calls of the torch modules beside torch's own: `scripts/bench modules [--quick]`.

Processor times of both alternate, which other work on the machine changes little; the table has the median of the ratios
of torch's time to ours, above 1 where ours is faster."""

import argparse
import statistics
import time

import normscope.torch as nt
import torch

# Seconds until memory and processor are as in a long run; after less, a call of 0.2 ms takes up to twice its time.
WARM_UP = 0.2
SHAPES = [(1, 768), (16, 768), (1, 4096), (256, 768), (4096, 768), (1024, 4096)]


def seconds(call, repeats):
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def ratio(ours, theirs, pairs, repeats):
    for call in (ours, theirs):
        end = time.perf_counter() + WARM_UP
        while time.perf_counter() < end:
            seconds(call, repeats)
    return statistics.median(seconds(theirs, repeats) / seconds(ours, repeats) for _ in range(pairs))


def training_step(module, x):
    def step():
        module(x).backward(step.gradient)

    step.gradient = torch.ones_like(x)
    return step


def inference(module, x):
    def call():
        with torch.inference_mode():
            module(x)

    return call


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="fewer pairs")
    pairs = 15 if options.parse_args().quick else 41
    torch.set_num_threads(1)
    torch.manual_seed(1)
    print(f"torch {torch.__version__}, one thread of torch; torch's time over ours, median of {pairs} pairs")
    print(f"{'rows x width':>14} {'norm':>10} {'inference':>10} {'with gradients':>15} {'forward + backward':>19}")
    for rows, width in SHAPES:
        x = torch.randn(rows, width)
        given = x.clone().requires_grad_()
        repeats = max(3, 2_000_000 // (rows * width + 20_000))
        for ours, theirs in ((nt.LayerNorm(width), torch.nn.LayerNorm(width)),
                             (nt.RMSNorm(width, eps=1e-6), torch.nn.RMSNorm(width, eps=1e-6))):
            torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-4)
            columns = [ratio(inference(ours, x), inference(theirs, x), pairs, repeats),
                       ratio(lambda: ours(given), lambda: theirs(given), pairs, repeats),
                       ratio(training_step(ours, given), training_step(theirs, given), pairs, repeats)]
            print(f"{f'{rows} x {width}':>14} {type(ours).__name__:>10} {columns[0]:>10.2f} {columns[1]:>15.2f} "
                  f"{columns[2]:>19.2f}", flush=True)


if __name__ == "__main__":
    main()
