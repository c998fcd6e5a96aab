#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <normscope/core/dtype.hpp>

#include "onnx_pattern.hpp"

/// What a graph computes of the rows of a value along one axis: means, sums and variances.
namespace normscope::models {

/// An operator of a chain that is followed, at most.
inline constexpr int longest_chain = 16;

/// The number of a TensorProto.DataType.
enum CastTo : std::int64_t { to_float = 1, to_half = 10, to_double = 11, to_bfloat = 16 };

/// Operators that put the elements of a value into another shape, in their order or repeated.
inline bool changes_shape(const files::OnnxNode& node) {
  return node.is_standard &&
         (node.op == "Reshape" || node.op == "Expand" || node.op == "Unsqueeze" || node.op == "Squeeze");
}

/// Both orders of a node's two inputs.
struct Operands {
  files::ValueId first;
  files::ValueId second;
};
inline std::array<Operands, 2> either_way(const files::OnnxNode& node) {
  return {{{node.input(0), node.input(1)}, {node.input(1), node.input(0)}}};
}

/// Where the elements of a statistic are: beside the rows they are of, as with a kept axis; without that
/// axis; or repeated along axes.
enum class Form { kept, dropped, expanded };

inline bool lies_beside_rows(Form form) { return form != Form::dropped; }

/// A mean or a sum over one axis.
struct Moment {
  files::ValueId of = files::no_value;
  std::int64_t axis = -1;  ///< counted from the end
  bool is_mean = true;
  std::uint64_t count = 0;  ///< what a sum is divided by, else 0
  Form form = Form::kept;
  const files::OnnxNode* node = nullptr;  ///< that reduces
};

/// The argument of the root.
struct Variance {
  Moment of;  ///< over x
  bool is_centered = false;
  double eps = 0.0;
  // What it was read from:
  const files::OnnxNode* reduce = nullptr;  ///< of the squares
  const files::OnnxNode* square = nullptr;
  files::ValueId eps_value = files::no_value;
  bool is_difference = false;  ///< mean x² − (mean x)²
};

/// What both sums are divided by, if they agree.
inline std::optional<std::uint64_t> common_count(const Moment& a, const Moment& b) {
  if (a.count != 0 && b.count != 0 && a.count != b.count) return {};
  return std::max(a.count, b.count);
}

/// The n that `factor` is the inverse of, rounded as a file stores it; 0 for none.
inline std::uint64_t inverse_count(double factor) {
  if (!(factor > 1e-9 && factor <= 1.0)) return 0;
  const double count = std::round(1.0 / factor);
  const bool is_exact =
      1.0 / count == factor || static_cast<double>(static_cast<float>(1.0 / count)) == factor;
  return is_exact ? static_cast<std::uint64_t>(count) : 0;
}

/// The statistics of a graph.
class OnnxStatistics {
 public:
  OnnxStatistics(const files::OnnxGraph& graph, const OnnxShapes& shapes) : graph_(graph), shapes_(shapes) {}

  /// The value before any casts.
  [[nodiscard]] files::ValueId plain(files::ValueId value) const {
    for (int i = 0; i < longest_chain; ++i) {
      const files::OnnxNode* const node = graph_.maker(value);
      if (node == nullptr || !changes_nothing(*node)) return value;
      value = node->input(0);
    }
    return value;
  }
  [[nodiscard]] const files::OnnxNode* maker(files::ValueId value) const {
    return graph_.maker(plain(value));
  }

  /// The only element of a constant, as casts leave it; NaN for anything else.
  [[nodiscard]] double scalar(files::ValueId value, int depth = 0) const {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (const files::Tensor* const tensor = graph_.constant(value)) {
      return tensor->elements() == 1 && is_decodable(tensor->dtype) ? read(*tensor)[0] : none;
    }
    const files::OnnxNode* const node = graph_.maker(value);
    if (node == nullptr || !changes_nothing(*node) || depth == longest_chain) return none;
    const double before = scalar(node->input(0), depth + 1);
    switch (node->op == "Identity" ? to_double : node->integer("to", 0)) {
      case to_double: return before;
      case to_float: return static_cast<double>(static_cast<float>(before));
      // Numbers that every floating type holds.
      default:
        return before == 0.0 || before == 1.0 || before == 2.0 || std::abs(before) == 0.5 ? before : none;
    }
  }

