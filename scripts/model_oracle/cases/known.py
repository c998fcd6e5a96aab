"""Architectures that are older than the oracle; they test the oracle as well."""

from __future__ import annotations

import torch

from .case import Case

# Every dimension differs from the others: width 16, queries 4 x 6, keys 2 x 6, inner 20, vocabulary 29.
GROUPED = dict(vocab_size=29, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, head_dim=6, max_position_embeddings=32, pad_token_id=0, bos_token_id=1,
               eos_token_id=2)
# For families whose heads share the width out evenly.
EVEN = dict(vocab_size=29, hidden_size=24, intermediate_size=14, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
BERT = dict(vocab_size=29, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
            max_position_embeddings=18, type_vocab_size=2, layer_norm_eps=3e-4, pad_token_id=0)


def large_biases(model: torch.nn.Module) -> None:
    """Biases of queries and keys that no query of the maps outweighs, so that no attention is uniform."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("c_attn.bias", "q_proj.bias", "k_proj.bias")):
                parameter.mul_(25.0)


LOCAL_GLOBAL = ["sliding_attention", "full_attention"]

CASES = [
    Case("gpt2", "GPT2LMHeadModel", dict(vocab_size=29, n_embd=18, n_layer=2, n_head=3, n_positions=12, n_inner=20,
                                        layer_norm_epsilon=3e-4, bos_token_id=1, eos_token_id=2)),
    Case("openai_gpt", "OpenAIGPTLMHeadModel",
         dict(vocab_size=29, n_embd=18, n_layer=2, n_head=3, n_positions=12, layer_norm_epsilon=3e-4)),
    Case("gpt2_scaled", "GPT2LMHeadModel",
         dict(vocab_size=29, n_embd=12, n_layer=2, n_head=3, n_positions=12, layer_norm_epsilon=2e-5,
              scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2),
         prepare=large_biases),
    Case("llama", "LlamaForCausalLM", GROUPED | dict(rms_norm_eps=3e-4, rope_theta=500.0)),
    Case("llama_biased", "LlamaForCausalLM",
         GROUPED | dict(head_dim=8, rms_norm_eps=2e-5, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                        rope_parameters=dict(rope_type="llama3", rope_theta=900.0, factor=4.0, low_freq_factor=1.0,
                                             high_freq_factor=4.0, original_max_position_embeddings=16)),
         prepare=large_biases),
    Case("gemma", "GemmaForCausalLM", GROUPED | dict(rms_norm_eps=3e-4)),
    Case("gemma2", "Gemma2ForCausalLM",
         GROUPED | dict(rms_norm_eps=3e-4, query_pre_attn_scalar=11, sliding_window=4, attn_logit_softcapping=2.5,
                        final_logit_softcapping=3.5, layer_types=LOCAL_GLOBAL)),
    Case("gemma3", "Gemma3ForCausalLM",
         GROUPED | dict(rms_norm_eps=3e-4, query_pre_attn_scalar=11, sliding_window=4, layer_types=LOCAL_GLOBAL,
                        rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=700.0),
                                             sliding_attention=dict(rope_type="default", rope_theta=50.0)))),
    Case("qwen2", "Qwen2ForCausalLM",
         {k: v for k, v in GROUPED.items() if k != "head_dim"}
         | dict(hidden_size=24, rms_norm_eps=3e-4, use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    Case("qwen3", "Qwen3ForCausalLM", GROUPED | dict(rms_norm_eps=3e-4, tie_word_embeddings=True)),
    Case("mistral", "MistralForCausalLM", GROUPED | dict(rms_norm_eps=3e-4, sliding_window=4)),
    Case("bert", "BertForMaskedLM", BERT),
    Case("roberta", "RobertaForMaskedLM", BERT | dict(pad_token_id=1)),
    Case("gpt_neox", "GPTNeoXForCausalLM", EVEN | dict(rotary_pct=0.67, layer_norm_eps=3e-4)),
    Case("gpt_neox_sequential", "GPTNeoXForCausalLM",
         EVEN | dict(rotary_pct=0.34, layer_norm_eps=2e-5, use_parallel_residual=False,
                     attention_bias=False)),
    Case("opt", "OPTForCausalLM", dict(vocab_size=29, hidden_size=18, ffn_dim=20, num_hidden_layers=2,
                                       num_attention_heads=3, max_position_embeddings=12, word_embed_proj_dim=18,
                                       bos_token_id=2, eos_token_id=2)),
    Case("opt_post", "OPTForCausalLM",
         dict(vocab_size=29, hidden_size=18, ffn_dim=20, num_hidden_layers=2, num_attention_heads=3,
              max_position_embeddings=12, word_embed_proj_dim=10, do_layer_norm_before=False, bos_token_id=2,
              eos_token_id=2), note="as OPT-350M: post-norm, embeddings narrower than the stream, no final norm"),
    Case("stablelm", "StableLmForCausalLM",
         EVEN | dict(num_key_value_heads=2, layer_norm_eps=3e-4, partial_rotary_factor=0.67)),
    Case("cohere", "CohereForCausalLM",
         EVEN | dict(num_key_value_heads=2, layer_norm_eps=3e-4, logit_scale=0.4)),
    Case("cohere_qk_norm", "CohereForCausalLM",
         EVEN | dict(num_key_value_heads=2, layer_norm_eps=3e-4, use_qk_norm=True)),
    Case("granite", "GraniteForCausalLM",
         {k: v for k, v in GROUPED.items() if k != "head_dim"}
         | dict(hidden_size=24, rms_norm_eps=3e-4, embedding_multiplier=3.0, logits_scaling=5.0,
                residual_multiplier=0.22, attention_multiplier=0.3)),
    Case("albert", "AlbertForMaskedLM", BERT | dict(embedding_size=10, num_hidden_groups=1)),
    Case("albert_groups", "AlbertForMaskedLM",
         BERT | dict(embedding_size=10, num_hidden_groups=2, inner_group_num=1, num_hidden_layers=4)),
    Case("vit", "ViTForImageClassification",
         dict(hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3, image_size=8,
              patch_size=4, num_channels=3, layer_norm_eps=3e-4, num_labels=7),
         inputs={"pixel_values": (1, 3, 8, 8)}, towers={"": "vision"}),
]
