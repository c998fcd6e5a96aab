"""The layouts of lucidrains' vit-pytorch and x-transformers, written anew in a few lines."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from .torch_models import HEADS, INNER, LENGTH, VOCABULARY, WIDTH, _attend, _join, _split

HEAD_WIDTH = 5  # not WIDTH / HEADS


class ViTFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, INNER), nn.GELU(), nn.Dropout(0.0),
                                 nn.Linear(INNER, WIDTH), nn.Dropout(0.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class ViTAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.to_qkv = nn.Linear(WIDTH, 3 * HEADS * HEAD_WIDTH, bias=False)
        self.to_out = nn.Sequential(nn.Linear(HEADS * HEAD_WIDTH, WIDTH), nn.Dropout(0.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (_split(part, HEADS) for part in self.to_qkv(self.norm(x)).chunk(3, dim=-1))
        return self.to_out(_join(_attend(q, k, v, False, HEAD_WIDTH**-0.5)))


class ViTTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(nn.ModuleList([ViTAttention(), ViTFeedForward()]) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for attention, feed_forward in self.layers:
            x = attention(x) + x
            x = feed_forward(x) + x
        return self.norm(x)


class Patches(nn.Module):
    """Squares of 4 x 4 pixels as rows, channels last."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = image.shape
        x = image.reshape(batch, channels, height // 4, 4, width // 4, 4)
        return x.permute(0, 2, 4, 3, 5, 1).reshape(batch, -1, 16 * channels)


class LucidrainsViT(nn.Module):
    """vit-pytorch's ViT: norms of the patches before and after their embedding, a norm at the start of each branch."""

    def __init__(self) -> None:
        super().__init__()
        self.to_patch_embedding = nn.Sequential(Patches(), nn.LayerNorm(48), nn.Linear(48, WIDTH), nn.LayerNorm(WIDTH))
        self.pos_embedding = nn.Parameter(torch.zeros(1, 5, WIDTH))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.transformer = ViTTransformer()
        self.mlp_head = nn.Linear(WIDTH, 7)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.to_patch_embedding(pixel_values)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embedding
        return self.mlp_head(self.transformer(x)[:, 0])


class GammaLayerNorm(nn.Module):
    """x-transformers' LayerNorm: a gain called gamma, no bias."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (WIDTH,)) * self.gamma


class GRMSNorm(nn.Module):
    """x-transformers' RMSNorm: a unit vector times sqrt(width) and a gain called g, without eps."""

    def __init__(self) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.normalize(x, dim=-1) * WIDTH**0.5 * self.g


class ScaleNorm(nn.Module):
    """x-transformers' ScaleNorm: a unit vector times sqrt(width) and one number."""

    def __init__(self) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.normalize(x, dim=-1) * WIDTH**0.5 * self.g


class XAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.to_q = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.to_k = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.to_v = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.to_out = nn.Linear(HEADS * HEAD_WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (_split(to(x), HEADS) for to in (self.to_q, self.to_k, self.to_v))
        return self.to_out(_join(_attend(q, k, v, True, HEAD_WIDTH**-0.5)))


class XFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ff = nn.Sequential(nn.Sequential(nn.Linear(WIDTH, INNER), nn.GELU()), nn.Identity(), nn.Dropout(0.0),
                                nn.Linear(INNER, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ff(x)


class XLayers(nn.Module):
    def __init__(self, norm: type[nn.Module]):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.ModuleList([norm(), nn.Identity(), nn.Identity()]), branch, nn.Identity()])
            for _ in range(2) for branch in (XAttention(), XFeedForward()))
        self.final_norm = norm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norms, branch, _ in self.layers:
            x = branch(norms[0](x)) + x
        return self.final_norm(x)


class TokenEmbedding(nn.Module):
    def __init__(self, count: int):
        super().__init__()
        self.emb = nn.Embedding(count, WIDTH)


class LucidrainsGPT(nn.Module):
    """x-transformers' TransformerWrapper around a Decoder; positions are scaled by 1/sqrt(width)."""

    def __init__(self, norm: type[nn.Module]):
        super().__init__()
        self.token_emb, self.pos_emb = TokenEmbedding(VOCABULARY), TokenEmbedding(LENGTH)
        self.attn_layers = XLayers(norm)
        self.to_logits = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        positions = self.pos_emb.emb(torch.arange(input_ids.shape[1])) * WIDTH**-0.5
        return self.to_logits(self.attn_layers(self.token_emb.emb(input_ids) + positions))
