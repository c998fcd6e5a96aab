#pragma once

#include <normscope/audit/usual.hpp>

/// Written by scripts/usual from reports of trained models; not edited by hand.
namespace normscope::audit {

// clang-format off
inline constexpr std::string_view architectures_0[] = {"gpt2", "gguf_gpt2", "transformer_lens"};
inline constexpr std::string_view models_0[] = {"GPT-2 small", "GPT-2 medium", "minGPT that sorts (width 48)", "GPT of word lists (width 64)"};
inline constexpr UsualRange ranges_0[] = {
    {"condition", 1.064, 3720},
    {"longest_over_median", 1.021, 13.92},
    {"effective_share", 0.03908, 0.9994},
    {"switched_off_share", 0.0, 0.005209},
    {"cosine_to_ones", 0.01145, 1},
    {"shift_over_radius", 0.008538, 0.4089},
    {"similarity", 0.1789, 0.9993},
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
    {"condition", 1.238, 9336},
    {"longest_over_median", 1.112, 9.121},
    {"effective_share", 0.07214, 0.99},
    {"switched_off_share", 0.0, 0.1407},
    {"cosine_to_ones", 0.09676, 0.9988},
    {"shift_over_radius", 0.02118, 0.9215},
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
    {"condition", 1.088, 1.323},
    {"longest_over_median", 1.034, 1.194},
    {"effective_share", 0.9844, 0.9987},
    {"switched_off_share", 0.0, 0.0},
    {"cosine_to_ones", 0.998, 0.9999},
    {"shift_over_radius", 0.01451, 0.1705},
    {"similarity", 0.986, 0.9986},
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
