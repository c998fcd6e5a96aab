#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "onnx_pattern.hpp"
#include "onnx_statistics.hpp"

namespace normscope::models {
namespace {

using files::no_value;
using files::OnnxGraph;
using files::OnnxNode;
using files::ValueId;

/// Nodes behind a root that are looked at.
constexpr std::size_t most_takers = 32;

bool reduces(const OnnxNode& node) {
  return node.is_standard && (node.op == "ReduceMean" || node.op == "ReduceSum");
}

/// Says why a root, and what it divides, are no norm.
class Reasons : private OnnxStatistics {
 public:
  using OnnxStatistics::OnnxStatistics;

  [[nodiscard]] bool takes_root(const OnnxNode& node) const {
    return is_plain(node, "Sqrt") || (node.is_standard && node.op == "ReduceL2") ||
           (is_plain(node, "Pow") && (scalar(node.input(1)) == 0.5 || scalar(node.input(1)) == -0.5));
  }

  [[nodiscard]] std::string why(const OnnxNode& root) const {
    const std::string of_statistic = root.op == "ReduceL2" ? why_no_length(root) : why_no_variance(root);
    if (of_statistic != no_reason) return of_statistic;
    const std::string of_quotient = why_no_quotient(root);
    const std::optional<Variance> found = root.op == "ReduceL2" ? std::nullopt : padded(root.input(0));
    if (of_quotient.empty() || !found || found->is_centered) return of_quotient;
    const std::string of_mean = why_not_centred(found->of.of, found->of);
    return of_mean.empty() ? of_quotient : of_mean + "; " + of_quotient;
  }

 private:
  /// A statistic that is understood.
  inline static const std::string no_reason = "-";

  [[nodiscard]] std::string title(const OnnxNode& node) const { return title_of(graph_, node); }
  [[nodiscard]] std::string name(ValueId value) const {
    return value == no_value ? std::string("nothing") : std::string(graph_.name(plain(value)));
  }

  /// The node that reduces what `value` is made of by shapes, casts, factors, clamps and differences; null
  /// for other values.
  [[nodiscard]] const OnnxNode* reduction_in(ValueId value, int depth = 0) const {
    const OnnxNode* const node = maker(value);
    if (node == nullptr || depth == 8) return nullptr;
    if (reduces(*node)) return node;
    const bool passes = changes_shape(*node) || is_plain(*node, "Max") || is_plain(*node, "Clip") ||
                        is_plain(*node, "Mul") || is_plain(*node, "Div") || is_plain(*node, "Sub");
    if (!passes) return nullptr;
    const OnnxNode* const first = reduction_in(node->input(0), depth + 1);
    return first != nullptr || changes_shape(*node) ? first : reduction_in(node->input(1), depth + 1);
  }

  [[nodiscard]] std::string why_no_length(const OnnxNode& root) const {
    if (std::string why = why_not_one_axis(root); !why.empty()) return why;
    const std::optional<Moment> length = reduced(root);
    if (!length) return "its axis is counted from the first, and the graph does not state how many there are";
    const std::optional<Moment> mean = taken_out(length->of);
    if (mean && mean->axis == length->axis)
      return "it is the length of what is centred, by which no kind divides";
    return no_reason;
  }

  /// Why a node does not reduce one axis.
  [[nodiscard]] std::string why_not_one_axis(const OnnxNode& node) const {
    const std::optional<std::vector<std::int64_t>> axes = reduced_axes(graph_, node);
    if (!axes)
      return fmt::format("the axes of {} are not stored, or it has an attribute that is not known",
                         title(node));
    if (axes->empty()) return fmt::format("{} reduces all axes, expected one", title(node));
    if (axes->size() > 1) return fmt::format("{} reduces {} axes, expected one", title(node), axes->size());
    return {};
  }

  [[nodiscard]] std::string why_no_variance(const OnnxNode& root) const {
    if (padded(root.input(0))) return no_reason;
    const OnnxNode* node = maker(root.input(0));
    for (int i = 0; i < longest_chain && node != nullptr && changes_shape(*node); ++i)
      node = maker(node->input(0));
    if (node == nullptr) return {};
    ValueId statistic = node->output();
    if (is_plain(*node, "Add")) {
      for (const auto [value, eps] : either_way(*node)) {
        if (reduction_in(value) == nullptr) continue;
        const double number = scalar(eps);
        if (std::isnan(number)) {
          return fmt::format("what {} adds under the root, {}, is not one stored number", title(*node),
                             name(eps));
        }
        if (!(number >= 0.0) || std::isinf(number)) {
          return fmt::format("eps is {:g}, the constant {}, expected a number from 0 on", number, name(eps));
        }
        statistic = value;
      }
    }
    const OnnxNode* const reduction = reduction_in(statistic);
    return reduction == nullptr ? std::string() : why_no_statistic(statistic, *reduction);
  }

