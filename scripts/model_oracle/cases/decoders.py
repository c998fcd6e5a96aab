"""Text decoders that were added after the oracle."""

from __future__ import annotations

from .case import Case
from .known import EVEN, GROUPED, LOCAL_GLOBAL

GROUPED_EVEN = EVEN | dict(num_key_value_heads=2)  # width 24, heads of 6, two of keys
PARTIAL = dict(partial_rotary_factor=0.67)  # 4 of 6
RMS = dict(rms_norm_eps=3e-4)
LAYER = dict(layer_norm_eps=3e-4)
FALCON = dict(vocab_size=29, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, layer_norm_epsilon=3e-4,
              ffn_hidden_size=20, bos_token_id=1, eos_token_id=2, max_position_embeddings=32)
GPT = dict(vocab_size=29, n_embd=18, n_layer=2, n_head=3, n_positions=12, n_inner=20, layer_norm_epsilon=3e-4,
           bos_token_id=1, eos_token_id=2)
# Global layers of SmolLM3, Cohere 2, EXAONE 4 and Llama 4 have no rotary embedding.
NO_ROPE = dict(no_rope_layers=[1, 0])
PER_LAYER = dict(hidden_size_per_layer_input=5, vocab_size_per_layer_input=29)
WIDE_GLOBAL = dict(global_head_dim=8, sliding_window=4,
                   rope_parameters=dict(full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5,
                                                            rope_theta=700.0),
                                        sliding_attention=dict(rope_type="default", rope_theta=50.0)))
# Layers without attention; every head of their keys serves two of values.
DELTA = dict(head_dim=8, linear_conv_kernel_dim=3, linear_key_head_dim=5, linear_value_head_dim=7,
             linear_num_key_heads=2, linear_num_value_heads=4, layer_types=["linear_attention", "full_attention"])