  /// The form of a statistic over `of` along `axis` after an operator that changes shapes; empty if the
  /// elements may then lie elsewhere.
  [[nodiscard]] std::optional<Form> form_after(const files::OnnxNode& node, Form form,
                                               const Moment& moment) const {
    const std::optional<OnnxShapes::Extents> rows = shapes_.of(moment.of);
    if (node.op == "Expand")
      return node.attributes.empty() && lies_beside_rows(form) ? std::optional(Form::expanded) : std::nullopt;
    if (form == Form::expanded) return {};
    if (node.op == "Reshape") {
      const std::optional<OnnxShapes::Extents> out = shapes_.of(node.output());
      if (!rows || !out) return {};
      OnnxShapes::Extents kept = *rows;
      OnnxShapes::Extents dropped = *rows;
      const auto at = rows->end() - rows->begin() + moment.axis;
      kept[static_cast<std::size_t>(at)] = 1;
      dropped.erase(dropped.begin() + at);
      // The number of elements determines one extent that is not known, but no more.
      if (std::count(dropped.begin(), dropped.end(), unknown_extent) > 1) return {};
      if (*out == kept) return Form::kept;
      return *out == dropped ? std::optional(Form::dropped) : std::nullopt;
    }
    constexpr files::OnnxNode::Known known[] = {{"axes", files::OnnxAttribute::Type::integers}};
    const std::optional<std::vector<std::int64_t>> axes = axes_of(graph_, node, known);
    if (!axes || axes->size() != 1) return {};
    const bool adds = node.op == "Unsqueeze";
    if (adds != (form == Form::dropped)) return {};
    std::int64_t axis = axes->front();
    if (axis >= 0) {
      const std::optional<OnnxShapes::Extents> before = shapes_.of(node.input(0));
      if (!rows || !before || before->size() + (adds ? 1 : 0) != rows->size()) return {};
      axis = from_end(axis, rows->size()).value_or(0);
    }
    if (axis != moment.axis) return {};
    return adds ? Form::kept : Form::dropped;
  }

  /// What an operator that reduces one axis reduces.
  [[nodiscard]] std::optional<Moment> reduced(const files::OnnxNode& node) const {
    const std::optional<std::vector<std::int64_t>> axes = reduced_axes(graph_, node);
    if (!axes || axes->size() != 1) return {};
    Moment result{plain(node.input(0)), axes->front()};
    if (const std::optional<OnnxShapes::Extents> rows = shapes_.of(result.of)) {
      result.axis = from_end(result.axis, rows->size()).value_or(0);
    }
    if (result.axis >= 0 || result.axis < -std::int64_t{longest_chain}) return {};
    result.form = node.integer("keepdims", 1) != 0 ? Form::kept : Form::dropped;
    result.node = &node;
    return result;
  }

  [[nodiscard]] std::optional<Moment> moment(files::ValueId value, int depth = 0) const {
    const files::OnnxNode* const node = maker(value);
    if (node == nullptr || !node->is_standard || depth == longest_chain) return {};
    if (changes_shape(*node)) {
      std::optional<Moment> inner = moment(node->input(0), depth + 1);
      const std::optional<Form> form = inner ? form_after(*node, inner->form, *inner) : std::nullopt;
      if (!form) return {};
      inner->form = *form;
      return inner;
    }
    if (is_plain(*node, "Mul") || is_plain(*node, "Div")) {
      const bool divides = node->op == "Div";
      const bool swapped = !divides && !std::isnan(scalar(node->input(0)));
      const double factor = scalar(node->input(swapped ? 0 : 1));
      const bool is_count = divides && factor >= 1.0 && factor < 1e9 && std::floor(factor) == factor;
      const std::uint64_t count = is_count  ? static_cast<std::uint64_t>(factor)
                                  : divides ? 0
                                            : inverse_count(factor);
      std::optional<Moment> sum = count == 0 ? std::nullopt : moment(node->input(swapped ? 1 : 0), depth + 1);
      if (!sum || sum->is_mean) return {};
      sum->is_mean = true;
      sum->count = count;
      return sum;
    }
    if (node->op != "ReduceMean" && node->op != "ReduceSum") return {};
    std::optional<Moment> result = reduced(*node);
    if (result) result->is_mean = node->op == "ReduceMean";
    return result;
  }

