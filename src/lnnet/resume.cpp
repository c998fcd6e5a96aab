#include "resume.hpp"

#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/error.hpp>

namespace normscope::lnnet {
namespace {

constexpr const char* key = "normscope.construct";
/// Fields of a fold, which the file keeps as one row each.
constexpr std::size_t fold_fields = 8;
constexpr std::size_t cluster_fields = 4;
constexpr const char* version = "2";

void mix(std::uint64_t& state, std::uint64_t word) {
  state = (state ^ word) * 0xbf58476d1ce4e5b9ULL;
  state ^= state >> 29;
}

[[noreturn]] void fail(const std::filesystem::path& path, ErrorCode code, const std::string& what) {
  throw Error(code, fmt::format("resume: {}: {}", path.string(), what));
}

std::vector<double> read_column(const checkpoint::Checkpoint& file, const char* name, std::size_t multiple) {
  const checkpoint::Tensor* tensor = file.find(name);
  if (tensor == nullptr || tensor->dtype != Dtype::F64 || tensor->elements() % multiple != 0) {
    fail(file.path(), ErrorCode::Format,
         fmt::format("has no float64 tensor \"{}\" of rows of {}", name, multiple));
  }
  return checkpoint::read(*tensor);
}

std::size_t index_of(const std::filesystem::path& path, double value, double bound) {
  if (!(value >= 0.0 && value < bound && value == std::floor(value))) {
    fail(path, ErrorCode::Format, fmt::format("has {}, expected an index", value));
  }
  return static_cast<std::size_t>(value);
}

}  // namespace

std::uint64_t fingerprint_of(const std::vector<double>& x, const std::vector<std::uint32_t>& classes,
                             const ConstructOptions& options) {
  std::uint64_t state = 1;
  for (const double value : x) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    mix(state, word);
  }
  for (const std::uint32_t label : classes) mix(state, label + 1ULL);
  mix(state, options.seed);
  mix(state, options.early_stop ? 3 : 5);
  mix(state, options.precision ? 7 + static_cast<std::uint64_t>(*options.precision) : 6);
  return state;
}

void save_state(const std::filesystem::path& path, const ResumeState& state) {
  if (path.empty()) return;
  const Line<DoubleDouble>& line = state.line;
  // Rows and classes are far below 2^53, so float64 holds them; no_row is written as −1.
  const auto number = [](std::size_t row) { return row == no_row ? -1.0 : static_cast<double>(row); };
  std::vector<double> clusters;
  for (std::size_t k = 0; k < line.q.size(); ++k) {
    clusters.insert(clusters.end(), {line.q[k].high, line.q[k].low, static_cast<double>(line.classes[k]),
                                     number(line.rows[k])});
  }
  std::vector<double> folds;
  for (const Crease<DoubleDouble>& fold : line.folds) {
    folds.insert(folds.end(), {number(fold.first), number(fold.second), fold.midpoint.high, fold.midpoint.low,
                               fold.radius.high, fold.radius.low, fold.gap, static_cast<double>(fold.runs)});
  }
  const auto bytes = [](const std::vector<double>& values) { return std::as_bytes(std::span(values)); };
  const std::vector<checkpoint::NewTensor> tensors = {
      {"clusters", Dtype::F64, {line.q.size(), cluster_fields}, bytes(clusters)},
      {"folds", Dtype::F64, {line.folds.size(), fold_fields}, bytes(folds)}};
  checkpoint::write_safetensors(path, tensors,
                                {{key, version},
                                 {"attempt", std::to_string(state.attempt)},
                                 {"fingerprint", fmt::format("{:016x}", state.fingerprint)}});
}

std::optional<ResumeState> load_state(const std::filesystem::path& path, std::uint64_t fingerprint) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  const checkpoint::Checkpoint file(path);
  const auto metadata = [&](const char* name) {
    const auto found = file.metadata().find(name);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (metadata(key) != version) fail(path, ErrorCode::Format, "is not the state of a construction");
  if (metadata("fingerprint") != fmt::format("{:016x}", fingerprint)) {
    fail(path, ErrorCode::Argument,
         "is the state of another construction, expected the same samples, labels and options");
  }
  ResumeState state;
  state.fingerprint = fingerprint;
  const std::string attempt = metadata("attempt");
  if (attempt.empty() || attempt.size() > 2 || attempt.find_first_not_of("0123456789") != std::string::npos) {
    fail(path, ErrorCode::Format, "has no attempt");
  }
  state.attempt = std::stoul(attempt);
  const std::vector<double> clusters = read_column(file, "clusters", cluster_fields);
  const std::vector<double> folds = read_column(file, "folds", fold_fields);
  for (std::size_t k = 0; k < clusters.size(); k += cluster_fields) {
    state.line.q.emplace_back(clusters[k], clusters[k + 1]);
    state.line.classes.push_back(static_cast<std::uint32_t>(index_of(path, clusters[k + 2], 0x1p32)));
    state.line.rows.push_back(index_of(path, clusters[k + 3], 0x1p53));
  }
  const auto row = [&](double value) { return value == -1.0 ? no_row : index_of(path, value, 0x1p53); };
  for (std::size_t f = 0; f < folds.size(); f += fold_fields) {
    state.line.folds.push_back({row(folds[f]), row(folds[f + 1]), DoubleDouble(folds[f + 2], folds[f + 3]),
                                DoubleDouble(folds[f + 4], folds[f + 5]), folds[f + 6],
                                index_of(path, folds[f + 7], 0x1p53)});
  }
  if (state.line.folds.empty() || state.line.q.empty()) fail(path, ErrorCode::Format, "holds no layers");
  state.line.runs = count_runs(state.line.classes);
  return state;
}

}  // namespace normscope::lnnet
