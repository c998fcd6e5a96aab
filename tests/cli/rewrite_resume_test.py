"""A rewrite that was killed at any moment continues after its finished shards and writes the same bytes."""

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import numpy as np

from command import COMMAND, CommandTest, fixture, safetensors

WORDS = ["rewrite", "in", "-o", "out", "--fold", "gains", "--untie", "--center"]
LAYERS, WIDTH = 6, 128


def make_model(folder):
    """A GPT-2 in as many shards as layers."""
    folder.mkdir()
    rng = np.random.default_rng(3)
    array = lambda *shape: rng.normal(size=shape).astype(np.float32)
    shards = [{"transformer.wte.weight": array(40_000, WIDTH), "transformer.wpe.weight": array(64, WIDTH),
               "transformer.ln_f.weight": array(WIDTH), "transformer.ln_f.bias": array(WIDTH)}]
    for layer in range(LAYERS):
        at = f"transformer.h.{layer}."
        shards.append({at + "ln_1.weight": array(WIDTH), at + "ln_1.bias": array(WIDTH),
                       at + "ln_2.weight": array(WIDTH), at + "ln_2.bias": array(WIDTH),
                       at + "attn.c_attn.weight": array(WIDTH, 3 * WIDTH), at + "attn.c_attn.bias": array(3 * WIDTH),
                       at + "attn.c_proj.weight": array(WIDTH, WIDTH), at + "attn.c_proj.bias": array(WIDTH),
                       at + "mlp.c_fc.weight": array(WIDTH, 24 * WIDTH), at + "mlp.c_fc.bias": array(24 * WIDTH),
                       at + "mlp.c_proj.weight": array(24 * WIDTH, WIDTH), at + "mlp.c_proj.bias": array(WIDTH)})
    index = {}
    for number, tensors in enumerate(shards):
        name = f"model-{number + 1:05}-of-{len(shards):05}.safetensors"
        safetensors(folder / name, tensors, {"format": "pt"})
        index.update(dict.fromkeys(tensors, name))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": index}))
    config = json.loads((fixture("gpt2") / "config.json").read_text())
    config.update(n_layer=LAYERS, n_embd=WIDTH, n_inner=24 * WIDTH, n_head=4, n_positions=64, n_ctx=64, vocab_size=40_000)
    (folder / "config.json").write_text(json.dumps(config))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class RewriteResume(CommandTest):
    def setUp(self):
        super().setUp()
        make_model(self.folder / "in")
        self.work = self.folder / ".normscope-rewrite-out"

    def killed(self, when):
        """Runs a rewrite and kills it as soon as `when` is true; whether it was killed, be it after the output appeared."""
        process = subprocess.Popen([COMMAND, *WORDS], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not when():
            time.sleep(0.0005)
        process.kill()
        status = process.wait(60)
        self.assertIn(status, (0, -signal.SIGKILL))
        return status != 0

    def shards(self):
        return [path for path in self.work.glob("files/*.safetensors")]

    def killed_with_shards(self, count):
        for _ in range(20):
            was_killed = self.killed(lambda: len(self.shards()) >= count and (self.work / "progress").exists())
            if was_killed and not (self.folder / "out").exists():
                return
            shutil.rmtree(self.folder / "out")
        self.skipTest("it was always done before the signal came")

    def test_killed_at_random_moments(self):
        begin = time.monotonic()
        self.ok(*WORDS)
        whole, seconds = contents(self.folder / "out"), time.monotonic() - begin
        shutil.rmtree(self.folder / "out")
        moments = random.Random(1)
        for _ in range(8):
            until = time.monotonic() + moments.uniform(0.1, 0.9) * seconds
            if not self.killed(lambda: time.monotonic() > until):
                break
            if (self.folder / "out").exists():  # killed after the rename, while it cleaned up
                self.assertEqual(contents(self.folder / "out"), whole)
                shutil.rmtree(self.folder / "out")
        else:
            self.ok(*WORDS)
        self.assertEqual(contents(self.folder / "out"), whole)
        self.assertFalse(self.work.exists())

    def test_finished_shards_are_taken_over(self):
        self.killed_with_shards(3)
        times = {path: path.stat().st_mtime_ns for path in sorted(self.shards())[:2]}
        text = self.ok(*WORDS)
        self.assertRegex(text, r"\d files that a killed process had finished taken over")
        self.assertEqual({self.folder / "out" / path.name: time for path, time in times.items()},
                         {path: path.stat().st_mtime_ns for path in (self.folder / "out" / p.name for p in times)})

    def test_what_cannot_be_resumed_is_removed_by_the_next_rewrite(self):
        done, other = (self.folder / f".normscope-rewrite-{name}" for name in ("done", "other"))
        (done / "files").mkdir(parents=True)  # killed before a file was finished
        other.mkdir()
        (other / "progress").write_bytes(b"")  # killed after its last rename
        kept, held = (self.folder / f".normscope-rewrite-{name}" for name in ("kept", "held"))
        (kept / "files").mkdir(parents=True)
        (kept / "progress").write_bytes(b"")
        held.mkdir()
        (self.folder / ".normscope-rewrite-link").symlink_to("in")
        lock = os.open(held, os.O_RDONLY)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.ok(*WORDS)
        self.assertEqual([path.exists() for path in (done, other, kept, held, self.folder / "in", self.work)],
                         [False, False, True, True, True, False])
        self.assertTrue((self.folder / ".normscope-rewrite-link").is_symlink())

    def test_damaged_shards_and_other_inputs_are_not_taken_over(self):
        self.killed_with_shards(3)
        for path in self.shards():
            data = bytearray(path.read_bytes())
            data[-5] ^= 1
            path.write_bytes(data)
        self.assertNotIn("taken over", self.ok(*WORDS))
        whole = contents(self.folder / "out")
        shutil.rmtree(self.folder / "out")
        self.killed_with_shards(3)
        self.assertNotIn("taken over", self.ok(*WORDS[:-2]))
        self.assertNotEqual(contents(self.folder / "out"), whole)
        shutil.rmtree(self.folder / "out")
        self.killed_with_shards(3)
        first = self.folder / "in/model-00001-of-00007.safetensors"
        first.write_bytes(first.read_bytes())
        self.assertNotIn("taken over", self.ok(*WORDS))
        self.assertEqual(contents(self.folder / "out"), whole)

    def test_two_processes_do_not_write_one_output(self):
        process = subprocess.Popen([COMMAND, *WORDS], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not self.shards():
            pass
        second = self.run_command(*WORDS)
        if process.wait(60) != 0 or second.returncode == 0:
            self.skipTest("one was done before the other began")
        self.assertEqual(second.returncode, 3)
        self.assertRegex(second.stderr, "another process writes it|exists")
        self.assertTrue((self.folder / "out/rewrite.json").exists())


if __name__ == "__main__":
    unittest.main()