  /// The x for which `value` is x².
  [[nodiscard]] files::ValueId square_root_of(files::ValueId value) const {
    const files::OnnxNode* node = maker(value);
    if (node == nullptr) return files::no_value;
    const files::ValueId base = plain(node->input(0));
    const bool is_square = (is_plain(*node, "Mul") && plain(node->input(1)) == base) ||
                           (is_plain(*node, "Pow") && scalar(node->input(1)) == 2.0);
    return is_square ? base : files::no_value;
  }

  /// The mean that was subtracted to give `value`.
  [[nodiscard]] std::optional<Moment> taken_out(files::ValueId value) const {
    const files::OnnxNode* node = maker(value);
    if (node == nullptr || !is_plain(*node, "Sub")) return {};
    const std::optional<Moment> m = moment(node->input(1));
    const bool is_of_rows = m && m->is_mean && lies_beside_rows(m->form) && m->of == plain(node->input(0));
    return is_of_rows ? m : std::nullopt;
  }

  /// The mean or sum of squares that `value` is.
  [[nodiscard]] std::optional<Variance> of_squares(const Moment& m) const {
    const files::ValueId base = square_root_of(m.of);
    if (base == files::no_value) return {};
    Variance result{m, false};
    result.of.of = base;
    if (const std::optional<Moment> x = taken_out(base); x && x->axis == m.axis) {
      // No kind divides what is centered by its length.
      if (!m.is_mean) return {};
      const std::optional<std::uint64_t> count = common_count(*x, m);
      if (!count) return {};
      result = {*x, true};
      result.of.count = *count;
      result.of.form = m.form;
    }
    result.reduce = m.node;
    result.square = maker(m.of);
    return result;
  }

  [[nodiscard]] std::optional<Variance> variance(files::ValueId value, int depth = 0) const {
    if (const std::optional<Moment> m = moment(value)) return of_squares(*m);
    const files::OnnxNode* const node = maker(value);
    if (node == nullptr || depth == longest_chain) return {};
    if (changes_shape(*node)) {
      std::optional<Variance> inner = variance(node->input(0), depth + 1);
      const std::optional<Form> form = inner ? form_after(*node, inner->of.form, inner->of) : std::nullopt;
      if (!form) return {};
      inner->of.form = *form;
      return inner;
    }
    // A variance is not negative: clamping undoes rounding.
    if (is_plain(*node, "Max") && node->inputs.size() == 2) {
      for (const auto [floor, kept] : either_way(*node)) {
        if (scalar(floor) == 0.0) return variance(kept, depth + 1);
      }
    }
    if (is_plain(*node, "Clip") && node->input(2) == files::no_value && scalar(node->input(1)) == 0.0)
      return variance(node->input(0), depth + 1);
    if (!is_plain(*node, "Sub")) return {};
    const std::optional<Moment> squares = moment(node->input(0));
    const files::ValueId root = square_root_of(node->input(1));
    std::optional<Moment> x = root == files::no_value ? std::nullopt : moment(root);
    if (!squares || !x || square_root_of(squares->of) != x->of) return {};
    const std::optional<std::uint64_t> count = common_count(*squares, *x);
    if (!squares->is_mean || !x->is_mean || squares->axis != x->axis || squares->form != x->form || !count)
      return {};
    x->count = *count;
    Variance result{*x, true};
    result.reduce = squares->node;
    result.square = maker(squares->of);
    result.is_difference = true;
    return result;
  }

  /// A variance and eps, in either order, or a variance alone.
  [[nodiscard]] std::optional<Variance> padded(files::ValueId value, int depth = 0) const {
    const files::OnnxNode* const node = maker(value);
    if (node == nullptr || depth == longest_chain) return {};
    if (is_plain(*node, "Add")) {
      for (const auto [statistic, eps] : either_way(*node)) {
        const double number = scalar(eps);
        if (!(number >= 0.0) || std::isinf(number)) continue;
        std::optional<Variance> found = variance(statistic);
        if (!found) continue;
        found->eps = number;
        found->eps_value = plain(eps);
        return found;
      }
      return {};
    }
    if (changes_shape(*node)) {
      std::optional<Variance> inner = padded(node->input(0), depth + 1);
      const std::optional<Form> form = inner ? form_after(*node, inner->of.form, inner->of) : std::nullopt;
      if (!form) return {};
      inner->of.form = *form;
      return inner;
    }
    return variance(value);
  }

 protected:
  const files::OnnxGraph& graph_;
  const OnnxShapes& shapes_;
};

}  // namespace normscope::models
