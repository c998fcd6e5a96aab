#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <emscripten/bind.h>

#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/signature/verify.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

/// A norm and an unembedding of three tokens.
struct SmallModel {
  NormSpec norm{};
  std::vector<double> unembedding{};
  std::vector<double> bias{};

  [[nodiscard]] MatrixView<const double> view() const {
    return {unembedding.data(), unembedding.size() / norm.width, norm.width};
  }
};

/// {norm, unembedding (3 × width), bias?}
SmallModel model_of(const val& value) {
  SmallModel model{norm_spec(value["norm"]), numbers(value["unembedding"]), numbers(value["bias"])};
  if (model.unembedding.size() != 3 * model.norm.width) {
    throw Error(ErrorCode::Shape, "signature: expected the weights of three tokens");
  }
  return model;
}

Dtype precision_of(const std::string& name) {
  if (name == "float32") return Dtype::F32;
  if (name == "float16") return Dtype::F16;
  if (name == "bfloat16") return Dtype::BF16;
  throw Error(ErrorCode::Argument, "signature: there is no precision " + name);
}

void round_to(Dtype type, std::span<double> values) {
  std::vector<std::byte> stored(values.size() * bits(type) / 8);
  encode(type, values, stored);
  decode(type, stored, values);
}

/// Outputs of a model for random inputs: hidden states and logits are rounded to the precision.
val outputs(const val& value, const std::string& precision, double count, double seed) {
  return guarded([&] {
    const SmallModel model = model_of(value);
    const Dtype type = precision_of(precision);
    const std::size_t width = model.norm.width;
    const auto rows = static_cast<std::size_t>(count);
    Random random(static_cast<std::uint64_t>(seed));
    std::vector<double> hidden(rows * width);
    for (double& entry : hidden) entry = random.normal();
    const MatrixView<double> view(hidden.data(), rows, width);
    norm::forward(model.norm, view, view);
    round_to(type, hidden);
    std::vector<double> logits;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t token = 0; token < 3; ++token) {
        double sum = model.bias.empty() ? 0.0 : model.bias[token];
        for (std::size_t i = 0; i < width; ++i) sum += model.view().row(token)[i] * view.row(row)[i];
        logits.push_back(sum);
      }
    }
    round_to(type, logits);
    return float64_array(logits);
  });
}

/// Coordinates of rows of three logits in the plane of those with sum 0.
std::vector<double> in_plane(std::span<const double> logits) {
  std::vector<double> places;
  for (std::size_t i = 0; i + 2 < logits.size(); i += 3) {
    places.push_back((logits[i] - logits[i + 1]) / std::numbers::sqrt2);
    places.push_back((logits[i] + logits[i + 1] - 2.0 * logits[i + 2]) /
                     (std::numbers::sqrt2 * std::numbers::sqrt3));
  }
  return places;
}

val places(const val& logits) { return float64_array(in_plane(numbers(logits))); }

/// Points of the model's ellipse in the same plane, around it once.
val ellipse(const val& value, double count) {
  return guarded([&] {
    SmallModel model = model_of(value);
    const selectability::VocabularyHead head =
        selectability::vocabulary_head(model.norm, model.view(), model.bias);
    const signature::Ellipse found = signature::ellipse_of(head.logits, 1);
    std::vector<double> logits;
    for (double step = 0.0; step <= count; step += 1.0) {
      const double angle = 2.0 * std::numbers::pi * step / count;
      const std::array<double, 2> u{std::cos(angle), std::sin(angle)};
      for (std::size_t token = 0; token < 3; ++token) {
        double at = found.centre[token];
        for (std::size_t k = 0; k < std::min<std::size_t>(2, found.rank); ++k) {
          at += found.view().row(token)[k] * found.semi_axes[k] * u[k];
        }
        logits.push_back(at);
      }
    }
    return float64_array(in_plane(logits));
  });
}

/// For each output whether the model can have given it: [{verdict, reason, proved, length, units}], units the
/// distance of |u| from 1 in units of rounding.
val verify(const val& value, const val& logits, const std::string& precision) {
  return guarded([&] {
    SmallModel model = model_of(value);
    const signature::Head head =
        signature::head_of(selectability::vocabulary_head(model.norm, model.view(), model.bias));
    const std::vector<double> given = numbers(logits);
    std::vector<std::byte> bytes(given.size() * sizeof(double));
    encode(Dtype::F64, given, bytes);
    const signature::Outputs rows(
        files::OpenedArray(
            "outputs", {.shape = {given.size() / 3, 3},
                        .dtype = Dtype::F64,
                        .fetch = [&](std::vector<std::byte>&) { return std::span<const std::byte>(bytes); }}),
        std::nullopt, {.precision = precision_of(precision)});
    val result = val::array();
    for (const signature::RowResult& row : signature::verify(head, rows, {.threads = 1}).rows) {
      val entry = val::object();
      entry.set("verdict", std::string(to_string(row.verdict)));
      entry.set("reason", std::string(to_string(row.reason)));
      entry.set("proved", row.proved);
      entry.set("length", row.length);
      entry.set("units", row.length_units);
      result.call<void>("push", entry);
    }
    return result;
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(signature) {
  emscripten::function("signatureOutputs", &outputs);
  emscripten::function("signaturePlaces", &places);
  emscripten::function("signatureEllipse", &ellipse);
  emscripten::function("signatureVerify", &verify);
}

}  // namespace normscope::wasm
