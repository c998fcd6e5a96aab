#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emscripten/bind.h>
#include <nlohmann/json.hpp>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/documents/text.hpp>
#include <normscope/documents/token_trace.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/forward/trace.hpp>
#include <normscope/model/token_names.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

namespace fs = std::filesystem;

/// Files in the core's file system, in a folder of their own, as long as this object exists.
class Files {
 public:
  /// {name, bytes} each.
  explicit Files(const val& files) {
    static int folders = 0;
    folder_ = fs::path("/traced") / std::to_string(++folders);
    fs::create_directories(folder_);
    const auto count = files["length"].as<std::size_t>();
    for (std::size_t i = 0; i < count; ++i) {
      const val file = files[i];
      const auto bytes = emscripten::convertJSArrayToNumberVector<std::uint8_t>(file["bytes"]);
      std::ofstream out(folder_ / fs::path(file["name"].as<std::string>()).filename(), std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

/// A model through which texts are traced.
class Tracer {
 public:
  static Tracer* make(const val& files) {
    return guarded([&] { return new Tracer(files); });
  }

  /// {vocabulary, positions}: number of tokens, and the most of a text.
  [[nodiscard]] val limits() const {
    val result = val::object();
    result.set("vocabulary", static_cast<double>(decoder_.vocabulary()));
    result.set("positions", static_cast<double>(decoder_.positions()));
    return result;
  }

  /// The document of `normscope trace` for a text.
  [[nodiscard]] std::string trace(const std::string& text) const {
    return guarded([&] {
      const std::vector<std::size_t> tokens = tokenizer_.encode(text);
      return json_text(documents::token_trace(
          checkpoint_, forward::trace(checkpoint_, model_, tokens, {.threads = 1}), tokenizer_.names()));
    });
  }

 private:
  explicit Tracer(const val& files)
      : files_(files), model_(model::describe(checkpoint_)), decoder_(checkpoint_, model_, 1) {}

  [[nodiscard]] fs::path names() const {
    const std::optional<fs::path> file = model::find_token_names(files_.folder());
    if (!file) throw Error(ErrorCode::Unsupported, "the model has no tokenizer beside it");
    return *file;
  }

  Files files_;
  checkpoint::Checkpoint checkpoint_{files_.folder(), bytes::read_file};
  model::Model model_;
  forward::Decoder decoder_;
  forward::Tokenizer tokenizer_{names(), decoder_.vocabulary()};
};

}  // namespace

EMSCRIPTEN_BINDINGS(trace) {
  emscripten::class_<Tracer>("Tracer")
      .constructor(&Tracer::make, emscripten::allow_raw_pointers())
      .function("limits", &Tracer::limits)
      .function("trace", &Tracer::trace);
}

}  // namespace normscope::wasm
