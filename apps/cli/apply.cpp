#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/files/array.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/results/documents.hpp>

#include "norm_options.hpp"

namespace normscope::cli {
namespace {

struct ApplyOptions {
  std::string input;
  std::string output;
  std::string step;
  NormOptions norm;
};

/// Rows as a file holds them: little-endian elements, which need not be aligned.
struct StoredRows {
  Dtype dtype = Dtype::F64;
  std::span<const std::byte> bytes{};
  std::size_t rows = 0;
  std::size_t width = 0;
};

using Bytes = std::span<const std::byte>;
using norm::Bfloat16;
using norm::Float16;
using norm::Wide;

/// Entries of a block of rows: enough to keep every thread busy, few enough for little memory.
constexpr std::size_t entries_a_block = std::size_t{1} << 20;
/// Least number of entries that one thread takes at a time.
constexpr std::size_t entries_a_piece = std::size_t{1} << 14;

template <typename T>
constexpr Dtype dtype_of = std::is_same_v<T, double>  ? Dtype::F64
                           : std::is_same_v<T, float> ? Dtype::F32
                                                      : Dtype::F16;

template <typename T>
bool is_aligned(Bytes bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0;
}

/// Converts elements of `dtype` to T, which represents them exactly, into `buffer`.
template <typename T>
void widen(Dtype dtype, Bytes bytes, std::vector<T>& buffer) {
  buffer.resize(bytes.size() / (bits(dtype) / 8));
  if (dtype == dtype_of<T>) {
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return;
  }
  if constexpr (std::is_same_v<T, double>) decode(dtype, bytes, buffer);
  if constexpr (std::is_same_v<T, float>) {
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      Bfloat16 element;
      std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
      buffer[i] = norm::to_float(element);
    }
  }
}

/// Calls `block` with the bytes and the number of rows of each block.
template <typename Block>
void for_blocks(const StoredRows& x, Block block) {
  const std::size_t row_bytes = x.width * (bits(x.dtype) / 8);
  const std::size_t step = std::max<std::size_t>(1, entries_a_block / x.width);
  for (std::size_t first = 0; first < x.rows; first += step) {
    const std::size_t rows = std::min(step, x.rows - first);
    block(x.bytes.subspan(first * row_bytes, rows * row_bytes), rows);
  }
}

/// Writes values as elements of `dtype`.
template <typename T>
void write_as(Dtype dtype, const std::vector<T>& values, std::vector<std::byte>& buffer,
              const std::function<void(Bytes)>& write) {
  if constexpr (std::is_same_v<T, double>) {
    if (dtype != Dtype::F64) {
      buffer.resize(values.size() * (bits(dtype) / 8));
      encode(dtype, values, buffer);
      return write(buffer);
    }
  }
  write(std::as_bytes(std::span(values)));
}

/// The norm, computed in T.
template <typename T>
void normalize_as(const NormSpec& spec, const StoredRows& x, const std::function<void(Bytes)>& write,
                  unsigned threads) {
  const std::vector<Wide<T>> gain(spec.gain.begin(), spec.gain.end());
  const std::vector<Wide<T>> bias(spec.bias.begin(), spec.bias.end());
  const norm::Layer<T> layer{.kind = spec.kind,
                             .width = spec.width,
                             .groups = spec.groups,
                             .eps = spec.eps,
                             .gain = gain,
                             .bias = bias,
                             .alpha = spec.alpha,
                             .shift = spec.shift};
  const Dtype written = files::npy_dtype(x.dtype);
  std::vector<T> results;
  std::vector<std::byte> encoded;
  for_blocks(x, [&](Bytes bytes, std::size_t rows) {
    const T* in = nullptr;
    if (x.dtype == dtype_of<T> && is_aligned<T>(bytes)) {
      in = reinterpret_cast<const T*>(bytes.data());
      results.resize(rows * x.width);
    } else {
      widen(x.dtype, bytes, results);
      in = results.data();
    }
    norm::normalize<T>(layer, {in, rows, x.width}, {results.data(), rows, x.width}, threads);
    write_as(written, results, encoded, write);
  });
}

void step_by_step(const NormSpec& spec, norm::Step step, const StoredRows& x,
                  const std::function<void(Bytes)>& write, unsigned threads) {
  const std::size_t grain = 1 + entries_a_piece / x.width;
  std::vector<double> values;
  std::vector<std::byte> encoded;
  for_blocks(x, [&](Bytes bytes, std::size_t rows) {
    widen(x.dtype, bytes, values);
    parallel_for(rows, grain, threads, [&](std::size_t first, std::size_t last) {
      const MatrixView<double> piece(values.data() + first * x.width, last - first, x.width);
      norm::apply(step, spec, piece, piece);
    });
    write_as(files::npy_dtype(x.dtype), values, encoded, write);
  });
}

/// Whether float32 represents all values exactly.
bool fit_float(const std::vector<double>& values) {
  constexpr double largest = 0x1.fffffep127;
  return std::all_of(values.begin(), values.end(), [](double value) {
    return std::abs(value) <= largest && static_cast<double>(static_cast<float>(value)) == value;
  });
}

/// Applies a norm, or the step of it named `step`, and passes the results to `write`, a block of rows at a
/// time, as elements of `npy_dtype(x.dtype)`. The kernels compute the norm in the type of the rows: bfloat16
/// in float32, which represents it exactly; in float64 for all other types, and if float32 would round an
/// entry of gain or bias. Steps are computed in float64.
///
/// Accuracy  as `norm::normalize` for the type of the computation, plus one rounding if the written type is
///           narrower
///
/// Cost      memory for a few MiB of rows, or one row where that is more
void apply_rows(const NormSpec& spec, const std::string& step, const StoredRows& x,
                const std::function<void(Bytes)>& write, unsigned threads) {
  if (!step.empty()) return step_by_step(spec, norm::step(step), x, write, threads);
  const bool narrow = fit_float(spec.gain) && fit_float(spec.bias);
  if (narrow && x.dtype == Dtype::F16) return normalize_as<Float16>(spec, x, write, threads);
  if (narrow && (x.dtype == Dtype::F32 || x.dtype == Dtype::BF16)) {
    return normalize_as<float>(spec, x, write, threads);
  }
  normalize_as<double>(spec, x, write, threads);
}

/// The numbers of a row: all, or the first and the last.
std::string line_of(std::span<const double> row) {
  constexpr std::size_t most = 10;
  std::string line = "[";
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row.size() > most && i == most / 2) {
      line += "  ...";
      i = row.size() - most / 2;
    }
    line += fmt::format(" {:>10.5g}", row[i]);
  }
  return line + " ]";
}

