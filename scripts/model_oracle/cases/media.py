"""Vision, video, audio, time series, and checkpoints of several towers."""

from __future__ import annotations

import torch

from .. import diffusion_models as diffusion
from .case import Case
from .encoders import CLIP_TEXT, CLIP_VISION, TEXT_AND_IMAGE, TWO_TOWERS
from .known import GROUPED
from .others import AUDIO, IMAGE, VISION, VIT, WAV2VEC2

HIDDEN = ("last_hidden_state",)


def unmasked(model: torch.nn.Module) -> None:
    """As published: no block masks what its queries see."""
    model.attn_mask_probs.zero_()


VIDEO = {"pixel_values": (1, 2, 3, 8, 8)}
ROTATED = VIT | dict(hidden_size=24)  # heads of 8

TEXT = {k: v for k, v in GROUPED.items() if k != "head_dim"} | dict(hidden_size=24, rms_norm_eps=3e-4)
LLAMA = TEXT | dict(model_type="llama", head_dim=6, rope_theta=500.0)
TOWERS = {"model.language_model": "text", "model.vision_tower": "vision", "model.visual": "vision",
          "model.vision_model": "vision", "model.audio_tower": "audio", "model.multi_modal_projector": "projector"}
SEEN = {"input_ids": [28, 28, 28, 28, 7, 19, 3, 26], "pixel_values": (1, 3, 8, 8)}
# An image of 16 patches of 2 frames, which become 4 tokens.
GRID = {"input_ids": [25, 28, 28, 28, 28, 24, 7, 19], "mm_token_type_ids": [0, 1, 1, 1, 1, 0, 0, 0], "pixel_values": (16, 24),
        "image_grid_thw": [1, 4, 4]}
QWEN_VL = dict(image_token_id=28, video_token_id=27, vision_start_token_id=25, vision_end_token_id=24,
               text_config=TEXT | dict(rope_parameters=dict(rope_type="default", rope_theta=300.0, mrope_section=[1, 1, 1])))
PATCHTST = dict(num_input_channels=2, context_length=16, patch_length=4, patch_stride=4, num_hidden_layers=2, d_model=12,
                num_attention_heads=3, ffn_dim=20, norm_type="layernorm", norm_eps=3e-4, prediction_length=5)


def with_image_outputs(model: torch.nn.Module) -> None:
    """Llama 4's class reads a field that the output of its text model lacks."""
    from transformers.models.llama4 import modeling_llama4

    modeling_llama4.MoeCausalLMOutputWithPast.image_outputs = None


