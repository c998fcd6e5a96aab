"""PyTorch files with several state dicts: --member or FILE:NAME names one."""

import json
import struct
import unittest

from command import CommandTest


def word(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def state_dict(key, size):
    """{"norm.weight": a float32 vector that is storage `key`}, as torch.save pickles it."""
    storage = (b"(" + word("storage") + b"ctorch\nFloatStorage\n" + word(key) + word("cpu") + b"K" + bytes([size]) + b"tQ")
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0K" + bytes([size]) + b"\x85K\1\x85\x89}tR"
    return b"}" + word("norm.weight") + tensor + b"s"


def legacy_file(path, members):
    """A file of torch.save before 1.6 with a member of each name, whose vector holds the member's number."""
    size = 4
    pickled = b"".join(word(name) + state_dict(str(i), size) for i, name in enumerate(members))
    data = b"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + b"\x80\x02M\xe9\x03." + b"\x80\x02}."
    data += b"\x80\x02}(" + pickled + b"u." + b"\x80\x02](" + b"".join(word(str(i)) for i in range(len(members))) + b"e."
    for i in range(len(members)):
        data += struct.pack("<Q4f", size, *[i + 1.0] * size)
    path.write_bytes(data)


class Member(CommandTest):
    def setUp(self):
        super().setUp()
        legacy_file(self.folder / "run.pt", ["model", "ema"])

    def gain(self, *arguments):
        done = self.run_command("report", *arguments, "--json", "r.json", "-o", "r.html", "-q")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads((self.folder / "r.json").read_text())["norms"][0]["gain"]["max"]

    def test_names_the_state_dict(self):
        self.assertEqual(self.gain("run.pt", "--member", "model"), 1.0)
        self.assertEqual(self.gain("run.pt", "--member", "ema"), 2.0)
        self.assertEqual(self.gain("run.pt:ema"), 2.0)
        self.assertEqual(self.run_command("inspect", "run.pt", "--member", "ema").returncode, 0)
        self.assertIn("not modelled: unknown architecture", self.fails(3, "heads", "run.pt", "--member", "ema"))

    def test_what_is_missing_is_named(self):
        members = '2 members with tensors ("model", "ema")'
        for arguments, complaint in (((), f"has {members}, expected one; name it as FILE:MEMBER"),
                                     (("--member", "teacher"),
                                      f'has no member "teacher" with tensors; it has {members}')):
            done = self.run_command("inspect", "run.pt", *arguments)
            self.assertEqual(done.returncode, 3)
            self.assertIn(complaint, done.stderr)


if __name__ == "__main__":
    unittest.main()
