"""Bad checkpoints and arrays: exit 3, one line that names the file and what was expected, no file left."""

import json
import os
import struct
import unittest

import numpy as np

from command import CommandTest, safetensors


def raw(header, data=b"", length=None):
    """The bytes of a safetensors file with this header and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


BAD = {
    "empty": (b"", "8"),
    "shorter_than_its_length": (b"\x01\x02", "8"),
    "truncated_header": (raw({"w": tensor()}, bytes(8))[:20], "header"),
    "truncated_data": (raw({"w": tensor()}, bytes(7)), "w"),
    "padded_data": (raw({"w": tensor()}, bytes(9)), "9"),
    "huge_header_length": (raw({}, length=2**63), "header"),
    "overlapping": (raw({"a": tensor(offsets=(0, 8)), "b": tensor(offsets=(4, 12))}, bytes(12)), '"b"'),
    "hole": (raw({"a": tensor(offsets=(0, 8)), "b": tensor(offsets=(12, 20))}, bytes(20)), '"b"'),
    "overflowing_shape": (raw({"w": tensor(shape=(2**32, 2**32, 16))}, bytes(8)), '"w"'),
    "overflowing_offsets": (raw({"w": tensor(offsets=(0, 2**64 - 1))}, bytes(8)), '"w"'),
    "reversed_offsets": (raw({"w": tensor(offsets=(8, 0))}, bytes(8)), '"w"'),
    "duplicate_name": (raw(b'{"w":%s,"w":%s}' % ((json.dumps(tensor()).encode(),) * 2), bytes(8)), '"w"'),
    "wrong_dtype": (raw({"w": tensor(dtype="F33")}, bytes(8)), "F33"),
    "shape_and_bytes_disagree": (raw({"w": tensor(shape=(3,))}, bytes(8)), '"w"'),
    "not_an_object": (raw([1, 2]), "{"),
    "text_file": (b"To be, or not to be, that is the question:\n" * 40, "safetensors"),
    "deep_nesting": (raw(b"{" + b'"a":{' * 100_000), "header"),
    "two_objects": (raw(b"{}{}"), "one JSON object"),
    "not_utf8": (raw(b'{"\xff\xfe":%s}' % json.dumps(tensor()).encode(), bytes(8)), "JSON"),
}


class BadCheckpoints(CommandTest):
    def test_each_names_the_file_and_what_is_wrong(self):
        for name, (content, hint) in BAD.items():
            with self.subTest(name):
                path = self.folder / f"{name}.safetensors"
                path.write_bytes(content)
                for command in (["inspect", path.name], ["report", path.name, "-o", "r.html", "--json", "r.json"]):
                    line = self.fails(3, *command)
                    self.assertIn(path.name, line)
                    self.assertIn(hint, line)

    def test_paths_that_are_not_files(self):
        (self.folder / "folder.safetensors").mkdir()
        os.mkfifo(self.folder / "pipe.safetensors")
        for name in ("folder.safetensors", "pipe.safetensors", "missing.safetensors"):
            with self.subTest(name):
                self.assertIn(name, self.fails(3, "report", name, "-o", "r.html"))

    def test_unreadable_file(self):
        path = safetensors(self.folder / "secret.safetensors", {"w": np.ones(2)})
        path.chmod(0)
        if os.access(path, os.R_OK):
            self.skipTest("this user may read everything")
        self.assertIn("secret.safetensors", self.fails(3, "inspect", path.name))

    def test_an_earlier_report_survives_a_bad_checkpoint(self):
        (self.folder / "r.html").write_text("the earlier one")
        (self.folder / "bad.safetensors").write_bytes(b"nonsense")
        self.fails(3, "report", "bad.safetensors", "-o", "r.html")
        self.assertEqual((self.folder / "r.html").read_text(), "the earlier one")

    def test_control_characters_do_not_reach_the_terminal(self):
        safetensors(self.folder / "m.safetensors", {"ln\x1b[2J\n.weight": np.ones(4, np.float32)})
        self.assertNotIn("\x1b", self.ok("inspect", "m.safetensors"))
        self.ok("report", "m.safetensors", "-o", "r.html")

    def test_markup_in_names_stays_data(self):
        safetensors(self.folder / "m.safetensors", {"</script><script>alert(1)//norm.weight": np.ones(4, np.float32)})
        self.ok("report", "m.safetensors", "-o", "r.html")
        self.assertNotIn("<script>alert", (self.folder / "r.html").read_text())

    def test_gains_that_are_not_numbers_are_a_finding(self):
        gain = np.ones(8, np.float32)
        gain[3] = np.nan
        safetensors(self.folder / "m.safetensors", {"norm.weight": gain, "norm.bias": gain})
        document = self.json("report", "m.safetensors", "-o", "r.html")
        self.assertIsNone(document["norms"][0]["image"])
        self.assertIn("not_finite", [finding["kind"] for finding in document["findings"]])

    def test_a_checkpoint_without_norms_is_reported_as_such(self):
        safetensors(self.folder / "m.safetensors", {"linear.weight": np.ones((4, 4), np.float32)})
        document = self.json("report", "m.safetensors", "-o", "r.html")
        self.assertEqual(document["norms"], [])
        self.assertEqual([finding["kind"] for finding in document["findings"]], ["no_norms"])


class BadArrays(CommandTest):
    def test_each_names_the_file(self):
        np.save(self.folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
        np.save(self.folder / "scalar.npy", np.float64(1))
        np.save(self.folder / "x.npy", np.ones((2, 3)))
        (self.folder / "short.npy").write_bytes((self.folder / "x.npy").read_bytes()[:-1])
        (self.folder / "text.npy").write_text("1, 2, 3\n")
        (self.folder / "empty.npy").write_bytes(b"")
        np.savez(self.folder / "z.npz", a=np.ones(3))
        safetensors(self.folder / "s.safetensors", {"w": np.ones((2, 3))})
        for name in ("objects.npy", "scalar.npy", "short.npy", "text.npy", "empty.npy", "missing.npy", "z.npz:b",
                     "s.safetensors:v", "s.safetensors:w[2]", "s.safetensors:w[-1]", "x.npy:w"):
            with self.subTest(name):
                self.assertIn(name.split(":")[0], self.fails(3, "apply", name, "-o", "y.npy"))


if __name__ == "__main__":
    unittest.main()
