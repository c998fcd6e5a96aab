"""Mixtures of experts."""

from __future__ import annotations

from .case import Case
from .decoders import DELTA, SECTIONS
from .known import EVEN, GROUPED

RMS = dict(rms_norm_eps=3e-4)
EXPERTS = dict(num_experts=3, num_experts_per_tok=2, moe_intermediate_size=6)
LATENT = dict(vocab_size=29, hidden_size=16, intermediate_size=20, moe_intermediate_size=6, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=4, q_lora_rank=10, kv_lora_rank=8, qk_nope_head_dim=6,
              qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=4, n_shared_experts=2, num_experts_per_tok=2,
              n_group=2, topk_group=1, first_k_dense_replace=1, routed_scaling_factor=1.7, max_position_embeddings=32,
              bos_token_id=1, eos_token_id=2, pad_token_id=0)
GRANITE = EVEN | RMS | dict(num_key_value_heads=2, intermediate_size=6, embedding_multiplier=3.0, logits_scaling=5.0,
                            residual_multiplier=0.22, attention_multiplier=0.3)
STATE_SPACE = dict(layer_types=["linear_attention", "full_attention"], mamba_n_heads=4, mamba_d_head=12, mamba_n_groups=1,
                   mamba_d_state=5, mamba_d_conv=3, mamba_expand=2, mamba_chunk_size=4)