/// Prints the first rows.
void print_rows(const Session& session, const NormSpec& spec, const std::string& step, StoredRows x) {
  constexpr std::size_t most = 10;
  const std::size_t given = x.rows;
  x.rows = std::min(given, most);
  x.bytes = x.bytes.first(x.rows * x.width * (bits(x.dtype) / 8));
  std::vector<std::byte> bytes;
  apply_rows(
      spec, step, x,
      [&](std::span<const std::byte> block) { bytes.insert(bytes.end(), block.begin(), block.end()); },
      session.threads);
  std::vector<double> values(x.rows * x.width);
  decode(files::npy_dtype(x.dtype), bytes, values);
  for (std::size_t row = 0; row < x.rows; ++row) {
    session.say(line_of(std::span(values).subspan(row * x.width, x.width)));
  }
  if (given > most) {
    session.say(fmt::format("... and {}; -o Y.npy writes all", counted(given - most, "more row")));
  }
}

int run_apply(const Session& session, Inputs& inputs, Outputs& outputs, const ApplyOptions& options) {
  const NormInput norm = options.norm.open(inputs);
  // Writing in place is allowed for a separate array file, but not for a tensor inside a checkpoint.
  const files::OpenedArray x = inputs.array(options.input, options.output);
  if (x.shape().empty() || x.shape().back() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: has no features, expected rows x width", printable(options.input)));
  }
  const std::size_t width = x.shape().back();
  const std::size_t rows = x.elements() / width;
  const GivenNorm spec = norm.of_width(width);
  const Dtype dtype = files::npy_dtype(x.dtype());

  const bool is_written = !options.output.empty();
  const nlohmann::ordered_json json = results::applied({options.output, dtype, rows, width, spec.source()});
  std::vector<std::byte> buffer;
  const StoredRows stored{x.dtype(), x.bytes(buffer), rows, width};
  outputs.write(options.output, [&](const std::string& path) {
    files::NpyWriter output(path, dtype, x.shape());
    apply_rows(
        spec, options.step, stored, [&output](std::span<const std::byte> block) { output.write(block); },
        session.threads);
    output.commit();
  });
  outputs.commit([&] { return json_text(json); });
  spec.say_source(session);
  if (!is_written) {
    print_rows(session, spec, options.step, stored);
    return ok;
  }
  session.say(fmt::format("{}: {} of width {}, {}", printable(options.output), counted(rows, "row"), width,
                          to_string(dtype)));
  return ok;
}

}  // namespace

Command apply_command() {
  const auto options = std::make_shared<ApplyOptions>();
  return {
      .name = "apply",
      .text = "Apply a norm, or one of its four steps, to an array",
      .inputs = {input("X", options->input, "Rows to normalize, along the last axis").required()},
      .outputs = {output("-o,--output", options->output)
                      .typed("Y.npy")
                      .says("the rows, with X's shape and precision")
                      .usually("print the first ones")},
      .options = joined({option("--step", options->step).one_of({"project", "scale", "stretch", "shift"})},
                        options->norm.arguments()),
      .examples = {"normscope apply '1,2,6;0,0,3'",
                   "normscope apply models/kjv_gpt:transformer.wte.weight -o y.npy --gain "
                   "models/kjv_gpt:transformer.ln_f.weight"},
      .run = with(run_apply, options)};
}

}  // namespace normscope::cli