CASES = [
    Case("vit_msn", "ViTMSNModel", VIT, IMAGE, HIDDEN, VISION),
    Case("ast", "ASTForAudioClassification",
         dict(hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3, patch_size=4,
              frequency_stride=3, time_stride=3, max_length=12, num_mel_bins=8, layer_norm_eps=3e-4, num_labels=7),
         {"input_values": (1, 12, 8)}, towers={"": "audio"}),
    Case("vivit", "VivitForVideoClassification",
         {k: v for k, v in VIT.items() if k != "patch_size"} | dict(num_frames=2, tubelet_size=[2, 4, 4]), VIDEO, towers=VISION),
    Case("timesformer", "TimesformerForVideoClassification", VIT | dict(num_frames=2), VIDEO, towers=VISION),
    Case("yolos", "YolosForObjectDetection",
         VIT | dict(image_size=[8, 8], num_detection_tokens=3, use_mid_position_embeddings=True), IMAGE, towers=VISION),
    Case("vit_mae", "ViTMAEModel", VIT | dict(mask_ratio=0.0), IMAGE | {"noise": (1, 4)}, HIDDEN, VISION),
    Case("dinov3_vit", "DINOv3ViTModel", ROTATED | dict(num_register_tokens=2, layer_norm_eps=3e-4), IMAGE, HIDDEN, VISION),
    Case("dinov3_vit_gated", "DINOv3ViTModel", ROTATED | dict(use_gated_mlp=True), IMAGE, HIDDEN, VISION),
    Case("aimv2_vision", "Aimv2VisionModel",
         {k: v for k, v in VIT.items() if k != "layer_norm_eps"} | dict(rms_norm_eps=3e-4), IMAGE,
         ("last_hidden_state", "pooler_output"), VISION),
    Case("aimv2", "Aimv2Model",
         dict(text_config=dict(vocab_size=29, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
                               max_position_embeddings=10, rms_norm_eps=3e-4, eos_token_id=28),
              vision_config=dict(hidden_size=16, intermediate_size=28, num_hidden_layers=2, num_attention_heads=2, image_size=8,
                                 patch_size=4, rms_norm_eps=2e-4), projection_dim=10),
         TEXT_AND_IMAGE, ("text_embeds", "image_embeds"), TWO_TOWERS),
    Case("siglip2_vision", "Siglip2VisionModel",
         dict(hidden_size=16, intermediate_size=28, num_hidden_layers=2, num_attention_heads=2, num_patches=4, patch_size=4,
              layer_norm_eps=2e-4),
         {"pixel_values": (1, 4, 48), "pixel_attention_mask": [1, 1, 1, 1], "spatial_shapes": [2, 2]},
         ("last_hidden_state", "pooler_output"), VISION),
    Case("chinese_clip_vision", "ChineseCLIPVisionModel", CLIP_VISION, IMAGE, HIDDEN, VISION),
    Case("smolvlm_vision", "SmolVLMVisionTransformer", CLIP_VISION, IMAGE, HIDDEN, VISION),
    Case("videomae", "VideoMAEForVideoClassification",
         dict(hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3, image_size=8, patch_size=4,
              num_frames=4, tubelet_size=2, layer_norm_eps=3e-4, num_labels=7), {"pixel_values": (1, 4, 3, 8, 8)},
         towers=VISION, note="positions are computed, and the mean of all is classified"),
    Case("mlcd", "MLCDVisionModel", CLIP_VISION, IMAGE, HIDDEN, VISION),
    Case("metaclip_2", "MetaClip2Model",
         dict(text_config=CLIP_TEXT, vision_config=CLIP_VISION, projection_dim=10), TEXT_AND_IMAGE, ("text_embeds", "image_embeds"),
         TWO_TOWERS),
    Case("pixtral", "PixtralVisionModel",
         dict(hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3, image_size=8, patch_size=4),
         IMAGE, HIDDEN, VISION),
    Case("sam_vision", "SamVisionModel",
         dict(hidden_size=12, output_channels=10, num_hidden_layers=2, num_attention_heads=3, image_size=16, patch_size=4,
              mlp_dim=20, window_size=4, global_attn_indexes=[1], layer_norm_eps=3e-4),
         {"pixel_values": (1, 3, 16, 16)}, HIDDEN, VISION),
    Case("swinv2", "Swinv2ForImageClassification",
         dict(image_size=8, patch_size=2, num_channels=3, embed_dim=6, depths=[2, 1], num_heads=[2, 3], window_size=2,
              pretrained_window_sizes=[0, 0], layer_norm_eps=3e-4, num_labels=7), IMAGE, towers=VISION),
    Case("segformer", "SegformerForImageClassification",
         dict(num_encoder_blocks=2, depths=[1, 2], sr_ratios=[2, 1], hidden_sizes=[8, 12], patch_sizes=[3, 3], strides=[2, 2],
              num_attention_heads=[2, 3], mlp_ratios=[2, 2], num_labels=7, layer_norm_eps=3e-4), IMAGE, towers=VISION),
    Case("wavlm", "WavLMForCTC", WAV2VEC2 | dict(feat_extract_norm="group", do_stable_layer_norm=False, num_buckets=8), AUDIO,
         towers={"": "audio"}),
    Case("wavlm_stable", "WavLMForCTC", WAV2VEC2 | dict(feat_extract_norm="layer", do_stable_layer_norm=True, num_buckets=8),
         AUDIO, towers={"": "audio"}),
    Case("data2vec_audio", "Data2VecAudioForCTC",
         {k: v for k, v in WAV2VEC2.items() if k != "num_conv_pos_embeddings"} | dict(num_conv_pos_embeddings=2, conv_pos_kernel_size=3),
         AUDIO, towers={"": "audio"}),
    Case("parakeet_ctc", "ParakeetForCTC",
         dict(vocab_size=29, pad_token_id=28, encoder_config=dict(
             hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, conv_kernel_size=3,
             subsampling_factor=4, subsampling_conv_channels=5, num_mel_bins=8, max_position_embeddings=32)),
         {"input_features": (1, 24, 8)}, towers={"": "audio"}),
    Case("moonshine", "MoonshineForConditionalGeneration",
         dict(vocab_size=29, hidden_size=24, intermediate_size=20, encoder_num_hidden_layers=2, decoder_num_hidden_layers=2,
              encoder_num_attention_heads=3, decoder_num_attention_heads=3, max_position_embeddings=32, pad_token_id=0,
              rope_parameters=dict(rope_type="default", rope_theta=300.0, partial_rotary_factor=0.75), bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
         {"input_values": (1, 2000), "decoder_input_ids": [1, 13, 6, 20, 9, 17]},
         towers={"model.encoder": "encoder", "model.decoder": "decoder"}),
    Case("speecht5", "SpeechT5ForSpeechToText",
         {k: v for k, v in WAV2VEC2.items() if k not in ("intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")}
         | dict(vocab_size=29, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3, decoder_attention_heads=2,
                encoder_ffn_dim=20, decoder_ffn_dim=28, feat_extract_norm="group", encoder_max_relative_position=4,
                max_text_positions=12),
         AUDIO | {"decoder_input_ids": [2, 13, 6, 20, 9, 17]}, towers={"speecht5.encoder": "encoder", "speecht5.decoder": "decoder"}),
    Case("moshi", "MoshiForCausalLM",
         dict(vocab_size=29, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=32, ffn_dim=20, rms_norm_eps=3e-4, sliding_window=32, head_dim=6)),
    Case("eomt", "EomtForUniversalSegmentation",
         VIT | dict(mlp_ratio=2, num_queries=3, num_blocks=1, num_upscale_blocks=1, num_register_tokens=2), IMAGE,
         ("class_queries_logits",), VISION, prepare=unmasked, note="learned queries join in the last block"),
    Case("eomt_dinov3", "EomtDinov3ForUniversalSegmentation",
         ROTATED | dict(num_queries=3, num_blocks=1, num_upscale_blocks=1, num_register_tokens=2), IMAGE,
         ("class_queries_logits",), VISION, prepare=unmasked),
    Case("timesfm", "TimesFmModelForPrediction",
         dict(patch_length=4, context_length=16, horizon_length=8, num_hidden_layers=2, hidden_size=24, intermediate_size=20,
              head_dim=6, num_attention_heads=4, rms_norm_eps=3e-4),
         {"past_values": (1, 16), "freq": [0]}, ("mean_predictions",)),
    Case("llava", "LlavaForConditionalGeneration",
         dict(text_config=LLAMA, vision_config=CLIP_VISION | dict(model_type="clip_vision_model"), image_token_index=28,
              image_seq_length=4), SEEN, towers=TOWERS, note="what the last layer but one gives is projected"),
    Case("paligemma", "PaliGemmaForConditionalGeneration",
         dict(text_config=TEXT | dict(model_type="gemma", head_dim=6),
              vision_config=CLIP_VISION | dict(model_type="siglip_vision_model", vision_use_head=False, projection_dim=24),
              image_token_index=28, projection_dim=24, hidden_size=24),
         SEEN | {"token_type_ids": [0] * 8}, towers=TOWERS, note="the prefix is seen from both sides"),
    Case("mistral3", "Mistral3ForConditionalGeneration",
         dict(text_config=TEXT | dict(model_type="mistral", head_dim=6, sliding_window=4),
              vision_config=dict(model_type="pixtral", hidden_size=24, intermediate_size=20, num_hidden_layers=2,
                                 num_attention_heads=3, image_size=16, patch_size=4), image_token_index=28, spatial_merge_size=2),
         {"input_ids": [28, 28, 28, 28, 7, 19, 3, 26], "pixel_values": (1, 3, 16, 16), "image_sizes": [16, 16]}, towers=TOWERS),
    Case("qwen2_vl_whole", "Qwen2VLForConditionalGeneration",
         QWEN_VL | dict(vision_config=dict(depth=2, embed_dim=16, hidden_size=24, num_heads=2, mlp_ratio=2, patch_size=2)), GRID,
         towers=TOWERS),
    Case("qwen2_5_vl_whole", "Qwen2_5_VLForConditionalGeneration",
         QWEN_VL | dict(vision_config=dict(depth=2, hidden_size=16, intermediate_size=20, num_heads=2, out_hidden_size=24,
                                           patch_size=2, window_size=8, fullatt_block_indexes=[1])), GRID, towers=TOWERS),
    Case("voxtral", "VoxtralForConditionalGeneration",
         dict(text_config=LLAMA, audio_token_id=28,
              audio_config=dict(hidden_size=12, intermediate_size=48, num_hidden_layers=2, num_attention_heads=3, num_mel_bins=5,
                                max_source_positions=8, vocab_size=29)),
         {"input_ids": [28, 28, 7, 19, 3, 26], "input_features": (1, 5, 16)},
         towers={"language_model": "text", "audio_tower": "audio", "model.language_model": "text", "model.audio_tower": "audio"}),
    Case("llama4_vision", "Llama4VisionModel",
         dict(hidden_size=16, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=8, patch_size=2,
              vision_output_dim=12, projector_input_dim=12, projector_output_dim=12), IMAGE, HIDDEN, VISION),
    Case("mllama", "MllamaForConditionalGeneration",
         dict(text_config=TEXT | dict(num_hidden_layers=3, cross_attention_layers=[1], rope_parameters=dict(rope_type="default", rope_theta=500.0)),
              vision_config=dict(hidden_size=16, intermediate_size=28, num_hidden_layers=3, num_global_layers=2, attention_heads=2,
                                 image_size=8, patch_size=4, max_num_tiles=1, supported_aspect_ratios=[[1, 1]],
                                 intermediate_layers_indices=[1], vision_output_dim=32), image_token_index=28),
         {"input_ids": [28, 7, 19, 3, 26], "pixel_values": (1, 1, 1, 3, 8, 8), "aspect_ratio_ids": [1], "aspect_ratio_mask": [[1]]}, towers=TOWERS),
    Case("llama4_whole", "Llama4ForConditionalGeneration",
         dict(text_config=TEXT | dict(head_dim=6, intermediate_size_mlp=20, num_local_experts=2, num_experts_per_tok=1,
                                      moe_layers=[1], attention_chunk_size=4, no_rope_layers=[1, 0]),
              vision_config=dict(hidden_size=16, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=8,
                                 patch_size=2, vision_output_dim=12, projector_input_dim=12, projector_output_dim=12),
              image_token_index=28),
         SEEN, towers=TOWERS, prepare=with_image_outputs),
    Case("dinov3_convnext", "DINOv3ConvNextModel",
         dict(hidden_sizes=[6, 10], depths=[1, 2], layer_norm_eps=3e-4, image_size=16), {"pixel_values": (1, 3, 16, 16)}, HIDDEN,
         VISION),
    Case("patchtst", "PatchTSTForPrediction", PATCHTST | dict(num_input_channels=1), {"past_values": (1, 16, 1)}, ("prediction_outputs",)),
    Case("patchtst_post", "PatchTSTForPrediction", PATCHTST | dict(pre_norm=False, channel_attention=True, use_cls_token=True),
         {"past_values": (1, 16, 2)}, ("prediction_outputs",)),
    Case("dit", diffusion.dit, inputs=dict(hidden_states=(1, 2, 4, 4), timestep=diffusion.STEP, class_labels=diffusion.STEP),
         outputs=("sample",), towers=VISION, prepare=diffusion.gently, note="norms without gain, modulated by a condition"),
    Case("pixart", diffusion.pixart,
         inputs=dict(hidden_states=(1, 2, 4, 4), encoder_hidden_states=(1, 3, 5), timestep=diffusion.STEP),
         options=dict(added_cond_kwargs={"resolution": None, "aspect_ratio": None}), outputs=("sample",), towers=VISION,
         prepare=diffusion.gently),
    Case("sd3", diffusion.sd3,
         inputs=dict(hidden_states=(1, 2, 4, 4), encoder_hidden_states=(1, 3, 5), pooled_projections=(1, 5), timestep=diffusion.STEP),
         outputs=("sample",), towers=VISION),
    Case("flux", diffusion.flux,
         inputs=dict(hidden_states=(1, 4, 4), encoder_hidden_states=(1, 3, 5), pooled_projections=(1, 5), timestep=diffusion.STEP,
                     img_ids=(4, 3), txt_ids=(3, 3)), outputs=("sample",), towers=VISION),
]