CASES = [
    Case("phi", "PhiForCausalLM", GROUPED_EVEN | LAYER | PARTIAL),
    Case("phi_qk_norm", "PhiForCausalLM", GROUPED_EVEN | LAYER | PARTIAL | dict(qk_layernorm=True)),
    Case("phi3", "Phi3ForCausalLM", GROUPED_EVEN | RMS | dict(sliding_window=4)),
    Case("phi3_longrope", "Phi3ForCausalLM",
         GROUPED_EVEN | RMS | PARTIAL | dict(
             max_position_embeddings=16, original_max_position_embeddings=4,
             rope_parameters=dict(rope_type="longrope", rope_theta=300.0, partial_rotary_factor=0.67,
                                  original_max_position_embeddings=4, short_factor=[1.1, 1.3],
                                  long_factor=[2.0, 5.0]))),
    Case("falcon_7b", "FalconForCausalLM", FALCON | dict(multi_query=True, parallel_attn=True, bias=False),
         note="one key head, one norm for attention and MLP, rotary"),
    Case("falcon_40b", "FalconForCausalLM",
         FALCON | dict(new_decoder_architecture=True, num_kv_heads=2, bias=False), note="two norms beside each other"),
    Case("falcon_11b", "FalconForCausalLM",
         FALCON | dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, bias=False)),
    Case("falcon_alibi", "FalconForCausalLM",
         FALCON | dict(alibi=True, multi_query=False, parallel_attn=False, bias=True), attention="sdpa",
         note="as Falcon-RW-1B; the eager attention of this version adds ALiBi twice"),
    Case("bloom", "BloomForCausalLM",
         dict(vocab_size=29, hidden_size=18, n_layer=2, n_head=3, layer_norm_epsilon=3e-4, bos_token_id=1,
              eos_token_id=2, pad_token_id=0)),
    Case("bloom_post_residual", "BloomForCausalLM",
         dict(vocab_size=29, hidden_size=12, n_layer=2, n_head=3, layer_norm_epsilon=3e-4, bos_token_id=1,
              eos_token_id=2, pad_token_id=0, apply_residual_connection_post_layernorm=True)),
    Case("mpt", "MptForCausalLM",
         dict(vocab_size=29, d_model=16, n_heads=2, n_layers=2, max_seq_len=12, expansion_ratio=2,
              layer_norm_epsilon=3e-4, attn_config=dict(alibi=True, clip_qkv=0.8)),
         note="queries, keys and values are clamped"),
    Case("mpt_scaled", "MptForCausalLM",
         dict(vocab_size=29, d_model=18, n_heads=3, n_layers=2, max_seq_len=12, expansion_ratio=2,
              attn_config=dict(alibi=True, alibi_bias_max=4, softmax_scale=0.5))),
    Case("gptj", "GPTJForCausalLM", GPT | dict(rotary_dim=4, tie_word_embeddings=False)),
    Case("gpt_neo", "GPTNeoForCausalLM",
         dict(vocab_size=29, hidden_size=24, num_layers=2, num_heads=3, intermediate_size=20, window_size=4,
              attention_types=[[["global", "local"], 1]], max_position_embeddings=12, layer_norm_epsilon=3e-4,
              bos_token_id=1, eos_token_id=2)),
    Case("codegen", "CodeGenForCausalLM", GPT | dict(n_embd=24, n_head=4, rotary_dim=4, n_ctx=12)),
    Case("gpt_bigcode", "GPTBigCodeForCausalLM", GPT | dict(multi_query=True)),
    Case("gpt_bigcode_multi_head", "GPTBigCodeForCausalLM", GPT | dict(multi_query=False)),
    Case("starcoder2", "Starcoder2ForCausalLM", GROUPED_EVEN | dict(norm_epsilon=3e-4, sliding_window=4)),
    Case("stablelm_parallel", "StableLmForCausalLM",
         GROUPED_EVEN | LAYER | PARTIAL | dict(use_parallel_residual=True, qk_layernorm=True, use_qkv_bias=True)),
    Case("persimmon", "PersimmonForCausalLM",
         EVEN | LAYER | PARTIAL | dict(qk_layernorm=True)),
    Case("nemotron", "NemotronForCausalLM",
         GROUPED | dict(head_dim=8, norm_eps=3e-4, partial_rotary_factor=0.5), note="gains are stored minus 1"),
    Case("olmo", "OlmoForCausalLM", GROUPED_EVEN | dict(clip_qkv=0.8),
         note="norms without gain; queries, keys and values are clamped"),
    Case("olmo2", "Olmo2ForCausalLM", GROUPED_EVEN | RMS),
    Case("olmo3", "Olmo3ForCausalLM", GROUPED_EVEN | RMS | dict(sliding_window=4, layer_types=LOCAL_GLOBAL)),
    Case("cohere2", "Cohere2ForCausalLM",
         GROUPED | LAYER | dict(sliding_window=4, layer_types=LOCAL_GLOBAL, logit_scale=0.4),
         note="the global layer has no positions"),
    Case("glm", "GlmForCausalLM", GROUPED | RMS | dict(head_dim=8, partial_rotary_factor=0.5, attention_bias=True)),
    Case("glm4", "Glm4ForCausalLM", GROUPED | RMS | dict(head_dim=8, partial_rotary_factor=0.5)),
    Case("exaone4", "Exaone4ForCausalLM",
         GROUPED | RMS | dict(sliding_window=4, layer_types=LOCAL_GLOBAL), note="the global layer has no positions"),
    Case("smollm3", "SmolLM3ForCausalLM", GROUPED_EVEN | RMS | NO_ROPE, note="the second layer has no positions"),
    Case("gpt_oss", "GptOssForCausalLM",
         GROUPED | RMS | dict(sliding_window=4, layer_types=LOCAL_GLOBAL, num_local_experts=3, num_experts_per_tok=2,
                              rope_parameters=dict(rope_type="yarn", rope_theta=300.0, factor=4.0, beta_fast=32.0,
                                                   beta_slow=1.0, truncate=False,
                                                   original_max_position_embeddings=8))),
    Case("llama4", "Llama4ForCausalLM",
         GROUPED | RMS | NO_ROPE | dict(
             head_dim=8, intermediate_size_mlp=22, num_local_experts=3, num_experts_per_tok=1,
             interleave_moe_layer_step=2, attention_chunk_size=4, attn_temperature_tuning=True, floor_scale=3,
             attn_scale=0.5, use_qk_norm=True)),
    Case("ministral", "MinistralForCausalLM",
         GROUPED | RMS | dict(sliding_window=4, layer_types=LOCAL_GLOBAL)),
    Case("seed_oss", "SeedOssForCausalLM", GROUPED | RMS | dict(attention_bias=True, attention_out_bias=False)),
    Case("apertus", "ApertusForCausalLM", GROUPED_EVEN | RMS),
    Case("nanochat", "NanoChatForCausalLM", GROUPED_EVEN | RMS | dict(final_logit_softcapping=2.5),
         note="norms without gain, one of them twice; positions turn the other way"),
    Case("diffllama", "DiffLlamaForCausalLM", GROUPED_EVEN | RMS,
         note="differences of two heads pass a norm without gain"),
    Case("gemma3n", "Gemma3nForCausalLM",
         GROUPED | RMS | PER_LAYER | dict(
             hidden_size=24, num_hidden_layers=4, layer_types=LOCAL_GLOBAL * 2, sliding_window=4, laurel_rank=5,
             num_kv_shared_layers=2, altup_num_inputs=3, final_logit_softcapping=2.5,
             activation_sparsity_pattern=[0.6, 0.0, 0.6, 0.0],
             rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=700.0),
                                  sliding_attention=dict(rope_type="default", rope_theta=50.0))),
         note="norms of values without gain; the last two layers use earlier keys"),
    Case("gemma4", "Gemma4ForCausalLM",
         GROUPED | RMS | PER_LAYER | WIDE_GLOBAL | dict(num_hidden_layers=4, layer_types=LOCAL_GLOBAL * 2,
                                                        num_kv_shared_layers=2, use_double_wide_mlp=True),
         note="norms of values without gain; wider heads in global layers; the last two use earlier keys"),
    Case("gemma4_moe", "Gemma4ForCausalLM",
         GROUPED | RMS | WIDE_GLOBAL | dict(
             layer_types=LOCAL_GLOBAL, hidden_size_per_layer_input=0, attention_k_eq_v=True,
             num_key_value_heads=4, num_global_key_value_heads=2, enable_moe_block=True, num_experts=3, top_k_experts=2,
             moe_intermediate_size=6, final_logit_softcapping=2.5),
         note="the router's norm has no gain; keys are values in global layers"),
    Case("vaultgemma", "VaultGemmaForCausalLM",
         GROUPED | RMS | dict(query_pre_attn_scalar=11, sliding_window=4, attn_logit_softcapping=2.5,
                              final_logit_softcapping=3.5, layer_types=LOCAL_GLOBAL)),
    Case("arcee", "ArceeForCausalLM", GROUPED | RMS),
    Case("jais2", "Jais2ForCausalLM", GROUPED_EVEN | LAYER),
    Case("qwen3_5", "Qwen3_5ForCausalLM",
         GROUPED | RMS | DELTA | dict(rope_parameters=dict(rope_type="default", rope_theta=300.0, partial_rotary_factor=0.5,
                                                           mrope_section=[1, 1, 0], mrope_interleaved=True)),
         note="gates beside queries; gated delta nets, whose norms store their gain whole"),
]
