"""CLIP as the package open_clip_torch builds and stores it."""

from __future__ import annotations

from torch import nn


def two_towers() -> nn.Module:
    import open_clip

    return open_clip.CLIP(
        embed_dim=8, output_dict=True,
        vision_cfg=dict(layers=2, width=12, head_width=4, patch_size=4, image_size=8, mlp_ratio=2.0),
        text_cfg=dict(context_length=10, vocab_size=29, width=16, heads=4, layers=2))
