"""Checkpoints without a configuration: modules of torch itself, and well-known layouts written anew in a few lines."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, INNER, LENGTH = 29, 12, 3, 20, 12


def _causal(length: int) -> torch.Tensor:
    return nn.Transformer.generate_square_subsequent_mask(length)


class TorchEncoder(nn.Module):
    """A classifier of text around nn.TransformerEncoder."""

    def __init__(self, norm_first: bool, final_norm: bool):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.zeros(1, LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True, norm_first=norm_first,
                                           layer_norm_eps=3e-4)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH, eps=2e-4) if final_norm else None,
                                             enable_nested_tensor=False)
        self.fc = nn.Linear(WIDTH, 7)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(input_ids) * math.sqrt(WIDTH) + self.positions[:, : input_ids.shape[1]]
        return self.fc(self.encoder(x)[:, 0])


class TorchDecoder(nn.Module):
    """nn.TransformerDecoder with a memory of its own."""

    def __init__(self, norm_first: bool):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.memory = nn.Linear(5, WIDTH)
        layer = nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, batch_first=True, norm_first=norm_first)
        self.decoder = nn.TransformerDecoder(layer, 2, nn.LayerNorm(WIDTH) if norm_first else None)
        self.out = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, input_ids: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        mask = _causal(input_ids.shape[1])
        return self.out(self.decoder(self.embedding(input_ids), self.memory(features), tgt_mask=mask))


class TorchTransformer(nn.Module):
    """nn.Transformer between an embedding and a map to the vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.transformer = nn.Transformer(WIDTH, HEADS, 2, 2, INNER, batch_first=True)
        self.generator = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids: torch.Tensor, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        x, y = self.embedding(input_ids), self.embedding(decoder_input_ids)
        return self.generator(self.transformer(x, y, tgt_mask=_causal(y.shape[1])))


class LayerNorm(nn.Module):
    """LayerNorm with an optional bias, as in nanoGPT."""

    def __init__(self, width: int, bias: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float) -> torch.Tensor:
    """(batch, heads, length, head width) each."""
    scores = q @ k.transpose(-2, -1) * scale
    if causal:
        length = scores.shape[-1]
        scores = scores.masked_fill(torch.ones(length, length).tril() == 0, float("-inf"))
    return F.softmax(scores, dim=-1) @ v


def _split(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


def _join(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


class NanoAttention(nn.Module):
    def __init__(self, bias: bool):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH, bias=bias)
        self.c_proj = nn.Linear(WIDTH, WIDTH, bias=bias)
        self.register_buffer("bias", torch.ones(LENGTH, LENGTH).tril().view(1, 1, LENGTH, LENGTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (_split(part, HEADS) for part in self.c_attn(x).split(WIDTH, dim=2))
        return self.c_proj(_join(_attend(q, k, v, True, 1.0 / math.sqrt(WIDTH // HEADS))))


class NanoMLP(nn.Module):
    def __init__(self, bias: bool):
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH, bias=bias)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c_proj(F.gelu(self.c_fc(x)))


class NanoBlock(nn.Module):
    def __init__(self, bias: bool):
        super().__init__()
        self.ln_1 = LayerNorm(WIDTH, bias)
        self.attn = NanoAttention(bias)
        self.ln_2 = LayerNorm(WIDTH, bias)
        self.mlp = NanoMLP(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGPT(nn.Module):
    """The names and shapes of Karpathy's nanoGPT: GPT-2's, with Linear layers and a mask called bias."""

    def __init__(self, bias: bool):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(VOCABULARY, WIDTH), wpe=nn.Embedding(LENGTH, WIDTH),
            h=nn.ModuleList(NanoBlock(bias) for _ in range(2)), ln_f=LayerNorm(WIDTH, bias)))
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.transformer["wte"](input_ids) + self.transformer["wpe"](torch.arange(input_ids.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


class LensLayerNorm(nn.Module):
    """The mean square is of the centred row, and eps is inside the root."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(WIDTH))
        self.b = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x - x.mean(-1, keepdim=True)
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * self.w + self.b


class LensAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        head = WIDTH // HEADS
        for name in ("W_Q", "W_K", "W_V"):
            self.register_parameter(name, nn.Parameter(torch.zeros(HEADS, WIDTH, head)))
        for name in ("b_Q", "b_K", "b_V"):
            self.register_parameter(name, nn.Parameter(torch.zeros(HEADS, head)))
        self.W_O = nn.Parameter(torch.zeros(HEADS, head, WIDTH))
        self.b_O = nn.Parameter(torch.zeros(WIDTH))
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril().bool())
        self.register_buffer("IGNORE", torch.tensor(-torch.inf))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (torch.einsum("bpd,hdf->bhpf", x, weight) + bias[:, None]
                   for weight, bias in ((self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V)))
        mixed = _attend(q, k, v, True, 1.0 / math.sqrt(WIDTH // HEADS))
        return mixed.transpose(1, 2).flatten(2) @ self.W_O.flatten(0, 1) + self.b_O


class LensMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.W_in = nn.Parameter(torch.zeros(WIDTH, INNER))
        self.b_in = nn.Parameter(torch.zeros(INNER))
        self.W_out = nn.Parameter(torch.zeros(INNER, WIDTH))
        self.b_out = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x @ self.W_in + self.b_in) @ self.W_out + self.b_out


class LensBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.attn = LensLayerNorm(), LensAttention()
        self.ln2, self.mlp = LensLayerNorm(), LensMLP()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Holder(nn.Module):
    """Parameters under a common prefix."""

    def __init__(self, **shapes: tuple[int, ...]):
        super().__init__()
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))


class TransformerLens(nn.Module):
    """The names and shapes of TransformerLens' HookedTransformer for GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = Holder(W_E=(VOCABULARY, WIDTH))
        self.pos_embed = Holder(W_pos=(LENGTH, WIDTH))
        self.blocks = nn.ModuleList(LensBlock() for _ in range(2))
        self.ln_final = LensLayerNorm()
        self.unembed = Holder(W_U=(WIDTH, VOCABULARY), b_U=(VOCABULARY,))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embed.W_E[input_ids] + self.pos_embed.W_pos[: input_ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.ln_final(x) @ self.unembed.W_U + self.unembed.b_U
