#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/norm_spec.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "../../src/rewrite/compare_steps.hpp"
#include "files/gguf_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

/// What block formats explain, for a matrix that ggml's own quantizers quantized (scripts/gguf_oracle).
namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;

const fs::path fixture_file = fs::path(NORMSCOPE_SOURCE_DIR) / "tests/files/fixtures/quantized.gguf";

models::Linear matrix(const files::Checkpoint& file, const std::string& name) {
  const files::Tensor& tensor = *file.find(name);
  models::Linear map;
  map.weight = {name, 0, tensor.elements(), {}};
  map.out = map.stored_out = tensor.shape[0];
  map.in = tensor.shape[1];
  return map;
}

std::optional<Quantization> explained(const files::Checkpoint& original, const files::Checkpoint& quantized,
                                      const std::string& name, const NormSpec& old_norm = {},
                                      const NormSpec& new_norm = {}) {
  return explain_quantization({original, matrix(original, "original"), old_norm},
                              {quantized, matrix(quantized, name), new_norm});
}

TEST(Quantization, ExplainsWhatEveryQuantizerOfGgmlWrites) {
  const files::Checkpoint file(fixture_file);
  ASSERT_EQ(file.tensors().size(), 27U);
  for (const files::Tensor& tensor : file.tensors()) {
    if (tensor.name == "original") continue;
    const auto found = explained(file, file, std::string(tensor.name));
    ASSERT_TRUE(found.has_value()) << tensor.name;
    EXPECT_TRUE(found->explained) << tensor.name << ": " << found->wrong_blocks << " blocks, "
                                  << found->steps.value_or(-1.0) << " steps";
    EXPECT_EQ(found->format, tensor.stored_type());
    EXPECT_TRUE(found->new_is_quantized);
    EXPECT_EQ(found->blocks, 8 * 512 / tensor.blocks->elements);
  }
}

TEST(Quantization, NoTypeExplainsTheRowsOfAnotherOrder) {
  const files::Checkpoint file(fixture_file);
  const NormSpec none;
  for (const files::Tensor& tensor : file.tensors()) {
    if (tensor.name == "original") continue;
    models::Linear exchanged = matrix(file, std::string(tensor.name));
    exchanged.out_indices = {0, 1, 6, 3, 4, 5, 2, 7};
    const auto found = explain_quantization({file, matrix(file, "original"), none}, {file, exchanged, none});
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->wrong_blocks, 2 * 512 / tensor.blocks->elements) << tensor.name;
    EXPECT_TRUE(found->row == 2 || found->row == 6) << tensor.name << " " << found->row;
    // Rows permuted in both, as llama.cpp does with queries, are compared with each other.
    models::Linear same = matrix(file, "original");
    same.out_indices = exchanged.out_indices;
    EXPECT_TRUE(explain_quantization({file, same, none}, {file, exchanged, none})->explained);
  }
}

TEST(Quantization, ExplainsWhatEveryQuantizerOfMlxWritesAndNoOtherRows) {
  const files::Checkpoint file(fs::path(NORMSCOPE_SOURCE_DIR) / "tests/files/fixtures/mlx");
  const NormSpec none;
  std::size_t formats = 0;
  for (const files::Tensor& tensor : file.tensors()) {
    if (tensor.quantized == nullptr) continue;
    ++formats;
    const auto found = explained(file, file, std::string(tensor.name));
    ASSERT_TRUE(found.has_value()) << tensor.name;
    EXPECT_TRUE(found->explained) << tensor.name << ": " << found->wrong_blocks << " blocks, "
                                  << found->steps.value_or(-1.0) << " steps";
    EXPECT_EQ(found->format, tensor.stored_type());
    EXPECT_EQ(found->blocks, 6 * 128 / tensor.blocks->elements);
    models::Linear exchanged = matrix(file, std::string(tensor.name));
    exchanged.out_indices = {0, 5, 2, 3, 4, 1};
    const auto wrong = explain_quantization({file, matrix(file, "original"), none}, {file, exchanged, none});
    ASSERT_TRUE(wrong.has_value());
    EXPECT_EQ(wrong->wrong_blocks, 2 * 128 / tensor.blocks->elements) << tensor.name;
  }
  EXPECT_EQ(formats, 13U);
}

TEST(Quantization, NamesOneWrongBlockAmongAHundredThousand) {
  constexpr std::uint64_t rows = 1024;
  constexpr std::uint64_t row_blocks = 100;
  constexpr std::uint64_t wrong = 777 * row_blocks + 42;
  std::string values;
  std::string blocks;
  for (std::uint64_t block = 0; block < rows * row_blocks; ++block) {
    blocks += test::le(std::uint16_t{0x3c00});  // the scale 1
    for (std::uint64_t i = 0; i < 32; ++i) {
      const int code = static_cast<int>((block + 5 * i) % 250) - 125;
      values += test::le(static_cast<float>(code) + 0.4F);
      blocks += static_cast<char>(block == wrong && i == 31 ? code + 2 : code);
    }
  }
  const test::Scratch scratch;
  test::GgufFile file;
  file.tensor("original", {rows, 32 * row_blocks}, 0, values).tensor("q", {rows, 32 * row_blocks}, 8, blocks);
  test::put(scratch / "m.gguf", file.file());
  const files::Checkpoint checkpoint(scratch / "m.gguf");
  const auto found = explained(checkpoint, checkpoint, "q");
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->explained);
  EXPECT_EQ(found->wrong_blocks, 1U);
  EXPECT_EQ(found->row, 777U);
  EXPECT_EQ(found->block, 42U);
  EXPECT_NEAR(found->steps.value_or(0.0), 1.6, 1e-6);
}

