"""Graphs of attributions are what Neuronpedia and circuit-tracer's viewer read, without either package.

What those need: of the metadata slug, scan, prompt and prompt_tokens; of a node a name of its own, a layer that is a number or
E, a feature number, a position in the prompt, a type and a text; the viewer tells nodes apart by layer, feature and position,
shows the logit above all layers, and reads from its text a token in the first quotes and a probability behind "(p="; ends of
links are nodes. `scripts/test interop` compares with the package's own schema.
"""

import json
import os
import tempfile
import unittest
from pathlib import Path

import normscope as ns
from normscope import neuronpedia

OWN = Path(os.environ["NORMSCOPE_SOURCE_DIR"]) / "models/wordlist_gpt"


class Graph(unittest.TestCase):
    def test_has_what_viewers_read(self):
        found = ns.open(OWN).attribute("understandin", "g", against="e", budget=0.0, most_removed=0)
        with tempfile.TemporaryDirectory() as folder:
            neuronpedia.save(found, f"{folder}/graph.json", slug="one", scan="wordlist")
            graph = json.loads(Path(folder, "graph.json").read_text())
        self.assertEqual(set(graph), {"metadata", "qParams", "nodes", "links"})
        metadata, nodes = graph["metadata"], graph["nodes"]
        self.assertEqual((metadata["slug"], metadata["scan"], metadata["prompt"], metadata["prompt_tokens"]),
                         ("one", "wordlist", "understandin", list("understandin")))
        self.assertNotIn(None, metadata.values())
        kinds = {"node_id": str, "feature": int, "layer": str, "ctx_idx": int, "feature_type": str, "jsNodeId": str, "clerp": str}
        for node in nodes:
            self.assertEqual({name: type(node[name]) for name in kinds}, kinds)
            self.assertTrue(node["layer"] == "E" or node["layer"].isdigit())
            self.assertIn(node["ctx_idx"], range(len(metadata["prompt_tokens"])))
        names = {node["node_id"] for node in nodes}
        self.assertEqual(len(names), len(nodes))
        self.assertEqual(len({(node["layer"], node["feature"], node["ctx_idx"]) for node in nodes}), len(nodes))
        (logit,) = (node for node in nodes if node["feature_type"] == "logit")
        others = [node for node in nodes if node is not logit]
        self.assertGreater(int(logit["layer"]), max(int(node["layer"]) for node in others if node["layer"] != "E"))
        self.assertEqual(logit["clerp"].split('"')[1], "g")
        self.assertEqual(logit["clerp"].split("(p=")[1].split(")")[0], "?")
        self.assertEqual([(link["source"] in names, link["target"]) for link in graph["links"]],
                         [(True, logit["node_id"])] * len(found.components))
        self.assertEqual([link["price"] for link in graph["links"]], [component.price for component in found.components])
        self.assertTrue(all(0 < node["influence"] <= 1 for node in others))


if __name__ == "__main__":
    unittest.main()
