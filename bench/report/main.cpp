// A report of a model of 0.1, 1 and 7 billion parameters, against reading each byte of its file once; and the
// description of one of 70 billion in 30 shards, from its headers. The models are synthetic, of the shapes of
// Llama, in bfloat16; the budget is that of a report. The shards are sparse files.
// Prints the lines of the table of README.md on standard error.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/dtype.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "bench.hpp"

namespace {

using namespace normscope;
namespace fs = std::filesystem;

struct Size {
  const char* name;
  std::size_t vocabulary, width, heads, key_heads, hidden, layers;
};

constexpr Size sizes[] = {{"0.1 billion", 32000, 768, 12, 12, 2048, 12},
                          {"1 billion", 128256, 2048, 32, 8, 8192, 16},
                          {"7 billion", 32000, 4096, 32, 32, 11008, 32}};

/// The size of the model that is only described, from its headers.
constexpr Size in_shards = {"70 billion", 128256, 8192, 64, 8, 28672, 80};
constexpr std::size_t shards = 30;

struct Entry {
  std::string name;
  std::vector<std::size_t> shape;

  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t count = 1;
    for (const std::size_t side : shape) count *= side;
    return count;
  }
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
    std::size_t left = entry.elements();
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

/// Writes the header of a safetensors file of these tensors. Returns the bytes of its data.
std::uint64_t write_header(std::ofstream& file, std::span<const Entry> entries) {
  nlohmann::ordered_json header;
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    const std::uint64_t begin = end;
    end += entry.elements() * sizeof(std::uint16_t);
    header[entry.name] = {{"dtype", "BF16"}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file << text;
  return end;
}

/// A folder that is removed with its model.
class Model {
 public:
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  [[nodiscard]] const fs::path& folder() const { return folder_; }

  /// Bytes of its tensors.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 protected:
  explicit Model(const Size& size)
      : folder_(fs::temp_directory_path() / fmt::format("normscope-bench-report-{}", size.width)) {
    fs::create_directories(folder_);
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

  std::uint64_t bytes_ = 0;

 private:
  fs::path folder_;
};

/// A model in one file, with weights.
class FullModel : public Model {
 public:
  explicit FullModel(const Size& size) : Model(size) {
    const std::vector<Entry> entries = entries_of(size);
    std::ofstream file(folder() / "model.safetensors", std::ios::binary);
    bytes_ = write_header(file, entries);
    Numbers numbers;
    for (const Entry& entry : entries) numbers.write(file, entry);
  }
};

/// A model in shards with headers only; their data are holes of sparse files.
class SparseModel : public Model {
 public:
  explicit SparseModel(const Size& size) : Model(size) {
    const std::vector<Entry> entries = entries_of(size);
    nlohmann::ordered_json index;
    for (std::size_t shard = 0; shard < shards; ++shard) {
      const std::size_t first = entries.size() * shard / shards;
      const std::size_t last = entries.size() * (shard + 1) / shards;
      const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
      std::ofstream file(folder() / name, std::ios::binary);
      const std::uint64_t data = write_header(file, std::span(entries).subspan(first, last - first));
      const auto end = static_cast<std::uint64_t>(file.tellp()) + data;
      file.close();
      fs::resize_file(folder() / name, end);
      bytes_ += data;
      for (std::size_t i = first; i < last; ++i) index["weight_map"][entries[i].name] = name;
    }
    std::ofstream(folder() / "model.safetensors.index.json") << index;
  }
};

struct Usage {
  double seconds = 0.0;
  double processor_seconds = 0.0;
  long peak_mib = 0;
};

/// Runs `work` in a process of its own, so that the memory measured is that of `work` alone.
template <typename Work>
Usage measured(const Work& work) {
  std::fflush(nullptr);
  Usage usage;
  usage.seconds = bench::median_seconds(1, [&] {
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(0);
    }
    int status = 0;
    rusage used{};
    if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0) {
      throw Error(ErrorCode::Io, "bench: the process of a report failed");
    }
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    usage.processor_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
    usage.peak_mib = used.ru_maxrss / 1024;
  });
  return usage;
}

void read(const fs::path& file_name) {
  std::ifstream file(file_name, std::ios::binary);
  std::vector<char> block(std::size_t{1} << 24);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size()))) {
  }
}

/// Two digits, without an exponent: "0.31", "8.2", "117".
std::string number(double value) {
  return value >= 10.0 ? fmt::format("{:.0f}", value) : fmt::format("{:.2g}", value);
}

void rows(bool quick, const bench::Show& show) {
  const unsigned threads = thread_count(0);
  fmt::print(stderr,
             "| parameters | file | read it once | report without vocabulary | report | processor time | "
             "memory at most |\n|---|---|---|---|---|---|---|\n");
  for (const Size& size : sizes) {
    if (quick && &size != sizes) break;
    const FullModel model(size);
    std::string line =
        fmt::format("| {} | {} GB |", size.name, number(static_cast<double>(model.bytes()) * 1e-9));
    const Usage bytes = measured([&] { read(model.folder() / "model.safetensors"); });
    line += fmt::format(" {} s |", number(bytes.seconds));
    for (const bool vocabulary : {false, true}) {
      const Usage report = measured([&] {
        const auto checkpoint = files::open_checkpoint(model.folder());
        static_cast<void>(analysis::audit(*checkpoint, threads, {}, {.skip = !vocabulary}));
      });
      const char* const task = vocabulary ? "report" : "no vocabulary";
      const double ratio = bytes.seconds / report.seconds;
      show({{task,
             {size.name, "bfloat16", threads},
             "read the file",
             ratio,
             1e3 * report.seconds,
             {},
             ratio,
             ratio}});
      line += fmt::format(" {} s |", number(report.seconds));
      if (vocabulary) {
        line += fmt::format(" {} s | {} MiB |", number(report.processor_seconds), report.peak_mib);
      }
    }
    fmt::print(stderr, "{}\n", line);
  }
  const SparseModel model(in_shards);
  const double seconds = bench::median_seconds(5, [&] {
    const files::Checkpoint checkpoint(model.folder());
    static_cast<void>(models::describe(checkpoint));
  });
  show({{"describe", {in_shards.name, "bfloat16", 1}, "-", 0.0, 1e3 * seconds, {}, 0.0, 0.0}});
  fmt::print(stderr, "{}: {:.0f} GB in {} shards described in {:.3f} s\n", in_shards.name,
             static_cast<double>(model.bytes()) * 1e-9, shards, seconds);
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