TEST(Quantization, SeesAScaleThatIsOffByAHundredth) {
  const files::Checkpoint file(fixture_file);
  const NormSpec none;
  NormSpec scaled;
  scaled.width = 512;
  scaled.gain.assign(512, 1.01);
  for (const char* name : {"Q8_0", "Q6_K", "Q5_K", "Q4_K"}) {
    EXPECT_TRUE(explained(file, file, name, none, none)->explained);
    EXPECT_FALSE(explained(file, file, name, scaled, none)->explained) << name;
    // The quotient of both gains is in the weights that are compared.
    EXPECT_TRUE(explained(file, file, name, scaled, scaled)->explained) << name;
  }
}

TEST(Quantization, TakesTheOriginalFromEitherSide) {
  const files::Checkpoint file(fixture_file);
  const NormSpec none;
  const auto found =
      explain_quantization({file, matrix(file, "Q8_0"), none}, {file, matrix(file, "original"), none});
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->explained);
  EXPECT_FALSE(found->new_is_quantized);
  EXPECT_FALSE(
      explain_quantization({file, matrix(file, "original"), none}, {file, matrix(file, "original"), none}));
}

/// A Llama of one layer in llama.cpp's names, of 32 features, with matrices of float32 or Q8_0.
class TinyLlama {
 public:
  explicit TinyLlama(bool quantized, bool with_wrong_block = false)
      : quantized_(quantized), with_wrong_block_(with_wrong_block) {
    file_.text("general.architecture", "llama").number("llama.block_count", 1);
    file_.number("llama.context_length", 64).number("llama.embedding_length", 32);
    file_.number("llama.feed_forward_length", 32).number("llama.attention.head_count", 2);
    file_.number("llama.attention.head_count_kv", 2).number("llama.rope.dimension_count", 16);
    file_.real("llama.rope.freq_base", 10000.0F).real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    file_.number("llama.vocab_size", 32);
    for (const char* norm : {"blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"}) {
      file_.floats(std::string(norm) + ".weight", {32});
    }
    for (const char* map : {"token_embd", "blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v", "blk.0.attn_output",
                            "blk.0.ffn_gate", "blk.0.ffn_up", "blk.0.ffn_down", "output"}) {
      add(map);
    }
    test::put(scratch_ / "m.gguf", file_.file());
    checkpoint_.emplace(scratch_ / "m.gguf");
    model_ = models::describe(*checkpoint_);
  }

  [[nodiscard]] Comparison with(const TinyLlama& other, Tolerance tolerates) const {
    return compare(*checkpoint_, model_, *other.checkpoint_, other.model_, {}, tolerates);
  }

 private:
  void add(const std::string& map) {
    std::string data;
    for (int row = 0; row < 32; ++row) {
      if (quantized_) data += test::le(std::uint16_t{0x2000});  // the scale 2^-7
      for (int i = 0; i < 32; ++i) {
        const int code = (31 * ++seed_) % 201 - 100;
        const bool is_wrong = with_wrong_block_ && map == "blk.0.ffn_up" && row == 11 && i == 3;
        data += quantized_ ? std::string(1, static_cast<char>(is_wrong ? -code - 7 : code))
                           : test::le(0x1p-7F * (static_cast<float>(code) + 0.3F));
      }
    }
    file_.tensor(map + ".weight", {32, 32}, quantized_ ? 8 : 0, data);
  }

  bool quantized_, with_wrong_block_;
  int seed_ = 0;
  test::Scratch scratch_{};
  test::GgufFile file_{};
  std::optional<files::Checkpoint> checkpoint_{};
  models::Model model_{};
};

TEST(Quantization, ModelsAreEquivalentUpToItWhereThatIsTolerated) {
  const TinyLlama original(false);
  const TinyLlama quantized(true);
  const Comparison found = original.with(quantized, Tolerance::quantization);
  EXPECT_EQ(found.agreement, Agreement::quantized);
  EXPECT_EQ(found.quantizations.size(), 9U);
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].kind, "quantized");
  // Without it the difference is one, with the explanation.
  const Comparison strict = original.with(quantized, Tolerance::rounding);
  EXPECT_EQ(strict.agreement, Agreement::different);
  EXPECT_EQ(strict.findings[0].kind, "quantized");
  EXPECT_EQ(quantized.with(quantized, Tolerance::quantization).agreement, Agreement::same);
}

TEST(Quantization, AModelWithOneWrongBlockIsDifferent) {
  const Comparison found = TinyLlama(false).with(TinyLlama(true, true), Tolerance::quantization);
  EXPECT_EQ(found.agreement, Agreement::different);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].kind, "wrong_block");
  EXPECT_NE(found.findings[0].text.find("block 0 of row 11 of blk.0.ffn_up.weight"), std::string::npos)
      << found.findings[0].text;
}

}  // namespace
}  // namespace normscope::rewrite
