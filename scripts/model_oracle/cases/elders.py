"""Text models of the years before 2022."""

from __future__ import annotations

from .case import Case
from .encoders import BART, PAIR, STACKS, T5
from .known import BERT

CONVBERT = BERT | dict(hidden_size=24, num_attention_heads=4, head_ratio=2, conv_kernel_size=3, embedding_size=10)
REFORMER = dict(vocab_size=29, hidden_size=12, attention_head_size=4, num_attention_heads=3, feed_forward_size=20,
                axial_pos_shape=[4, 4], axial_pos_embds_dim=[4, 8], attn_layers=["local", "lsh"], local_attn_chunk_length=4,
                lsh_attn_chunk_length=4, num_buckets=2, num_hashes=1, is_decoder=True, max_position_embeddings=16,
                layer_norm_eps=3e-4, pad_token_id=0, eos_token_id=2, hash_seed=1)

CASES = [
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
    Case("ctrl", "CTRLLMHeadModel",
         dict(vocab_size=29, n_positions=32, n_embd=40, dff=20, n_layer=2, n_head=4, layer_norm_epsilon=3e-4)),
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
         BERT | dict(hidden_size=16, embedding_size=10, intra_bottleneck_size=12, num_feedforward_networks=2),
         note="all norms but that of the language head only multiply and add"),
    Case("jina_embeddings_v3", "JinaEmbeddingsV3ForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("funnel", "FunnelForMaskedLM",
         dict(vocab_size=29, d_model=12, n_head=3, d_head=4, d_inner=20, block_sizes=[1, 1], num_decoder_layers=1,
              type_vocab_size=3, layer_norm_eps=3e-4, pad_token_id=0, max_position_embeddings=18)),
    Case("reformer", "ReformerModelWithLMHead", REFORMER),
    Case("perceiver", "PerceiverForMaskedLM",
         dict(vocab_size=29, d_model=12, d_latents=18, num_latents=5, num_blocks=1, num_self_attends_per_block=2,
              num_self_attention_heads=3, num_cross_attention_heads=3, qk_channels=12, v_channels=18,
              max_position_embeddings=10, layer_norm_eps=3e-4), inputs={"inputs": 7}),
]
