"""State-space and recurrent models, vision, audio, and checkpoints without a configuration."""

from __future__ import annotations

from functools import partial

from .. import lucidrains_models as lucidrains
from .. import torch_models as plain
from .case import Case
from .known import EVEN

IMAGE = {"pixel_values": (1, 3, 8, 8)}
VISION = {"": "vision"}
VIT = dict(hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3, image_size=8,
           patch_size=4, num_channels=3, layer_norm_eps=3e-4, num_labels=7)
MAMBA = dict(vocab_size=29, hidden_size=12, state_size=5, num_hidden_layers=2, expand=2, conv_kernel=3,
             layer_norm_epsilon=3e-4, pad_token_id=0, bos_token_id=1, eos_token_id=2)
WAV2VEC2 = dict(vocab_size=9, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
                conv_dim=(6, 8), conv_stride=(3, 2), conv_kernel=(5, 3), num_feat_extract_layers=2, conv_bias=True,
                num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, layer_norm_eps=3e-4, pad_token_id=0,
                bos_token_id=1, eos_token_id=2, apply_spec_augment=False)
AUDIO = {"input_values": (1, 60)}
PAIR = {"input_ids": 7, "decoder_input_ids": [2, 13, 6, 20, 9, 17]}
STACKS = {"encoder": "encoder", "decoder": "decoder", "transformer.encoder": "encoder",
          "transformer.decoder": "decoder"}

CASES = [
    Case("mamba", "MambaForCausalLM", MAMBA | dict(time_step_rank=4, use_bias=True)),
    Case("falcon_mamba", "FalconMambaForCausalLM", MAMBA | dict(time_step_rank=4, mixer_rms_eps=2e-5),
         note="norms without gain on the step, B and C inside the mixer"),
    Case("mamba2", "Mamba2ForCausalLM",
         MAMBA | dict(num_heads=3, head_dim=8, n_groups=1, chunk_size=4, tie_word_embeddings=True)),
    Case("jamba", "JambaForCausalLM",
         EVEN | dict(hidden_size=12, num_attention_heads=3, num_key_value_heads=1, rms_norm_eps=3e-4,
                     attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
                     num_experts=3, num_experts_per_tok=2, mamba_d_state=5, mamba_d_conv=3, mamba_expand=2,
                     mamba_dt_rank=4, use_mamba_kernels=False)),
    Case("bamba", "BambaForCausalLM",
         EVEN | dict(hidden_size=12, num_attention_heads=3, num_key_value_heads=1, rms_norm_eps=3e-4,
                     attn_layer_indices=[1], mamba_n_heads=4, mamba_d_head=6, mamba_n_groups=1, mamba_d_state=5,
                     mamba_d_conv=3, mamba_expand=2, mamba_chunk_size=4)),
    Case("rwkv", "RwkvForCausalLM",
         dict(vocab_size=29, hidden_size=12, attention_hidden_size=12, intermediate_size=20, num_hidden_layers=3,
              context_length=16, layer_norm_epsilon=3e-4, rescale_every=2, bos_token_id=1, eos_token_id=2),
         note="RWKV-4"),
    Case("recurrent_gemma", "RecurrentGemmaForCausalLM",
         EVEN | dict(hidden_size=12, num_attention_heads=3, num_key_value_heads=1, head_dim=4, rms_norm_eps=3e-4,
                     lru_width=12, attention_window_size=4, logits_soft_cap=3.0, num_hidden_layers=3,
                     conv1d_width=3, block_types=["recurrent", "recurrent", "attention"])),
    Case("deit", "DeiTForImageClassification", VIT, IMAGE, towers=VISION),
    Case("ijepa", "IJepaForImageClassification", VIT, IMAGE, towers=VISION, note="the mean of all patches is classified"),
    Case("dinov2", "Dinov2ForImageClassification", VIT | dict(mlp_ratio=2, use_swiglu_ffn=False), IMAGE,
         towers=VISION, note="each branch is multiplied by a vector (layer scale)"),
    Case("dinov2_swiglu", "Dinov2ForImageClassification", VIT | dict(mlp_ratio=2, use_swiglu_ffn=True), IMAGE,
         towers=VISION),
    Case("dinov2_with_registers", "Dinov2WithRegistersForImageClassification",
         VIT | dict(mlp_ratio=2, use_swiglu_ffn=False, num_register_tokens=2), IMAGE, towers=VISION),
    Case("data2vec_vision", "Data2VecVisionForImageClassification",
         VIT | dict(use_relative_position_bias=True, use_mean_pooling=True), IMAGE, towers=VISION),
    Case("beit", "BeitForImageClassification",
         VIT | dict(use_relative_position_bias=True, use_mean_pooling=True), IMAGE, towers=VISION),
    Case("swin", "SwinForImageClassification",
         dict(image_size=8, patch_size=2, num_channels=3, embed_dim=6, depths=[2, 1], num_heads=[2, 3], window_size=2,
              layer_norm_eps=3e-4, num_labels=7), IMAGE, towers=VISION),
    Case("convnext", "ConvNextForImageClassification",
         dict(hidden_sizes=[6, 10], depths=[1, 2], num_stages=2, patch_size=2, layer_norm_eps=3e-4, num_labels=7,
              layer_scale_init_value=1e-6), IMAGE, towers=VISION),
    Case("convnextv2", "ConvNextV2ForImageClassification",
         dict(hidden_sizes=[6, 10], depths=[1, 2], num_stages=2, patch_size=2, layer_norm_eps=3e-4, num_labels=7),
         IMAGE, towers=VISION, note="global response normalization inside each block"),
    Case("wav2vec2", "Wav2Vec2ForCTC",
         WAV2VEC2 | dict(feat_extract_norm="group", do_stable_layer_norm=False), AUDIO, towers={"": "audio"},
         note="as wav2vec2-base: a GroupNorm over positions, post-norm"),
    Case("wav2vec2_stable", "Wav2Vec2ForCTC",
         WAV2VEC2 | dict(feat_extract_norm="layer", do_stable_layer_norm=True), AUDIO, towers={"": "audio"},
         note="as wav2vec2-large-lv60: LayerNorm over channels, pre-norm"),
    Case("torch_encoder", partial(plain.TorchEncoder, False, False)),
    Case("torch_encoder_norm_first", partial(plain.TorchEncoder, True, True)),
    Case("torch_decoder", partial(plain.TorchDecoder, False), inputs={"input_ids": 8, "features": (1, 6, 5)}),
    Case("torch_decoder_norm_first", partial(plain.TorchDecoder, True),
         inputs={"input_ids": 8, "features": (1, 6, 5)}),
    Case("torch_transformer", plain.TorchTransformer, inputs=PAIR, towers=STACKS),
    Case("transformer_lens", plain.TransformerLens),
    Case("nanogpt", partial(plain.NanoGPT, True)),
    Case("nanogpt_no_bias", partial(plain.NanoGPT, False)),
    Case("lucidrains_vit", lucidrains.LucidrainsViT, inputs=IMAGE, towers=VISION),
    Case("lucidrains_gpt", partial(lucidrains.LucidrainsGPT, lucidrains.GammaLayerNorm)),
    Case("lucidrains_gpt_rms", partial(lucidrains.LucidrainsGPT, lucidrains.GRMSNorm)),
    Case("lucidrains_gpt_scale", partial(lucidrains.LucidrainsGPT, lucidrains.ScaleNorm)),
]
