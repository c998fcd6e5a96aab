"""Tiny diffusion transformers of diffusers."""

from __future__ import annotations

import torch

HEADS = dict(num_attention_heads=2, attention_head_dim=6)
STEP = [3]


def _flattened(model: torch.nn.Module) -> torch.nn.Module:
    """The model with inputs of shape (1, 1), as cases state numbers, taken as lists of one."""
    forward = model.forward

    def called(**inputs: torch.Tensor) -> object:
        lists = ("timestep", "class_labels")
        return forward(**{name: value.flatten() if name in lists else value for name, value in inputs.items()})

    model.forward = called  # type: ignore[method-assign]
    return model


def gently(model: torch.nn.Module) -> None:
    """Modulates less, so that no probability is rounded to 0."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm1.linear" in name or "scale_shift_table" in name or "adaln_single.linear" in name:
                parameter.mul_(0.1)


def dit() -> torch.nn.Module:
    from diffusers import DiTTransformer2DModel

    return _flattened(DiTTransformer2DModel(**HEADS, in_channels=2, out_channels=4, num_layers=2, sample_size=4, patch_size=2,
                                            num_embeds_ada_norm=7))


def pixart() -> torch.nn.Module:
    from diffusers import PixArtTransformer2DModel

    return _flattened(PixArtTransformer2DModel(**HEADS, in_channels=2, out_channels=4, num_layers=2, sample_size=4, patch_size=2,
                                               cross_attention_dim=12, caption_channels=5))


def sd3() -> torch.nn.Module:
    from diffusers import SD3Transformer2DModel

    return _flattened(SD3Transformer2DModel(**HEADS, sample_size=4, patch_size=2, in_channels=2, out_channels=2, num_layers=2,
                                            joint_attention_dim=5, caption_projection_dim=12, pooled_projection_dim=5,
                                            pos_embed_max_size=4, qk_norm="rms_norm"))


def flux() -> torch.nn.Module:
    from diffusers import FluxTransformer2DModel

    return _flattened(FluxTransformer2DModel(**HEADS, patch_size=1, in_channels=4, num_layers=2, num_single_layers=2,
                                             joint_attention_dim=5, pooled_projection_dim=5, axes_dims_rope=(2, 2, 2)))
