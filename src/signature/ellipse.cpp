#include <normscope/signature/extract.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

#include "subspace.hpp"

namespace normscope::signature {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* format_name = "normscope.ellipse/1";
constexpr double orthonormal_to = 1e-6;

/// Reads one field or array after the other; each may be missing or wrong.
class EllipseReader {
 public:
  EllipseReader(const files::Checkpoint& file, std::string where) : file_(file), where_(std::move(where)) {
    const auto found = file.metadata().find("numbers");
    if (found != file.metadata().end()) numbers_ = json::parse(found->second, nullptr, false);
    expect(numbers_.is_object(), "has no numbers of an ellipse");
  }

  void expect(bool holds, const std::string& what) const {
    if (!holds)
      throw Error(ErrorCode::Format, fmt::format("{}: {}, expected an ellipse of normscope", where_, what));
  }
  double number(const char* name) const {
    const auto field = numbers_.find(name);
    expect(field != numbers_.end() && field->is_number(), fmt::format("has no number {}", name));
    const double value = field->get<double>();
    expect(std::isfinite(value) && value >= 0.0, fmt::format("has {} = {}", name, value));
    return value;
  }
  std::size_t count(const char* name) const {
    const double value = number(name);
    expect(value == std::floor(value) && value < 0x1p40, fmt::format("has {} = {}", name, value));
    return static_cast<std::size_t>(value);
  }
  bool flag(const char* name) const {
    const auto field = numbers_.find(name);
    expect(field != numbers_.end() && field->is_boolean(), fmt::format("has no {}", name));
    return field->get<bool>();
  }
  Dtype type(const char* name) const {
    const auto field = numbers_.find(name);
    const std::string text = field != numbers_.end() && field->is_string() ? field->get<std::string>() : "";
    for (const Dtype known : {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16}) {
      if (text == to_string(known)) return known;
    }
    expect(false, fmt::format("has no {}", name));
    return Dtype::F64;
  }
  std::vector<double> array(const char* name, std::vector<std::uint64_t> shape) const {
    const files::Tensor* tensor = file_.find(name);
    expect(tensor != nullptr && tensor->dtype == Dtype::F64 &&
               std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end()),
           fmt::format("has no float64 array {} of {}", name, fmt::join(shape, " x ")));
    std::vector<double> values = files::read(*tensor);
    expect(std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }),
           fmt::format("has numbers in {} that are not finite", name));
    return values;
  }

 private:
  const files::Checkpoint& file_;
  std::string where_;
  json numbers_{};
};

bool are_orthonormal(const Ellipse& ellipse) {
  std::vector<double> gram(ellipse.rank * ellipse.rank);
  product(Factor<double>(ellipse.view()).transposed(), ellipse.view(),
          MatrixView<double>(gram.data(), ellipse.rank, ellipse.rank), 0);
  for (std::size_t i = 0; i < ellipse.rank; ++i) {
    for (std::size_t j = 0; j < ellipse.rank; ++j) {
      if (!(std::abs(gram[i * ellipse.rank + j] - (i == j ? 1.0 : 0.0)) < orthonormal_to)) return false;
    }
  }
  return true;
}

}  // namespace

std::size_t Ellipse::drowned() const {
  return static_cast<std::size_t>(
      std::count_if(errors.begin(), errors.end(), [](double error) { return !(error <= drowning); }));
}

Ellipse ellipse_of(const selectability::Logits& logits, unsigned threads) {
  ThinSvd svd = thin_svd(logits.view(), negligible, threads);
  Ellipse result{.tokens = logits.tokens, .rank = svd.rank, .centre = logits.offsets};
  result.axes = std::move(svd.left);
  result.semi_axes = std::move(svd.values);
  for (const double length : result.semi_axes) {
    // Folding rounds each row; the decomposition by a small multiple of the rank.
    const double rounded = logits.rounding * std::sqrt(static_cast<double>(logits.tokens)) +
                           64.0 * unit_roundoff * static_cast<double>(svd.rank) * result.semi_axes.front();
    result.errors.push_back(rounded / length);
  }
  result.filled = result.rank < logits.dimension();
  return result;
}

void write_ellipse(const fs::path& path, const Ellipse& ellipse) {
  const json numbers = {{"tokens", ellipse.tokens},
                        {"rank", ellipse.rank},
                        {"filled", ellipse.filled},
                        {"rows", ellipse.rows},
                        {"surface", ellipse.surface},
                        {"off", ellipse.off},
                        {"precision", to_string(ellipse.precision)},
                        {"rounds", ellipse.rounds},
                        {"least_ritz", ellipse.least_ritz},
                        {"largest_ritz", ellipse.largest_ritz}};
  const auto tensor = [](const char* name, const std::vector<double>& values,
                         std::vector<std::uint64_t> shape) {
    return files::NewTensor{name, Dtype::F64, std::move(shape), std::as_bytes(std::span(values))};
  };
  const files::NewTensor tensors[] = {tensor("centre", ellipse.centre, {ellipse.tokens}),
                                      tensor("axes", ellipse.axes, {ellipse.tokens, ellipse.rank}),
                                      tensor("semi_axes", ellipse.semi_axes, {ellipse.rank}),
                                      tensor("errors", ellipse.errors, {ellipse.rank})};
  files::write_safetensors(path, tensors, {{"format", format_name}, {"numbers", numbers.dump()}});
}

std::optional<Ellipse> read_ellipse(const fs::path& path) {
  std::error_code missing;
  if (fs::is_directory(path, missing) || path.extension() != ".safetensors") return std::nullopt;
  const files::Checkpoint file(path);
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end() || format->second != format_name) return std::nullopt;
  const EllipseReader reader(file, path.string());
  Ellipse result{.tokens = reader.count("tokens"), .rank = reader.count("rank")};
  reader.expect(result.rank > 0 && result.rank < result.tokens,
                fmt::format("has {} axes for {} tokens", result.rank, result.tokens));
  result.centre = reader.array("centre", {result.tokens});
  result.axes = reader.array("axes", {result.tokens, result.rank});
  result.semi_axes = reader.array("semi_axes", {result.rank});
  result.errors = reader.array("errors", {result.rank});
  result.filled = reader.flag("filled");
  result.rows = reader.count("rows");
  result.surface = reader.number("surface");
  result.off = reader.number("off");
  result.precision = reader.type("precision");
  result.rounds = reader.count("rounds");
  result.least_ritz = reader.number("least_ritz");
  result.largest_ritz = reader.number("largest_ritz");
  reader.expect(result.semi_axes.back() > 0.0 &&
                    std::is_sorted(result.semi_axes.begin(), result.semi_axes.end(), std::greater<>()),
                "has semi-axes that are not positive and descending");
  reader.expect(are_orthonormal(result), "has axes that are not orthonormal");
  return result;
}

}  // namespace normscope::signature
