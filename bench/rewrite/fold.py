"""The peer: folds the gains of a Llama with safetensors and torch, one shard at a time: fold.py IN OUT."""

import shutil
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

READERS = {"input_layernorm": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
           "post_attention_layernorm": ["mlp.gate_proj", "mlp.up_proj"]}

source, target = Path(sys.argv[1]), Path(sys.argv[2])
target.mkdir()
gains = {}
for path in sorted(source.glob("*.safetensors")):
    with safe_open(path, "pt") as file:
        gains.update({name: file.get_tensor(name) for name in file.keys() if name.endswith("norm.weight")})
for path in sorted(source.glob("*.safetensors")):
    tensors = {}
    with safe_open(path, "pt") as file:
        for name in file.keys():
            tensor = file.get_tensor(name)
            layer, _, part = name.removesuffix(".weight").partition(".self_attn." if ".self_attn." in name else ".mlp.")
            part = ("self_attn." if ".self_attn." in name else "mlp.") + part
            norm = next((f"{layer}.{norm}.weight" for norm, readers in READERS.items() if part in readers), None)
            if name == "lm_head.weight":
                norm = "model.norm.weight"
            if name in gains:
                tensor = torch.ones_like(tensor)
            elif norm is not None:
                tensor = (tensor.float() * gains[norm].float()).to(tensor.dtype)
            tensors[name] = tensor.contiguous()
    save_file(tensors, target / path.name, {"format": "pt"})
for path in source.glob("*.json"):
    shutil.copy(path, target)
