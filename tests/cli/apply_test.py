"""`normscope apply`: the arrays it accepts, the precision it computes in, and the files it writes."""

import json
import resource
import struct
import unittest

import numpy as np

from command import SANITIZED, CommandTest


class Apply(CommandTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(2)
        self.x, self.gain, self.bias = random.normal(size=(7, 12)), random.normal(size=12), random.normal(size=12)
        for name in ("x", "gain", "bias"):
            np.save(self.folder / f"{name}.npy", getattr(self, name))

    def apply(self, *options):
        self.json("apply", "x.npy", "-o", "y.npy", *options)
        return np.load(self.folder / "y.npy")

    def test_layer_norm(self):
        centred = self.x - self.x.mean(1, keepdims=True)
        expected = centred / np.sqrt(centred.var(1, keepdims=True) + 1e-5) * self.gain + self.bias
        np.testing.assert_allclose(self.apply("--gain", "gain.npy", "--bias", "bias.npy"), expected, rtol=1e-13)

    def test_without_an_output_rows_are_printed(self):
        text = self.ok("apply", "1,2,6;0,0,3", "--eps", 0)
        self.assertEqual(text.splitlines()[-2:], ["[   -0.92582   -0.46291     1.3887 ]",
                                                  "[   -0.70711   -0.70711     1.4142 ]"])
        np.save(self.folder / "x.npy", np.random.default_rng(4).normal(size=(25, 40)))
        lines = self.ok("apply", "x.npy").splitlines()
        rows = [line for line in lines if line.startswith("[")]
        self.assertEqual((len(rows), rows[0].count(" ...")), (10, 1))
        self.assertEqual(lines[-1], "... and 15 more rows; -o Y.npy writes all")
        shown = [float(number) for number in rows[3].strip("[]").replace("...", "").split()]
        whole = self.apply()[3]
        np.testing.assert_allclose(shown, [*whole[:5], *whole[-5:]], rtol=1e-4)
        document = self.json("apply", "x.npy")
        self.conforms("apply", document)
        self.assertIsNone(document["output"])

    def test_threads_do_not_change_a_bit(self):
        np.save(self.folder / "x.npy", np.random.default_rng(3).normal(size=(5000, 12)))
        for options in ([], ["--step", "scale"]):
            one = self.apply(*options, "--threads", 1)
            np.testing.assert_array_equal(one, self.apply(*options, "--threads", 5))

    def test_four_steps_make_the_norm(self):
        expected = self.apply("--gain", "gain.npy", "--bias", "bias.npy", "--groups", 3)
        for step in ("project", "scale", "stretch", "shift"):
            result = self.apply("--gain", "gain.npy", "--bias", "bias.npy", "--groups", 3, "--step", step)
            np.save(self.folder / "x.npy", result)
        np.testing.assert_allclose(result, expected, rtol=1e-13)

    def test_steps_at_the_ends_of_the_range(self):
        for step, x, expected in (("project", [1e308, 1.5e308], [-2.5e307, 2.5e307]),
                                  ("scale", [1.5e308, 1.5e308], [1.0, 1.0]), ("scale", [5e-324, 5e-324], [1.0, 1.0]),
                                  ("project", [5e-323, 1.5e-322], [-5e-323, 5e-323])):
            np.save(self.folder / "x.npy", np.array([x]))
            y = self.apply("--step", step, "--eps", "0")
            np.testing.assert_allclose(y, [expected], rtol=4e-16)

    def test_shape_and_precision_are_kept(self):
        for dtype in (np.float64, np.float32, np.float16):
            np.save(self.folder / "x.npy", self.x.reshape(7, 3, 4).astype(dtype))
            y = self.apply()
            self.assertEqual((y.shape, y.dtype), ((7, 3, 4), dtype))
        np.save(self.folder / "x.npy", np.arange(12))
        self.assertEqual(self.apply().dtype, np.float64)
        np.save(self.folder / "x.npy", np.zeros((0, 12), np.float32))
        self.assertEqual(self.apply().shape, (0, 12))

    def exact(self, x, gain=1.0, bias=0.0, eps=1e-5):
        """The layer norm, and the kernels' error bound in units of rounding, both in long double."""
        x, gain, bias = (np.asarray(a, np.longdouble) for a in (x, gain, bias))
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.longdouble(eps)) * gain
        return scaled + bias, 64 * (abs(scaled) + abs(gain)) + abs(bias)

    def expect_within_bound(self, y, exact, unit, rounded=False):
        """Checks the error bound times `unit`, plus half a unit in the last place where y is rounded to its type."""
        expected, bound = exact
        half_place = np.spacing(abs(y)).astype(np.longdouble) / 2 if rounded else 0
        self.assertLessEqual(float((abs(y - expected) - 1.0001 * (unit * bound + half_place)).max()), 0.0)

    def test_every_type_meets_the_bound_of_its_kernel(self):
        # One row more than a block holds, in every layout that a file may have.
        random = np.random.default_rng(4)
        x, some = random.normal(1.0, 3.0, size=(1050, 1000)), [0, 1, 500, 1046, 1047, 1048, 1049]
        short = {"gain": random.normal(size=1000).astype(np.float32), "bias": np.ones(1000, np.float32)}
        long = {"gain": random.normal(size=1000), "bias": random.normal(size=1000)}
        for name, value in (("g32", short["gain"]), ("b32", short["bias"]), ("g64", long["gain"]), ("b64", long["bias"])):
            np.save(self.folder / f"{name}.npy", value)
        for dtype, unit in ((np.float64, 2.0**-53), (np.float32, 2.0**-24), (np.float16, 2.0**-24)):
            stored = x.astype(dtype)
            exact = self.exact(stored[some], **short)
            for order in (stored, np.asfortranarray(stored), stored.astype(np.dtype(dtype).newbyteorder(">"))):
                np.save(self.folder / "x.npy", order)
                y = self.apply("--gain", "g32.npy", "--bias", "b32.npy")
                self.assertEqual(y.dtype, dtype)
                self.expect_within_bound(y[some], exact, unit, dtype == np.float16)
            # Rounding these parameters to float32 would change the result by more than half a unit in its last place.
            y = self.apply("--gain", "g64.npy", "--bias", "b64.npy")
            self.expect_within_bound(y[some], self.exact(stored[some], **long), 2.0**-53, dtype != np.float64)

    def test_types_of_checkpoints_and_integers(self):
        x = np.random.default_rng(5).normal(size=(9, 16)).astype(np.float32)
        bits = (x.view(np.uint32) >> 16).astype(np.uint16)
        rounded = (bits.astype(np.uint32) << 16).view(np.float32)
        header = {"odd": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
                  "b": {"dtype": "BF16", "shape": [9, 16], "data_offsets": [3, 291]},
                  "f": {"dtype": "F32", "shape": [9, 16], "data_offsets": [291, 867]}}
        text = json.dumps(header).encode()
        (self.folder / "m.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"123" + bits.tobytes() +
                                                    x.tobytes())
        for name, values in (("b", rounded), ("f", x), ("f[3]", x[3])):
            self.json("apply", f"m.safetensors:{name}", "-o", "y.npy")
            y = np.load(self.folder / "y.npy")
            self.assertEqual((y.dtype, y.shape), (np.float32, values.shape))
            self.expect_within_bound(y, self.exact(values), 2.0**-24)
        np.save(self.folder / "x.npy", np.arange(12, dtype=np.int16)[::-1].reshape(2, 6))
        self.expect_within_bound(self.apply(), self.exact(np.load(self.folder / "x.npy")), 2.0**-53)
        np.savez_compressed(self.folder / "x.npz", f=x)
        self.ok("apply", "x.npz:f", "-o", "y.npy")
        self.expect_within_bound(np.load(self.folder / "y.npy"), self.exact(x), 2.0**-24)

    def test_parameters_beyond_float32(self):
        x = np.array([[0.0, 2.0, 4.0, 4.0]], np.float32)
        np.save(self.folder / "x.npy", x)
        y = self.apply("--gain", "1e39,1e-46,1,1e30", "--bias", "0,0,1e300,0")
        self.assertEqual(list(np.isinf(y[0])), [True, False, True, False])
        y = self.apply("--gain", "1e39,1,1,1", "--eps", 1e20)
        np.testing.assert_allclose(y, self.exact(x, [1e39, 1, 1, 1], eps=1e20)[0].astype(np.float32), rtol=1e-6)

    @unittest.skipIf(SANITIZED, "the sanitizer's own memory is counted")
    def test_holds_no_copy_of_its_input(self):
        # 16 MiB, whose copy as float64 would be 32 MiB. A mapped file does not count as data of the process.
        np.save(self.folder / "x.npy", np.ones((4096, 1024), np.float32))
        limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (24 << 20, 24 << 20))
        for options in ((), ("--step", "scale")):
            done = self.run_command("apply", "x.npy", "-o", "y.npy", "--threads", 1, *options, preexec_fn=limit)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_array_of_its_own_may_be_replaced(self):
        self.ok("apply", "x.npy", "-o", "x.npy", "--gain", "gain.npy")
        np.testing.assert_allclose(np.load(self.folder / "x.npy"), self.exact(self.x, self.gain)[0].astype(float),
                                   rtol=1e-13)
        for words in (["-o", "gain.npy"], ["-o", "y.npy", "--json", "x.npy"], ["-o", "y.npy", "--json", "y.npy"],
                      ["-o", "x.npy", "--json", "x.npy"]):
            self.assertIn("would overwrite", self.fails(3, "apply", "x.npy", "--gain", "gain.npy", *words))
        np.save(self.folder / "x.npy", self.x[0])
        self.assertIn("would overwrite", self.fails(3, "apply", "x.npy", "-o", "x.npy", "--gain", "x.npy"))

    def test_width_must_fit(self):
        np.save(self.folder / "short.npy", np.ones(3))
        self.assertEqual(self.fails(3, "apply", "x.npy", "-o", "y.npy", "--gain", "short.npy"),
                         "normscope: norm: gain has 3 entries, expected the width, 12\n")
        self.assertIn("x.npy: has 2 axes longer than 1",
                      self.fails(3, "apply", "x.npy", "-o", "y.npy", "--gain", "x.npy"))


if __name__ == "__main__":
    unittest.main()