CASES = [
    Case("mixtral", "MixtralForCausalLM",
         GROUPED | RMS | dict(num_local_experts=3, num_experts_per_tok=2, sliding_window=4)),
    Case("qwen2_moe", "Qwen2MoeForCausalLM",
         {k: v for k, v in GROUPED.items() if k != "head_dim"} | RMS | EXPERTS
         | dict(hidden_size=24, shared_expert_intermediate_size=14, decoder_sparse_step=1, mlp_only_layers=[0],
                norm_topk_prob=False)),
    Case("qwen3_moe", "Qwen3MoeForCausalLM",
         GROUPED | RMS | EXPERTS | dict(decoder_sparse_step=1, mlp_only_layers=[1], norm_topk_prob=True)),
    # Experts in every layer, as llama.cpp's converter expects.
    Case("qwen2_moe_sparse", "Qwen2MoeForCausalLM",
         {k: v for k, v in GROUPED.items() if k != "head_dim"} | RMS | EXPERTS
         | dict(hidden_size=24, shared_expert_intermediate_size=14, decoder_sparse_step=1, norm_topk_prob=False)),
    Case("qwen3_moe_sparse", "Qwen3MoeForCausalLM",
         GROUPED | RMS | EXPERTS | dict(decoder_sparse_step=1, norm_topk_prob=True)),
    Case("olmoe", "OlmoeForCausalLM",
         EVEN | RMS | dict(num_key_value_heads=2, intermediate_size=6, num_experts=3, num_experts_per_tok=2,
                           clip_qkv=0.9), note="queries, keys and values are clamped behind norms over all heads"),
    Case("deepseek_v2", "DeepseekV2ForCausalLM", LATENT | RMS | dict(topk_method="group_limited_greedy")),
    Case("deepseek_v2_lite", "DeepseekV2ForCausalLM",
         LATENT | RMS | dict(q_lora_rank=None, topk_method="greedy", n_group=1, topk_group=1)),
    Case("deepseek_v3", "DeepseekV3ForCausalLM",
         LATENT | RMS | dict(norm_topk_prob=True, rope_interleave=True,
                             rope_parameters=dict(rope_type="yarn", rope_theta=300.0, factor=4.0, beta_fast=32.0,
                                                  beta_slow=1.0, mscale=0.7, mscale_all_dim=0.9,
                                                  original_max_position_embeddings=8))),
    Case("phimoe", "PhimoeForCausalLM",
         {k: v for k, v in GROUPED.items() if k != "head_dim"} | RMS
         | dict(hidden_size=24, intermediate_size=6, num_local_experts=3, num_experts_per_tok=2, sliding_window=4,
                attention_bias=True, lm_head_bias=True)),
    Case("glm4_moe", "Glm4MoeForCausalLM",
         GROUPED | RMS | dict(head_dim=8, partial_rotary_factor=0.5, moe_intermediate_size=6, n_routed_experts=4,
                              num_experts_per_tok=2, n_shared_experts=1, n_group=1, topk_group=1,
                              first_k_dense_replace=1, use_qk_norm=True, attention_bias=True)),
    Case("granitemoe", "GraniteMoeForCausalLM", GRANITE | dict(num_local_experts=3, num_experts_per_tok=2)),
    Case("granitemoeshared", "GraniteMoeSharedForCausalLM",
         GRANITE | dict(num_local_experts=3, num_experts_per_tok=2, shared_intermediate_size=10)),
    Case("qwen3_next", "Qwen3NextForCausalLM",
         GROUPED | RMS | EXPERTS | DELTA | dict(decoder_sparse_step=2, shared_expert_intermediate_size=14,
                                                rope_parameters=dict(rope_type="default", rope_theta=300.0,
                                                                     partial_rotary_factor=0.5))),
    Case("qwen3_5_moe", "Qwen3_5MoeForCausalLM",
         GROUPED | RMS | EXPERTS | DELTA | dict(shared_expert_intermediate_size=14)),
    Case("minimax", "MiniMaxForCausalLM",
         GROUPED | RMS | dict(num_local_experts=3, num_experts_per_tok=2, block_size=4, full_attn_alpha_factor=1.5,
                              full_attn_beta_factor=0.7, linear_attn_alpha_factor=1.3, linear_attn_beta_factor=0.8,
                              mlp_alpha_factor=1.2, mlp_beta_factor=0.9,
                              layer_types=["linear_attention", "full_attention"]),
         note="post-norm; lightning attention in the first layer"),
    Case("granitemoehybrid", "GraniteMoeHybridForCausalLM",
         GRANITE | STATE_SPACE | dict(num_local_experts=3, num_experts_per_tok=2, shared_intermediate_size=10,
                                      position_embedding_type="rope"), note="a state space in the first layer"),
    Case("granitemoehybrid_dense", "GraniteMoeHybridForCausalLM",
         GRANITE | STATE_SPACE | dict(num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=10),
         note="without experts and positions"),
    Case("minimax_m2", "MiniMaxM2ForCausalLM",
         GROUPED | RMS | dict(num_local_experts=3, num_experts_per_tok=2, rotary_dim=4)),
    Case("lfm2_moe", "Lfm2MoeForCausalLM",
         EVEN | EXPERTS | dict(num_key_value_heads=2, norm_eps=3e-4, layer_types=["conv", "full_attention"],
                               num_dense_layers=1)),
    Case("afmoe", "AfmoeForCausalLM",
         GROUPED | RMS | EXPERTS | dict(num_dense_layers=1, num_shared_experts=1, sliding_window=4, mup_enabled=True,
                                        layer_types=["sliding_attention", "full_attention"]),
         note="the global layer has no positions"),
    Case("qwen3_vl_moe", "Qwen3VLMoeTextModel",
         GROUPED | RMS | EXPERTS | SECTIONS | dict(decoder_sparse_step=1, mlp_only_layers=[1], norm_topk_prob=True,
                                                   tie_word_embeddings=False),
         outputs=("last_hidden_state",)),
    Case("jetmoe", "JetMoeForCausalLM",
         EVEN | RMS | dict(num_key_value_heads=2, kv_channels=6, num_local_experts=3, num_experts_per_tok=2),
         note="experts of queries"),
    Case("flex_olmo", "FlexOlmoForCausalLM",
         EVEN | RMS | dict(num_key_value_heads=2, num_experts=3, num_experts_per_tok=2)),
]
