#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <emscripten/bind.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/attribution.hpp>
#include <normscope/analysis/trace.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/decoder.hpp>
#include <normscope/forward/tokenizer.hpp>
#include <normscope/models/token_names.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/results/documents.hpp>

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
      out.close();
      if (!out) throw Error(ErrorCode::Io, "the files do not fit into the page's memory");
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

/// Parameters of the largest model that a page runs: more take many seconds a text on one thread.
constexpr double most_parameters = 32e6;

/// A model through which texts are traced.
class Tracer {
 public:
  static Tracer* make(const val& files) {
    return guarded([&] { return new Tracer(files); });
  }

  /// {architecture, parameters, vocabulary, positions, unspelled}: number of tokens, the most of a text, and
  /// why there is no tokenizer for texts, empty if there is one.
  [[nodiscard]] val limits() const {
    val result = val::object();
    result.set("architecture", model_.title);
    result.set("parameters", parameters(checkpoint_));
    result.set("unspelled", unspelled_);
    result.set("vocabulary", static_cast<double>(decoder_.vocabulary()));
    result.set("positions", static_cast<double>(decoder_.positions()));
    return result;
  }

  /// The document of `normscope trace` for a text of at most `most` tokens.
  [[nodiscard]] std::string trace(const std::string& text, double most) {
    return guarded([&] {
      if (!tokenizer_) throw Error(ErrorCode::Unsupported, unspelled_);
      return traced(tokenizer_->encode(text), most);
    });
  }

  /// Traces tokens in place of a text.
  [[nodiscard]] std::string trace_tokens(const val& tokens, double most) {
    return guarded([&] {
      std::vector<std::size_t> ids;
      for (const double id : numbers(tokens)) ids.push_back(static_cast<std::size_t>(id));
      return traced(ids, most);
    });
  }

  /// What each norm makes of the token at a position of the text that was traced last: x, then x behind each
  /// of the four steps, norm after norm, row-major.
  [[nodiscard]] val norm_steps(double position) const {
    return guarded([&] {
      const std::size_t at = expect_position(position);
      std::vector<double> result;
      for (const analysis::TracedNorm& traced : last_->norms) {
        const NormSpec& spec = traced.observer.spec();
        // A text of a page is shorter than a sample, which then has its rows in order.
        const std::span<const double> entering = traced.observer.sample().row(at);
        std::vector<double> row(entering.begin(), entering.end());
        result.insert(result.end(), row.begin(), row.end());
        for (const norm::Step step :
             {norm::Step::project, norm::Step::scale, norm::Step::stretch, norm::Step::shift}) {
          norm::apply(step, spec, {row.data(), 1, row.size()}, {row.data(), 1, row.size()});
          result.insert(result.end(), row.begin(), row.end());
        }
      }
      return float64_array(result);
    });
  }

  /// The document of `normscope attribute --budget 0` for the likeliest token after a position of that text.
  [[nodiscard]] std::string effects(double position) {
    return guarded([&] {
      const std::size_t at = expect_position(position);
      attribution_.emplace(analysis::attribute(checkpoint_, model_, last_->tokens,
                                               {.target = last_->predictions[at].likeliest.front().token,
                                                .at = at,
                                                .budget = 0.0,
                                                .subsets = {.most_removed = 1},
                                                .threads = 1}));
      return json_text(results::attribution({.arguments = {{"model", checkpoint_.path().string()}}},
                                            *attribution_, names()));
    });
  }

  /// [{token, name, before, exact, frozen}]: the likeliest tokens at the position of the last `effects`, with
  /// and without the component of that index there.
  [[nodiscard]] val without(double component, double likeliest) const {
    return guarded([&] {
      if (!attribution_ ||
          !(component >= 0.0 && component < static_cast<double>(attribution_->components.size())))
        throw Error(ErrorCode::Argument, "without: there is no such component");
      const analysis::TracedNorm& last = last_->norms.back();
      const std::size_t width = last.observer.spec().width;
      val result = val::array();
      for (const analysis::ChangedToken& changed : analysis::tokens_after_change(
               decoder_, last.observer.spec(), last.observer.sample().row(attribution_->at),
               {attribution_->changes.data() + static_cast<std::size_t>(component) * width, width},
               static_cast<std::size_t>(likeliest))) {
        val token = val::object();
        const std::vector<std::string> known = names();
        token.set("token", static_cast<double>(changed.token));
        token.set("name", changed.token < known.size() ? val(known[changed.token]) : val::null());
        token.set("before", changed.before);
        token.set("exact", changed.exact);
        token.set("frozen", changed.frozen);
        result.call<void>("push", token);
      }
      return result;
    });
  }

 private:
  explicit Tracer(const val& files)
      : files_(files), model_(models::describe(checkpoint_)), decoder_(checkpoint_, model_, 1) {
    const double count = parameters(checkpoint_);
    if (count > most_parameters) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("the model has {:.0f} million parameters, expected at most {:.0f} million in a "
                              "page; `normscope trace` runs larger ones",
                              count / 1e6, most_parameters / 1e6));
    }
    find_tokenizer();
  }

  void find_tokenizer() {
    const std::optional<fs::path> names = models::find_token_names(files_.folder());
    if (!names) return;
    try {
      tokenizer_.emplace(*names, decoder_.vocabulary());
      unspelled_.clear();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unsupported) throw;
      unspelled_ = error.what();
    }
  }

  static double parameters(const files::Checkpoint& checkpoint) {
    double count = 0.0;
    for (const files::Tensor& tensor : checkpoint.tensors()) {
      double elements = 1.0;
      for (const std::uint64_t size : tensor.shape) elements *= static_cast<double>(size);
      count += elements;
    }
    return count;
  }

  [[nodiscard]] std::string traced(const std::vector<std::size_t>& tokens, double most) {
    if (static_cast<double>(tokens.size()) > most) {
      throw Error(ErrorCode::Argument,
                  fmt::format("the text has {} tokens, expected at most {} in a page", tokens.size(), most));
    }
    attribution_.reset();
    last_.emplace(analysis::trace(checkpoint_, model_, tokens, {.budget = 1e10, .threads = 1}));
    return json_text(results::token_trace(checkpoint_, *last_, names()));
  }

  [[nodiscard]] std::vector<std::string> names() const {
    return tokenizer_ ? tokenizer_->names() : std::vector<std::string>();
  }

  [[nodiscard]] std::size_t expect_position(double position) const {
    if (!last_ || !(position >= 0.0 && position < static_cast<double>(last_->tokens.size())))
      throw Error(ErrorCode::Argument, "no token of the text is at that position");
    return static_cast<std::size_t>(position);
  }

  Files files_;
  files::Checkpoint checkpoint_{files_.folder(), files::read_file};
  models::Model model_;
  forward::Decoder decoder_;
  std::optional<forward::Tokenizer> tokenizer_{};
  std::optional<analysis::TokenTrace> last_{};
  std::optional<analysis::Attribution> attribution_{};  ///< of `last_`
  std::string unspelled_ = "the model has no tokenizer beside it";
};

}  // namespace

EMSCRIPTEN_BINDINGS(trace) {
  emscripten::class_<Tracer>("Tracer")
      .constructor(&Tracer::make, emscripten::allow_raw_pointers())
      .function("limits", &Tracer::limits)
      .function("trace", &Tracer::trace)
      .function("traceTokens", &Tracer::trace_tokens)
      .function("normSteps", &Tracer::norm_steps)
      .function("effects", &Tracer::effects)
      .function("without", &Tracer::without);
}

}  // namespace normscope::wasm
