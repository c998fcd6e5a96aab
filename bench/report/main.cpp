// A report of a model of 0.1, 1 and 7 billion parameters, against reading each byte of its file once. The
// models are synthetic, of the shapes of Llama, in bfloat16; the vocabulary gets the usual time limit of a
// report.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/audit/report.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/float16.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>

#include "bench.hpp"

namespace {

using namespace normscope;
namespace fs = std::filesystem;

/// Seconds for the vocabulary, as `normscope report` has them.
constexpr double vocabulary_seconds = 20.0;

struct Size {
  const char* name;
  std::size_t vocabulary, width, heads, key_heads, hidden, layers;
};

constexpr Size sizes[] = {{"0.1 billion", 32000, 768, 12, 12, 2048, 12},
                          {"1 billion", 128256, 2048, 32, 8, 8192, 16},
                          {"7 billion", 32000, 4096, 32, 32, 11008, 32}};

struct Entry {
  std::string name;
  std::vector<std::size_t> shape;
};

std::vector<Entry> entries_of(const Size& size) {
  const std::size_t d = size.width;
  const std::size_t keys = d / size.heads * size.key_heads;
  std::vector<Entry> entries = {{"model.embed_tokens.weight", {size.vocabulary, d}}};
  for (std::size_t layer = 0; layer < size.layers; ++layer) {
    const std::string at = fmt::format("model.layers.{}.", layer);
    for (const Entry& entry : std::vector<Entry>{{"input_layernorm", {d}},
                                                 {"self_attn.q_proj", {d, d}},
                                                 {"self_attn.k_proj", {keys, d}},
                                                 {"self_attn.v_proj", {keys, d}},
                                                 {"self_attn.o_proj", {d, d}},
                                                 {"post_attention_layernorm", {d}},
                                                 {"mlp.gate_proj", {size.hidden, d}},
                                                 {"mlp.up_proj", {size.hidden, d}},
                                                 {"mlp.down_proj", {d, size.hidden}}}) {
      entries.push_back({at + entry.name + ".weight", entry.shape});
    }
  }
  entries.push_back({"model.norm.weight", {d}});
  return entries;
}

/// Repeats pieces of one block of random numbers: drawing billions of them would take longer than the report.
class Numbers {
 public:
  Numbers() : weights_(std::size_t{1} << 22) {
    for (std::uint16_t& weight : weights_) weight = encode_bfloat16(0.03 * random_.normal());
  }

  void write(std::ofstream& file, const Entry& entry) {
    std::size_t left = 1;
    for (const std::size_t side : entry.shape) left *= side;
    if (entry.shape.size() == 1) {
      std::vector<std::uint16_t> gain(left);
      for (std::uint16_t& g : gain) g = encode_bfloat16(1.0 + 0.2 * random_.normal());
      put(file, gain.data(), left);
      return;
    }
    while (left > 0) {
      const std::size_t from = random_.below(weights_.size() / 2);
      const std::size_t count = std::min(left, weights_.size() - from);
      put(file, weights_.data() + from, count);
      left -= count;
    }
  }

 private:
  static void put(std::ofstream& file, const std::uint16_t* values, std::size_t count) {
    file.write(reinterpret_cast<const char*>(values),
               static_cast<std::streamsize>(count * sizeof(std::uint16_t)));
  }

  Random random_{1};
  std::vector<std::uint16_t> weights_;  ///< codes of bfloat16
};

/// A folder that is removed with its model.
class Model {
 public:
  explicit Model(const Size& size)
      : folder_(fs::temp_directory_path() / fmt::format("normscope-bench-report-{}", size.width)) {
    fs::create_directories(folder_);
    const std::vector<Entry> entries = entries_of(size);
    nlohmann::ordered_json header;
    std::uint64_t end = 0;
    for (const Entry& entry : entries) {
      const std::uint64_t begin = end;
      std::uint64_t count = 1;
      for (const std::size_t side : entry.shape) count *= side;
      end = begin + count * sizeof(std::uint16_t);
      header[entry.name] = {{"dtype", "BF16"}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::ofstream file(folder_ / "model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof(length));
    file << text;
    Numbers numbers;
    for (const Entry& entry : entries) numbers.write(file, entry);
    std::ofstream(folder_ / "config.json") << nlohmann::json{{"model_type", "llama"},
                                                             {"hidden_size", size.width},
                                                             {"num_attention_heads", size.heads},
                                                             {"num_key_value_heads", size.key_heads},
                                                             {"num_hidden_layers", size.layers},
                                                             {"intermediate_size", size.hidden},
                                                             {"vocab_size", size.vocabulary},
                                                             {"rms_norm_eps", 1e-5},
                                                             {"rope_theta", 500000.0},
                                                             {"max_position_embeddings", 8192},
                                                             {"hidden_act", "silu"},
                                                             {"tie_word_embeddings", true}};
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

bench::Contender report_of(const Model& model, unsigned threads) {
  const auto run = [&model, threads] {
    const checkpoint::Checkpoint checkpoint(model.folder());
    static_cast<void>(audit::audit(checkpoint, threads, {}, {.seconds = vocabulary_seconds}));
  };
  return {.name = "normscope", .run = run, .answer = {}};
}

bench::Contender bytes_of(const Model& model) {
  const auto run = [&model] {
    std::ifstream file(model.folder() / "model.safetensors", std::ios::binary);
    std::vector<char> block(std::size_t{1} << 24);
    while (file.read(block.data(), static_cast<std::streamsize>(block.size()))) {
    }
  };
  return {.name = "read the file", .run = run, .answer = {}};
}

void rows(bool quick, const bench::Show& show) {
  const unsigned threads = thread_count(0);
  for (const Size& size : sizes) {
    if (quick && &size != sizes) return;
    const Model model(size);
    show(bench::compare("report", {.text = size.name, .dtype = "bfloat16", .threads = threads},
                        report_of(model, threads), {bytes_of(model)}, 1, 0.0));
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print(stderr, "{} parameters: at most {} MiB of memory\n", size.name, usage.ru_maxrss / 1024);
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
