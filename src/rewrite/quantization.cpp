#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/dtype.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

#include "compare_steps.hpp"

namespace normscope::rewrite {
namespace {

using files::QuantizedElement;
using models::Layout;
using models::Linear;

constexpr std::uint64_t explained_elements = std::uint64_t{1} << 20U;

/// Half steps are exceeded by this much where codes are computed in float32.
constexpr double tie = 1.0 + 0x1p-10;

/// Roundings of an original before it is quantized: converters write F16 or BF16 first.
double rounding_before(Dtype original, double value) {
  switch (original) {
    case Dtype::F16: return 0.0;
    case Dtype::BF16: return std::max(0x1p-11 * std::abs(value), 0x1p-25);
    default: return std::max(0x1p-8 * std::abs(value), 0x1p-25);
  }
}

/// How far an element is from its original.
struct ElementError {
  std::optional<double> steps{};
  double excess = 0.0;  ///< in units of what the block explains; at most 1 if it does
};

ElementError error_of(const QuantizedElement& element, double original, Dtype dtype, double share) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double error = std::abs(original - element.value);
  if (error == 0.0) return {0.0, 0.0};
  const double neighbour = original > element.value ? element.above : element.below;
  const double step = neighbour > 0.0 ? neighbour : element.step;
  const double explained = (neighbour > 0.0 ? share * tie * step : 0.5 * tie * step + element.beyond) +
                           element.rounding + rounding_before(dtype, original);
  const double excess = error / explained;
  const std::optional<double> steps =
      step > 0.0 && std::isfinite(error / step) ? std::optional(error / step) : std::nullopt;
  return {steps, std::isfinite(excess) ? excess : infinity};
}

/// By what weights behind two norms differ, feature by feature, if a gain was folded into one of them. Gains
/// that differ by rounding alone, such as 1 + w in 16 bits, were not.
std::vector<double> gain_ratios(const NormSpec& original, const NormSpec& quantized, std::uint64_t features) {
  std::vector<double> ratios(features);
  bool is_folded = false;
  for (std::size_t j = 0; j < ratios.size(); ++j) {
    const double a = original.gain_at(j);
    const double b = quantized.gain_at(j);
    ratios[j] = a == b ? 1.0 : a / b;
    is_folded = is_folded || !(std::abs(a - b) <= 0x1p-8 * std::abs(a));
  }
  if (!is_folded) ratios.assign(ratios.size(), 1.0);
  return ratios;
}

Quantization explain(const MapOfFile& original, const MapOfFile& quantized, const files::Tensor& stored) {
  Quantization result;
  result.format = stored.stored_type();
  result.is_by_rule = quantized.file.quantization().empty();
  const bool by_inputs = quantized.map.layout == Layout::in_out;
  // Each stored line is a row.
  const Linear from = by_inputs ? transposed(original.map) : original.map;
  const Linear to = by_inputs ? transposed(quantized.map) : quantized.map;
  const Dtype dtype = original.file.find(original.map.weight.tensor)->dtype;
  const double share = stored.quantized->is_nearest() ? 0.5 : 1.0;
  const std::uint64_t block_size = stored.blocks->elements;
  const std::vector<double> ratios = gain_ratios(original.norm, quantized.norm, by_inputs ? to.out : to.in);
  double worst = -1.0;
  std::vector<QuantizedElement> elements(to.in);
  const std::uint64_t rows_of_step =
      std::max<std::uint64_t>(1, explained_elements / std::max<std::uint64_t>(1, to.in));
  for (std::uint64_t first = 0; first < to.out; first += rows_of_step) {
    const std::uint64_t count = std::min(rows_of_step, to.out - first);
    const std::vector<double> rows = read_weight(original.file, from, first, count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t begin = to.weight.offset + to.stored_output(first + i) * to.in;
      stored.quantized->describe(begin, elements);
      std::uint64_t last_wrong = std::numeric_limits<std::uint64_t>::max();
      for (std::uint64_t j = 0; j < to.in; ++j) {
        const double ratio = ratios[by_inputs ? first + i : j];
        const ElementError error = error_of(elements[j], rows[i * to.in + j] * ratio, dtype, share);
        const std::uint64_t block = j / block_size;
        if (!(error.excess <= 1.0) && block != last_wrong) {
          ++result.wrong_blocks;
          last_wrong = block;
        }
        if (error.excess <= worst) continue;
        worst = error.excess;
        result.row = begin / to.in;
        result.block = block;
        result.steps = error.steps;
      }
    }
  }
  result.blocks = to.out * ((to.in + block_size - 1) / block_size);
  result.explained = result.wrong_blocks == 0;
  return result;
}

}  // namespace

bool Comparison::is_quantization(std::string_view new_weight) const {
  return tolerates == Tolerance::quantization &&
         std::any_of(quantizations.begin(), quantizations.end(), [&](const Quantization& found) {
           return found.explained && found.new_weight == new_weight;
         });
}

std::optional<Quantization> explain_quantization(const MapOfFile& before, const MapOfFile& after) {
  const files::Tensor* const old_tensor = before.file.find(before.map.weight.tensor);
  const files::Tensor* const new_tensor = after.file.find(after.map.weight.tensor);
  if (old_tensor == nullptr || new_tensor == nullptr) return std::nullopt;
  const bool of_new = new_tensor->quantized != nullptr;
  if (!of_new && old_tensor->quantized == nullptr) return std::nullopt;
  const MapOfFile& original = of_new ? before : after;
  const MapOfFile& quantized = of_new ? after : before;
  const bool by_inputs = quantized.map.layout == Layout::in_out;
  if (by_inputs && (original.map.layout != Layout::in_out || !original.map.out_indices.empty() ||
                    !quantized.map.out_indices.empty() || original.map.out != original.map.stored_out ||
                    quantized.map.out != quantized.map.stored_out)) {
    return std::nullopt;
  }
  Quantization result = explain(original, quantized, of_new ? *new_tensor : *old_tensor);
  result.old_weight = before.map.weight.selector();
  result.new_weight = after.map.weight.selector();
  result.new_is_quantized = of_new;
  return result;
}

}  // namespace normscope::rewrite
