"""Text decoders with state spaces, recurrences or shared blocks beside attention."""

from __future__ import annotations

from .case import Case
from .known import EVEN, GROUPED

RMS = dict(rms_norm_eps=3e-4)
STATES = dict(mamba_d_state=5, mamba_d_conv=3, mamba_expand=2)
FALCON_H1 = EVEN | RMS | STATES | dict(
    num_key_value_heads=2, mamba_d_ssm=36, mamba_n_heads=6, mamba_d_head=6, mamba_n_groups=2, mamba_chunk_size=4,
    lm_head_multiplier=0.3, embedding_multiplier=3.0, key_multiplier=0.7, attention_out_multiplier=0.9,
    mlp_multipliers=[0.8, 0.6], ssm_multipliers=[0.4, 0.3, 0.35, 0.5, 0.45], ssm_in_multiplier=1.25, ssm_out_multiplier=0.2)
ZAMBA = dict(vocab_size=29, hidden_size=16, intermediate_size=20, num_hidden_layers=4, num_attention_heads=4,
             max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
             layers_block_type=["mamba", "hybrid", "mamba", "hybrid"]) | RMS | STATES
ZAMBA2 = ZAMBA | dict(n_mamba_heads=4, mamba_ngroups=2, chunk_size=4, layers_block_type=["mamba", "hybrid", "hybrid", "hybrid"])

XLSTM = dict(vocab_size=29, hidden_size=64, num_hidden_layers=1, qk_dim_factor=1.0, num_heads=4, norm_eps=3e-4, chunk_size=4,
             autocast_kernel_dtype="float32", return_last_states=True,
             ffn_round_up_to_multiple_of=8, ffn_proj_factor=0.4, output_logit_soft_cap=2.5,
             pad_token_id=0, bos_token_id=1, eos_token_id=2)

CASES = [
    Case("falcon_h1", "FalconH1ForCausalLM", FALCON_H1, note="attention and a state space beside each other, with multipliers"),
    Case("falcon_h1_norm", "FalconH1ForCausalLM",
         FALCON_H1 | dict(mamba_rms_norm=True, mamba_norm_before_gate=False), note="a norm of groups behind the gate"),
    Case("falcon_h1_gated", "FalconH1ForCausalLM",
         FALCON_H1 | dict(mamba_rms_norm=True, mamba_norm_before_gate=True), note="a norm of groups before the gate"),
    Case("zamba", "ZambaForCausalLM", ZAMBA | dict(num_key_value_heads=4, n_mamba_heads=2, mamba_dt_rank=3),
         note="two layers share a transformer block that also reads the embedding"),
    Case("zamba2", "Zamba2ForCausalLM",
         ZAMBA2 | dict(num_mem_blocks=2, adapter_rank=3, use_mem_rope=True, use_shared_attention_adapter=True),
         note="two shared blocks in turn, with maps of low rank beside those of each use"),
    Case("zamba2_plain", "Zamba2ForCausalLM", ZAMBA2 | dict(num_hidden_layers=3, layers_block_type=["mamba", "hybrid", "hybrid"], num_mem_blocks=2, adapter_rank=3),
         note="no adapters of attention and no positions"),
    Case("nemotron_h", "NemotronHForCausalLM",
         GROUPED | dict(layer_norm_epsilon=3e-4, mamba_num_heads=4, mamba_head_dim=6, ssm_state_size=5, n_groups=2,
                        conv_kernel=3, chunk_size=4, layers_block_type=["mamba", "moe", "attention", "mlp"],
                        n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=6,
                        moe_shared_expert_intermediate_size=14, routed_scaling_factor=1.7)),
    Case("nemotron_h_latent", "NemotronHForCausalLM",
         GROUPED | dict(layer_norm_epsilon=3e-4, mamba_num_heads=4, mamba_head_dim=6, ssm_state_size=5, n_groups=1,
                        conv_kernel=3, chunk_size=4, layers_block_type=["moe", "attention"], n_routed_experts=4,
                        num_experts_per_tok=2, moe_intermediate_size=6, moe_shared_expert_intermediate_size=14,
                        moe_latent_size=10), note="experts read a narrower map of the norm"),
    Case("xlstm", "xLSTMForCausalLM", XLSTM, note="norms of each head behind a recurrence"),
    Case("longcat_flash", "LongcatFlashForCausalLM",
         RMS | dict(vocab_size=29, hidden_size=16, num_layers=1, num_attention_heads=4, ffn_hidden_size=20,
                    expert_ffn_hidden_size=6, q_lora_rank=10, kv_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4,
                    head_dim=4, v_head_dim=5, moe_topk=2, n_routed_experts=3, zero_expert_num=1, routed_scaling_factor=1.7,
                    max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2),
         note="two blocks a layer; experts, some of which do nothing, are added behind the second"),
    Case("mllama_text", "MllamaForCausalLM",
         EVEN | RMS | dict(num_key_value_heads=2, num_hidden_layers=3, cross_attention_layers=[1]),
         inputs={"input_ids": 7, "cross_attention_states": (1, 5, 24)},
         note="a layer of gated cross-attention"),
]
