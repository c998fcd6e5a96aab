#!/usr/bin/env python3
"""Makes tests/models/fixtures/exported_*.zip: a GPT-2 and a Llama of random weights, and what torch's two exporters make of them.

usage: scripts/model_oracle/onnx_exports.py

Needs onnx and onnxscript beside requirements.txt. The files are as torch.onnx.export writes them, but for the stack trace
that each node has in its metadata and that makes up most of a small file.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import onnx
import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from model_oracle import fixtures  # noqa: E402

MODELS = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_embd=8, n_layer=1, n_head=2, n_positions=8, vocab_size=11, layer_norm_epsilon=1e-4, attn_implementation="eager")),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, intermediate_size=12, vocab_size=11,
        max_position_embeddings=8, rms_norm_eps=1e-4, tie_word_embeddings=False, attn_implementation="eager")),
}
EXPORTERS = {"dynamo": {"dynamo": True, "external_data": False, "verbose": False}, "script": {"dynamo": False, "opset_version": 17}}


class Logits(torch.nn.Module):
    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.model(ids, attention_mask=mask, use_cache=False).logits


def export(model: torch.nn.Module, folder: Path) -> None:
    ids, mask = torch.tensor([[1, 2, 3, 4, 5]]), torch.ones(1, 1, 5, 5, dtype=torch.bool).tril()
    for exporter, options in EXPORTERS.items():
        path = folder / f"{exporter}.onnx"
        torch.onnx.export(Logits(model), (ids, mask), str(path), **options)
        document = onnx.load(str(path))
        for part in (*document.graph.node, *document.graph.value_info, document.graph):
            del part.metadata_props[:]
        for node in document.graph.node:
            node.doc_string = ""
        onnx.save(document, str(path))


def main() -> None:
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    for name, make in MODELS.items():
        model = make().eval()
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                is_gain = parameter.dim() == 1 and not parameter_name.endswith("bias")
                parameter.copy_(torch.randn_like(parameter) * 0.3 + is_gain)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            model.save_pretrained(folder)
            (folder / "generation_config.json").unlink(missing_ok=True)
            export(model, folder)
            fixtures.write(f"exported_{name}", {path.name: path.read_bytes() for path in folder.iterdir()})


if __name__ == "__main__":
    main()