  /// Why a value that `reduction` enters is no variance and no mean square.
  [[nodiscard]] std::string why_no_statistic(ValueId value, const OnnxNode& reduction) const {
    if (std::string why = why_not_one_axis(reduction); !why.empty()) return why;
    const std::optional<Moment> moment_of_it = reduced(reduction);
    if (!moment_of_it) {
      return fmt::format(
          "the axis of {} is counted from the first, and the graph does not state how many there are",
          title(reduction));
    }
    const OnnxNode* const outer = maker(value);
    if (is_plain(*outer, "Max") || is_plain(*outer, "Clip"))
      return fmt::format("{} clamps the variance elsewhere than at 0", title(*outer));
    if (is_plain(*outer, "Sub"))
      return fmt::format("{} is not mean x\u00b2 - (mean x)\u00b2 of one x along one axis", title(*outer));
    if (std::string why = why_no_square(*moment_of_it); !why.empty()) return why;
    const std::optional<Moment> divided = moment(value);
    const ValueId base = square_root_of(moment_of_it->of);
    if (std::string why = why_not_centred(base, divided ? *divided : *moment_of_it); !why.empty()) return why;
    if (is_plain(*outer, "Mul") || is_plain(*outer, "Div")) {
      return reduction.op == "ReduceMean"
                 ? fmt::format("{} changes a mean, which is divided by the number of features already",
                               title(*outer))
                 : fmt::format("{} does not divide the sum by a whole number", title(*outer));
    }
    return fmt::format("{} is no sum or mean beside the rows that it is of", name(value));
  }

  [[nodiscard]] std::string why_no_square(const Moment& of) const {
    if (square_root_of(of.of) != no_value) return {};
    const OnnxNode* const node = maker(of.of);
    if (node != nullptr && is_plain(*node, "Pow")) {
      const double exponent = scalar(node->input(1));
      return std::isnan(exponent)
                 ? fmt::format("the exponent of {}, {}, is not one stored number", title(*node),
                               name(node->input(1)))
                 : fmt::format("the exponent of {} is {:g}, expected 2", title(*node), exponent);
    }
    if (node != nullptr && is_plain(*node, "Mul")) {
      return fmt::format("{} multiplies {} by {}, expected a square", title(*node), name(node->input(0)),
                         name(node->input(1)));
    }
    return fmt::format("{} reduces {}, expected squares", title(*of.node), name(of.of));
  }

  /// Why a difference that is squared is no x minus its mean.
  [[nodiscard]] std::string why_not_centred(ValueId base, const Moment& squares) const {
    const OnnxNode* const node = maker(base);
    if (node == nullptr || !is_plain(*node, "Sub")) return {};
    const std::optional<Moment> mean = moment(node->input(1));
    if (!mean) return {};
    if (mean->of != plain(node->input(0))) {
      return fmt::format("{} subtracts the mean of {} from {}", title(*node), name(mean->of),
                         name(node->input(0)));
    }
    if (!mean->is_mean) return fmt::format("{} subtracts a sum, expected a mean", title(*node));
    if (!lies_beside_rows(mean->form))
      return fmt::format("{} subtracts a mean that does not lie beside its rows", title(*node));
    if (mean->axis != squares.axis) {
      return fmt::format("{} subtracts the mean along axis {}, and squares are reduced along axis {}",
                         title(*node), mean->axis, squares.axis);
    }
    if (!squares.is_mean) {
      return fmt::format("{} sums squares of what is centred, and no kind divides by its length",
                         title(*squares.node));
    }
    if (!common_count(*mean, squares)) {
      return fmt::format("the sum that {} subtracts is divided by {}, the sum of squares by {}", title(*node),
                         mean->count, squares.count);
    }
    return {};
  }

  /// Why what is divided by a root of a statistic is no norm.
  [[nodiscard]] std::string why_no_quotient(const OnnxNode& root) const {
    struct Use {
      ValueId value;
      bool inverted;
    };
    std::vector<Use> uses{{root.output(), is_plain(root, "Pow") && scalar(root.input(1)) == -0.5}};
    std::string of_product;
    for (std::size_t at = 0; at < uses.size() && uses.size() < most_takers; ++at) {
      const auto [value, inverted] = uses[at];
      if (value == no_value) continue;
      for (const std::uint32_t taker : graph_.takers(value)) {
        const OnnxNode& node = graph_.nodes()[taker];
        if (uses.size() >= most_takers) break;
        const bool divides = is_plain(node, "Div") && node.input(1) == value;
        if (changes_nothing(node) || changes_shape(node)) {
          uses.push_back({node.output(), inverted});
        } else if (is_plain(node, "Reciprocal") || (divides && scalar(node.input(0)) == 1.0)) {
          uses.push_back({node.output(), !inverted});
        } else if (is_plain(node, "Add") && !inverted) {
          const ValueId other = node.input(node.input(0) == value ? 1 : 0);
          return fmt::format("{} adds {} to the root, expected eps under it", title(node), name(other));
        } else if (is_plain(node, "Mul") && !inverted) {
          return fmt::format("{} multiplies by the root, expected a division", title(node));
        } else if (is_plain(node, "Div") && !divides) {
          return inverted ? fmt::format("{} divides the inverse of the root", title(node))
                          : fmt::format("{} divides the root", title(node));
        } else if (is_plain(node, "Mul") || divides) {
          const std::string why = why_no_product(graph_, shapes_, node);
          if (!why.empty()) of_product = fmt::format("{} is no norm: {}", title(node), why);
          uses.push_back({node.output(), true});
        }
      }
    }
    return of_product;
  }
};

}  // namespace

bool is_root(const OnnxGraph& graph, const OnnxShapes& shapes, const OnnxNode& node) {
  return Reasons(graph, shapes).takes_root(node);
}

std::string why_no_norm(const OnnxGraph& graph, const OnnxShapes& shapes, const OnnxNode& root) {
  return Reasons(graph, shapes).why(root);
}

}  // namespace normscope::models
