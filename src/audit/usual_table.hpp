#pragma once

#include <normscope/audit/usual.hpp>

/// Written by scripts/usual from reports of trained models; not edited by hand.
namespace normscope::audit {

// clang-format off
inline constexpr std::string_view architectures_0[] = {"gpt2", "gguf_gpt2", "transformer_lens"};
inline constexpr std::string_view models_0[] = {"GPT-2 small", "GPT-2 medium", "minGPT that sorts (width 48)", "GPT of word lists (width 64)"};
inline constexpr UsualRange ranges_0[] = {
    {"condition", 1.137, 189},
    {"longest_over_median", 1.056, 5.031},
    {"effective_share", 0.5608, 0.9979},
    {"switched_off_share", 0.0, 0.001303},
    {"cosine_to_ones", 0.06013, 0.9998},
    {"shift_over_radius", 0.01497, 0.23},
    {"similarity", 0.6779, 0.9978},
};
inline constexpr std::string_view architectures_1[] = {"llama", "llama2c", "gguf_llama"};
inline constexpr std::string_view models_1[] = {"llama2.c stories260K (width 64)"};
inline constexpr UsualRange ranges_1[] = {
    {"condition", 2.038, 5.34},
    {"longest_over_median", 1.192, 2.581},
    {"effective_share", 0.6238, 0.9512},
    {"switched_off_share", 0.0, 0.0},
    {"similarity", 0.7328, 0.9436},
};
inline constexpr std::string_view architectures_2[] = {"vit", "galileo", "presto", "timm_vit", "torch_vit", "vit_pytorch", "dinov2", "beit"};
inline constexpr std::string_view models_2[] = {"Galileo nano encoder (width 128)", "Presto (width 128)", "ViT of MNIST (width 32)"};
inline constexpr UsualRange ranges_2[] = {
    {"condition", 1.289, 4783},
    {"longest_over_median", 1.151, 2.932},
    {"effective_share", 0.4359, 0.9874},
    {"switched_off_share", 0.0, 0.05469},
    {"cosine_to_ones", 0.106, 0.9986},
    {"shift_over_radius", 0.03227, 0.4883},
    {"similarity", 0.1835, 0.9892},
};
inline constexpr std::string_view architectures_3[] = {"albert"};
inline constexpr std::string_view models_3[] = {"RXNMapper (width 256)"};
inline constexpr UsualRange ranges_3[] = {
    {"condition", 2.035, 5.079},
    {"longest_over_median", 1.161, 1.53},
    {"effective_share", 0.8978, 0.9813},
    {"switched_off_share", 0.0, 0.0},
    {"cosine_to_ones", 0.9581, 0.9967},
    {"shift_over_radius", 0.1193, 0.2326},
    {"similarity", 0.9598, 0.9599},
};
inline constexpr std::string_view architectures_4[] = {"rwkv"};
inline constexpr std::string_view models_4[] = {"RWKV-5 tiny (width 64)"};
inline constexpr UsualRange ranges_4[] = {
    {"condition", 1.089, 1.31},
    {"longest_over_median", 1.038, 1.179},
    {"effective_share", 0.9852, 0.9986},
    {"switched_off_share", 0.0, 0.0},
    {"cosine_to_ones", 0.9982, 0.9999},
    {"shift_over_radius", 0.01534, 0.05495},
    {"similarity", 0.9901, 0.9985},
};
inline constexpr UsualFamily usual_families[] = {
    {"GPT-2", architectures_0, models_0, 90, ranges_0},
    {"Llama", architectures_1, models_1, 11, ranges_1},
    {"ViT", architectures_2, models_2, 22, ranges_2},
    {"ALBERT", architectures_3, models_3, 3, ranges_3},
    {"RWKV", architectures_4, models_4, 26, ranges_4},
};
// clang-format on

}  // namespace normscope::audit
