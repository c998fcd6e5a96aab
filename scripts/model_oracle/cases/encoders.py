"""Encoders, encoder-decoder models and models of two towers."""

from __future__ import annotations

import torch

from .. import open_clip_models
from .case import Case
from .known import BERT

STACKS = {"encoder": "encoder", "model.encoder": "encoder", "decoder": "decoder", "model.decoder": "decoder"}
PAIR = {"input_ids": 7, "decoder_input_ids": [2, 13, 6, 20, 9, 17]}
T5 = dict(vocab_size=29, d_model=14, d_kv=6, d_ff=20, num_layers=2, num_decoder_layers=2, num_heads=3,
          relative_attention_num_buckets=6, relative_attention_max_distance=5, layer_norm_epsilon=3e-4,
          pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
BART = dict(vocab_size=29, d_model=12, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
            decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=28, max_position_embeddings=12,
            pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2)
TWO_TOWERS = {"text_model": "text", "vision_model": "vision"}
OWL_TOWERS = {"owlvit.text_model": "text", "owlvit.vision_model": "vision", "owlv2.text_model": "text",
              "owlv2.vision_model": "vision", "layer_norm": "vision"}
CLIP_TEXT = dict(vocab_size=29, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
                 max_position_embeddings=10, layer_norm_eps=3e-4, bos_token_id=1, eos_token_id=28, pad_token_id=0)
CLIP_VISION = dict(hidden_size=16, intermediate_size=28, num_hidden_layers=2, num_attention_heads=2, image_size=8,
                   patch_size=4, layer_norm_eps=2e-4)
TEXT_AND_IMAGE = {"input_ids": [1, 7, 19, 3, 26, 28], "pixel_values": (1, 3, 8, 8)}
T5GEMMA = dict(vocab_size=29, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, head_dim=6, max_position_embeddings=32, rms_norm_eps=3e-4, query_pre_attn_scalar=11,
               sliding_window=4, attn_logit_softcapping=2.5, final_logit_softcapping=3.5, pad_token_id=0, bos_token_id=1,
               eos_token_id=2)
DEBERTA = BERT | dict(layer_norm_eps=3e-4, relative_attention=True, pos_att_type=["c2p", "p2c"],
                      position_biased_input=False, max_relative_positions=-1, type_vocab_size=0)
CONVBERT = BERT | dict(hidden_size=24, num_attention_heads=4, head_ratio=2, conv_kernel_size=3, embedding_size=10)


def small_weights(model: torch.nn.Module) -> None:
    """Maps of an encoder without norms, so that its stream does not grow."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".encoder." in name and parameter.ndim == 2:
                parameter.mul_(0.3)


def no_padding(model: torch.nn.Module) -> None:
    """The token of padding is zero, as the class makes it when it reads a file."""
    with torch.no_grad():
        model.get_input_embeddings().weight[0] = 0.0


CASES = [
    Case("t5", "T5ForConditionalGeneration", T5 | dict(feed_forward_proj="relu"), PAIR, towers=STACKS),
    Case("t5_gated", "T5ForConditionalGeneration",
         T5 | dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False), PAIR, towers=STACKS),
    Case("tapas", "TapasForMaskedLM", BERT | dict(type_vocab_sizes=[3, 4, 4, 2], reset_position_index_per_cell=False),
         {"input_ids": 7, "token_type_ids": [[0, 0, 0, 0], [1, 1, 1, 0], [1, 2, 1, 1], [1, 1, 2, 0], [1, 2, 2, 1], [1, 3, 3, 0],
                                            [2, 3, 1, 0]]}),
    Case("bert_encoder", "BertModel", BERT, outputs=("last_hidden_state", "pooler_output"),
         note="without a language head, as embedding models are published"),
    Case("nomic_bert", "NomicBertModel", BERT | dict(hidden_act="silu", max_position_embeddings=2048),
         outputs=("last_hidden_state",)),
    Case("t5_encoder", "T5EncoderModel", T5 | dict(feed_forward_proj="gated-gelu"), {"input_ids": 8},
         outputs=("last_hidden_state",), towers={"": "encoder"}),
    Case("umt5", "UMT5ForConditionalGeneration", T5 | dict(feed_forward_proj="gated-gelu"), PAIR, towers=STACKS),
    Case("bart", "BartForConditionalGeneration", BART | dict(scale_embedding=True), PAIR, towers=STACKS),
    Case("mbart", "MBartForConditionalGeneration", BART, PAIR, towers=STACKS),
    Case("blenderbot_small", "BlenderbotSmallForConditionalGeneration", BART, PAIR, towers=STACKS,
         note="the decoder adds positions behind its first norm"),
    Case("blenderbot", "BlenderbotForConditionalGeneration", BART, PAIR, towers=STACKS),
    Case("pegasus", "PegasusForConditionalGeneration", BART, PAIR, towers=STACKS),
    Case("m2m_100", "M2M100ForConditionalGeneration", BART, PAIR, towers=STACKS),
    Case("plbart", "PLBartForConditionalGeneration", BART, PAIR, towers=STACKS),
    Case("marian", "MarianMTModel", BART | dict(pad_token_id=28, decoder_start_token_id=28), PAIR, towers=STACKS),
    Case("whisper", "WhisperForConditionalGeneration",
         dict(vocab_size=29, d_model=12, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
              decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=28, num_mel_bins=5,
              max_source_positions=6, max_target_positions=12, pad_token_id=0, bos_token_id=1, eos_token_id=2,
              decoder_start_token_id=1, begin_suppress_tokens=None),
         {"input_features": (1, 5, 12), "decoder_input_ids": [1, 13, 6, 20, 9, 17]}, towers=STACKS),
    Case("owlvit", "OwlViTForObjectDetection",
         dict(text_config=CLIP_TEXT, vision_config=CLIP_VISION, projection_dim=12), TEXT_AND_IMAGE,
         ("logits", "pred_boxes"), OWL_TOWERS),
    Case("owlv2", "Owlv2ForObjectDetection",
         dict(text_config=CLIP_TEXT, vision_config=CLIP_VISION, projection_dim=12), TEXT_AND_IMAGE,
         ("logits", "pred_boxes"), OWL_TOWERS),
    Case("clip", "CLIPModel", dict(text_config=CLIP_TEXT, vision_config=CLIP_VISION, projection_dim=10),
         TEXT_AND_IMAGE, ("text_embeds", "image_embeds", "logits_per_text"), TWO_TOWERS),
    Case("clip_text", "CLIPTextModelWithProjection", CLIP_TEXT | dict(projection_dim=10),
         {"input_ids": TEXT_AND_IMAGE["input_ids"]}, ("text_embeds",)),
    Case("clip_vision", "CLIPVisionModelWithProjection", CLIP_VISION | dict(projection_dim=10),
         {"pixel_values": (1, 3, 8, 8)}, ("image_embeds",), {"": "vision"}),
    Case("clip_text_bare", "CLIPTextModel", CLIP_TEXT, {"input_ids": TEXT_AND_IMAGE["input_ids"]}, ("last_hidden_state",)),
    Case("siglip_vision", "SiglipVisionModel", CLIP_VISION, {"pixel_values": (1, 3, 8, 8)}, ("last_hidden_state",),
         {"": "vision"}),
    Case("siglip", "SiglipModel",
         dict(text_config=CLIP_TEXT | dict(projection_size=16), vision_config=CLIP_VISION),
         {"input_ids": [7, 19, 3, 26, 11, 28, 5, 14, 21, 9], "pixel_values": (1, 3, 8, 8)},
         ("text_embeds", "image_embeds", "logits_per_text"), TWO_TOWERS),
    Case("open_clip", open_clip_models.two_towers, inputs={"image": (1, 3, 8, 8), "text": [1, 7, 19, 3, 26, 11, 23, 5, 14, 28]},
         outputs=("text_features", "image_features"), towers={"": "text", "visual": "vision"}),
    Case("distilbert", "DistilBertForMaskedLM",
         dict(vocab_size=29, dim=12, hidden_dim=20, n_layers=2, n_heads=3, max_position_embeddings=18,
              pad_token_id=0)),
    Case("electra", "ElectraForMaskedLM", BERT | dict(embedding_size=10)),
    Case("electra_discriminator", "ElectraForPreTraining", BERT | dict(embedding_size=12)),
    Case("deberta", "DebertaForMaskedLM", DEBERTA),
    Case("deberta_v2", "DebertaV2ForMaskedLM",
         DEBERTA | dict(position_buckets=4, norm_rel_ebd="layer_norm", share_att_key=False, conv_kernel_size=3,
                        conv_act="gelu"), note="as DeBERTa-v2-xlarge: keys and queries of positions of their own, a "
                                               "convolution beside the first layer"),
    Case("deberta_v3", "DebertaV2ForMaskedLM",
         DEBERTA | dict(position_buckets=4, norm_rel_ebd="layer_norm", share_att_key=True)),
    Case("modernbert", "ModernBertForMaskedLM",
         dict(vocab_size=29, hidden_size=12, intermediate_size=20, num_hidden_layers=3, num_attention_heads=3,
              max_position_embeddings=18, norm_eps=3e-4, local_attention=4, global_attn_every_n_layers=3,
              pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
              global_rope_theta=900.0, local_rope_theta=50.0)),
    Case("esm", "EsmForMaskedLM",
         BERT | dict(position_embedding_type="rotary", emb_layer_norm_before=False, token_dropout=True,
                     mask_token_id=28, pad_token_id=1), note="as ESM-2"),
    Case("esm_absolute", "EsmForMaskedLM",
         BERT | dict(position_embedding_type="absolute", emb_layer_norm_before=True, token_dropout=False,
                     mask_token_id=28, pad_token_id=1), note="as ESM-1b"),
    Case("xlm_roberta", "XLMRobertaForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("camembert", "CamembertForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("mt5", "MT5ForConditionalGeneration", T5 | dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False), PAIR,
         towers=STACKS),
    Case("mpnet", "MPNetForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("rembert", "RemBertForMaskedLM", BERT | dict(input_embedding_size=10, output_embedding_size=14)),
    Case("modernbert_decoder", "ModernBertDecoderForCausalLM",
         dict(vocab_size=29, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
              max_position_embeddings=18, norm_eps=3e-4, sliding_window=4, pad_token_id=0, bos_token_id=1, eos_token_id=2,
              cls_token_id=1, sep_token_id=2, layer_types=["full_attention", "sliding_attention"],
              rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=900.0),
                                   sliding_attention=dict(rope_type="default", rope_theta=50.0)))),
    Case("t5gemma", "T5GemmaForConditionalGeneration", dict(encoder=T5GEMMA, decoder=T5GEMMA | dict(hidden_size=20), vocab_size=29),
         PAIR, towers=STACKS),
    Case("ernie", "ErnieForMaskedLM", BERT | dict(use_task_id=True, task_type_vocab_size=3)),
    Case("data2vec_text", "Data2VecTextForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("megatron_bert", "MegatronBertForMaskedLM", BERT),
    Case("dpr", "DPRQuestionEncoder", BERT | dict(projection_dim=7), outputs=("pooler_output",)),
    Case("layoutlm", "LayoutLMForMaskedLM", BERT | dict(max_2d_position_embeddings=11),
         {"input_ids": 7, "bbox": [[i, 8 - i, i + 2, 9 - i // 2] for i in range(7)]}, note="places on a page"),
    Case("roc_bert", "RoCBertForMaskedLM",
         BERT | dict(shape_vocab_size=7, pronunciation_vocab_size=8, shape_embed_dim=6, pronunciation_embed_dim=4),
         {"input_ids": 7, "input_shape_ids": [3, 1, 4, 1, 5, 6, 2], "input_pronunciation_ids": [2, 7, 1, 4, 2, 6, 3]},
         note="a map of three embeddings"),
    Case("xlm_roberta_xl", "XLMRobertaXLForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("roberta_prelayernorm", "RobertaPreLayerNormForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("longt5", "LongT5ForConditionalGeneration",
         T5 | dict(feed_forward_proj="gated-gelu", local_radius=2, encoder_attention_type="local", tie_word_embeddings=False),
         PAIR, towers=STACKS),
    Case("longt5_global", "LongT5ForConditionalGeneration",
         T5 | dict(feed_forward_proj="relu", local_radius=2, global_block_size=3, encoder_attention_type="transient-global"),
         PAIR, towers=STACKS),
    Case("prophetnet", "ProphetNetForConditionalGeneration",
         dict(vocab_size=29, hidden_size=12, encoder_ffn_dim=20, num_encoder_layers=2, num_encoder_attention_heads=3,
              decoder_ffn_dim=28, num_decoder_layers=2, num_decoder_attention_heads=2, max_position_embeddings=18, ngram=2,
              num_buckets=6, relative_max_distance=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
              decoder_start_token_id=0), PAIR, towers={"prophetnet.encoder": "encoder", "prophetnet.decoder": "decoder"}),
    Case("xlnet", "XLNetLMHeadModel", dict(vocab_size=29, d_model=12, n_layer=2, n_head=3, d_inner=20, layer_norm_eps=3e-4)),
    Case("xlm", "XLMWithLMHeadModel",
         dict(vocab_size=29, emb_dim=12, n_layers=2, n_heads=3, max_position_embeddings=18, layer_norm_eps=3e-4, n_langs=2,
              use_lang_emb=True, pad_token_id=0, bos_token_id=1, eos_token_id=2),
         inputs={"input_ids": 7, "langs": [0, 0, 0, 1, 1, 1, 1]}),
    Case("fnet", "FNetForMaskedLM",
         dict(vocab_size=29, hidden_size=12, intermediate_size=20, num_hidden_layers=2, max_position_embeddings=18,
              type_vocab_size=2, layer_norm_eps=3e-4, pad_token_id=0)),
    Case("convbert", "ConvBertForMaskedLM", CONVBERT),
    Case("mobilebert", "MobileBertForMaskedLM",
         BERT | dict(hidden_size=16, embedding_size=10, intra_bottleneck_size=12, num_feedforward_networks=2), prepare=small_weights,
         note="all norms but that of the language head only multiply and add"),
    Case("jina_embeddings_v3", "JinaEmbeddingsV3ForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("perceiver", "PerceiverForMaskedLM",
         dict(vocab_size=29, d_model=16, d_latents=18, num_latents=5, num_blocks=1, num_self_attends_per_block=2,
              num_self_attention_heads=3, num_cross_attention_heads=3, qk_channels=12, v_channels=18,
              max_position_embeddings=10), inputs={"inputs": 7}, note="learned vectors attend to the input"),
    Case("funnel", "FunnelForMaskedLM",
         dict(vocab_size=29, d_model=12, n_head=3, d_head=4, d_inner=20, block_sizes=[1, 1], num_decoder_layers=1,
              type_vocab_size=3, layer_norm_eps=3e-4, pad_token_id=0, max_position_embeddings=18), prepare=no_padding,
         note="positions are pooled before the second block"),
]
