"""No forgery of tests/cli/forgeries.py is confirmed, by the checker in NumPy or by `normscope verify`.

FORGERIES=WORD takes only those whose source or name has that word; `-k ByVerify` and `-k ByNumPy` take one checker.
"""

import json
import os
import sys
import unittest

import numpy as np

from command import SOURCE, CommandTest, fixture
from forgeries import FIXTURE, SOURCES, forgeries
from forgery import value_at

sys.path.insert(0, str(SOURCE / "python/normscope"))
import checker  # noqa: E402
import model_checker  # noqa: E402

ONLY = os.environ.get("FORGERIES", "")
# Genuine results of which both checkers prove every field; others have names, notes or norms of keys.
PROVED = ("select", "select_exact", "select_tiny", "select_far_columns", "separate", "separate_constant_column",
          "separate_touching", "separate_exact", "separate_exact_touching", "separate_three", "separate_labelled",
          "separate_tiny", "reach", "reach_rms", "reach_sphere", "reach_tiny")
# Behind norms of keys, and without certificates, it leaves everything unproved.
NOT_COVERED = "select_normed", "heads_bare"


def arrays_of_model(path, stated):
    """Each array of a result, found among the model's tensors, their rows and columns, by its shape and hash."""
    wanted = {(tuple(entry["shape"]), entry["sha256"]) for entry in stated}
    known = {}

    def keep(values):
        digest = checker.sha256(values)
        if (values.shape, digest) in wanted:
            known[values.shape, digest] = values
    tensors = model_checker.Tensors(path)
    for tensor in (tensors[name] for name in tensors):
        # Tensors of several layers may be stacked, and gains stored less 1.
        stacked = list(tensor) if tensor.ndim in (2, 3) and len(tensor) <= 64 else []
        for values in (tensor, tensor + 1.0, *stacked) if tensor.dtype.kind == "f" else ():
            for shape in {shape for shape, _ in wanted}:
                columns = shape[1] if len(shape) == 2 else 1
                layouts = [values.reshape(-1, columns)] if len(shape) == 2 and values.size % columns == 0 else []
                for rows in (values, values.T, *layouts) if values.ndim == 2 else (values,):
                    if rows.ndim == len(shape) and rows.shape[1:] == shape[1:]:
                        for begin in range(0, len(rows) - shape[0] + 1, shape[0]):
                            keep(rows[begin:begin + shape[0]])
    return [known[tuple(entry["shape"]), entry["sha256"]] for entry in stated]


def literal(text):
    """An array of the command line, as the command reads it: the rows of keys, or a vector."""
    return np.array([[float(x) for x in row.split(",")] for row in text.split(";")])


class Forged(CommandTest):
    true = ()  # results that are true as well where a checker knows less of the command line

    def genuine(self, source):
        words = [str(SOURCE / word) if (SOURCE / word).exists() else fixture(word[len(FIXTURE):]) if word.startswith(FIXTURE) else word
                 for word in SOURCES[source].command]
        document = self.json(*words)
        named = {argument["role"]: argument["name"] for argument in document["inputs"]["arguments"]}
        stated = document["inputs"]["arrays"]
        arrays = (arrays_of_model(named["model"], stated) if "model" in named else
                  [literal(named[entry["role"]]).reshape(entry["shape"]) for entry in stated])
        return json.dumps(document), arrays

    def refuses(self, source, text, refused):
        """Each forgery of a genuine result, given to `refused`, which gives the exit status and what is named."""
        for forgery in forgeries():
            if forgery.source != source or ONLY not in f"{source} {forgery.name}":
                continue
            if source == "reach" and forgery.name in self.true:
                continue
            with self.subTest(source=source, name=forgery.name):
                false = forgery.forge(text)
                self.assertNotEqual(false, text, "nothing is forged")
                status, found = refused(false)
                self.assertIn(status, self.statuses(forgery), found[:400])
                if status != 3:
                    self.assertIn(forgery.field.rpartition(".")[2], found)

    def statuses(self, forgery):
        """Those by which a checker may refuse: a claim fails, the result is none, a claim is left unproved."""
        return 1, 3, 4


class ByNumPy(Forged):
    def found(self, text, arrays, facts):
        """The exit status, what is named, and the outcome if there is one."""
        try:
            outcome = (model_checker.check(text, model_checker.Tensors(json.loads(self.text)["path"])) if "normscope.attribute/" in self.text
                       else checker.check(text, arrays, facts))
        except checker.exact.Malformed as error:
            return 3, str(error), None
        return outcome.exit_status, "\n".join(f"{path} {reason}" for path, reason in outcome.failed + outcome.unproved), outcome

    def confirms_none(self, source):
        self.text, arrays = self.genuine(source)
        text, facts = self.text, dict(SOURCES[source].facts)
        _, found, outcome = self.found(text, arrays, facts)
        self.assertEqual(outcome.failed if outcome else found, [], f"{source}: a genuine result fails")
        if source in PROVED:
            self.assertEqual(outcome.unproved, [], f"{source}: a genuine result is left unproved")
        # What the arrays do not hold is given, as by a reviewer who knows the model.
        document = json.loads(text)
        for path in [path for path, reason in outcome.unproved if "give it as" in reason]:
            try:
                facts[path] = value_at(document, path)
            except (KeyError, TypeError):
                facts[path] = None
        facts |= {name: document[name] for name in ("path", "architecture") if name in document}
        self.refuses(source, text, lambda false: self.found(false, arrays, facts)[:2])

    def statuses(self, forgery):
        return (1, 3, 4) if forgery.verdict == "unproved" or forgery.source in NOT_COVERED else (1, 3)


class ByVerify(Forged):
    # The ball is the same for every eps above 0: the other result is true, and the command line alone knows the first.
    true = ("another eps",)

    def statuses(self, forgery):
        # Only a forward pass proves these rows: status 4 would say nothing.
        return (1, 3) if forgery.source.startswith("attribute") and forgery.verdict != "unproved" else super().statuses(forgery)

    def found(self, text):
        """Exit status of the command, and what it names."""
        (self.folder / "result.json").write_text(text)
        done = self.run_command("verify", "result.json", "--json", "found.json", "-q")
        found = done.stderr
        if done.returncode in (1, 4):
            document = json.loads((self.folder / "found.json").read_text())
            found += " ".join(f"{entry['item']} {entry['reason']}\n" for entry in document["failed"] + document["not_checkable"])
        return done.returncode, found

    def confirms_none(self, source):
        text, _ = self.genuine(source)
        status, found = self.found(text)
        self.assertIn(status, (0,) if source in PROVED else (0, 4), f"{source}: a genuine result is not confirmed: {found}")
        self.refuses(source, text, self.found)


for source in SOURCES:
    for case in ByNumPy, ByVerify:
        setattr(case, f"test_{source}", lambda self, source=source: self.confirms_none(source))
del Forged, case  # only the two are tests

if __name__ == "__main__":
    unittest.main()
