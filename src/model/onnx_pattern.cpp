#include "onnx_pattern.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace normscope::model {
namespace {

using checkpoint::no_value;
using checkpoint::OnnxGraph;
using checkpoint::OnnxNode;
using checkpoint::Tensor;
using checkpoint::ValueId;

constexpr double largest_axis = 64;
constexpr int longest_chain = 16;
constexpr int deepest_product = 4;

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool changes_nothing(const OnnxNode& node) { return is_one_of(node.op, {"Cast", "Identity"}); }

bool changes_shape(const OnnxNode& node) {
  return is_one_of(node.op, {"Reshape", "Expand", "Unsqueeze", "Squeeze"});
}

/// Both orders of a node's two inputs.
struct Operands {
  ValueId first;
  ValueId second;
};
std::array<Operands, 2> either_way(const OnnxNode& node) {
  return {{{node.input(0), node.input(1)}, {node.input(1), node.input(0)}}};
}

struct Mean {
  ValueId of = no_value;
  std::optional<std::int64_t> axis{};
  std::uint64_t width = 0;
};

/// The argument of the root, without eps.
struct Variance {
  Mean mean;  ///< mean over x
  bool is_centered = false;
};

/// A square root in a product.
struct Root {
  const OnnxNode* node = nullptr;
  ValueId of = no_value;
};

class Matcher {
 public:
  explicit Matcher(const OnnxGraph& graph) : graph_(graph) {}

  std::optional<WrittenNorm> match(const OnnxNode& product) {
    for (int depth = 1; depth <= deepest_product && root_.node == nullptr; ++depth) {
      find_root(product, false, depth);
    }
    if (root_.node == nullptr || !read_variance()) return {};
    norm_.root = root_.node;
    norm_.axis = variance_.mean.axis;
    norm_.width = variance_.mean.width;
    if (!collect(product, false, 0) || roots_ != 1 || numerators_ != 1) return {};
    return norm_;
  }

  [[nodiscard]] const Tensor* constant(ValueId value) const { return graph_.constant(spread(value)); }

 private:
  template <typename Skip>
  ValueId behind(ValueId value, const Skip& skip) const {
    for (int i = 0; i < longest_chain; ++i) {
      const OnnxNode* node = graph_.maker(value);
      const ValueId next = node == nullptr ? no_value : skip(*node);
      if (next == no_value) return value;
      value = next;
    }
    return value;
  }
  /// The value before any casts.
  [[nodiscard]] ValueId plain(ValueId value) const {
    return behind(value,
                  [](const OnnxNode& node) { return changes_nothing(node) ? node.input(0) : no_value; });
  }
  /// The value before any casts, reshapes and clamping to nonnegative values.
  [[nodiscard]] ValueId spread(ValueId value) const {
    return behind(value, [this](const OnnxNode& node) {
      if (changes_nothing(node) || changes_shape(node)) return node.input(0);
      if (node.op != "Max" || node.inputs.size() != 2) return no_value;
      for (const auto [floor, kept] : either_way(node)) {
        if (scalar(floor) == 0.0) return kept;
      }
      return no_value;
    });
  }
  [[nodiscard]] const OnnxNode* maker(ValueId value) const { return graph_.maker(plain(value)); }

  /// The only element of a constant, NaN for anything else.
  [[nodiscard]] double scalar(ValueId value) const {
    const Tensor* tensor = graph_.constant(plain(value));
    return tensor != nullptr && tensor->elements() == 1 && is_decodable(tensor->dtype) ? read(*tensor)[0]
                                                                                       : std::nan("");
  }

  [[nodiscard]] std::optional<std::int64_t> axis_of(const OnnxNode& reduce) const {
    if (reduce.has_axes) return reduce.only_axis;
    const Tensor* axes = graph_.constant(reduce.input(1));
    if (axes == nullptr || axes->dtype != Dtype::I64 || axes->elements() != 1) return {};
    const double axis = read(*axes)[0];
    if (!(std::abs(axis) <= largest_axis)) return {};
    return static_cast<std::int64_t>(axis);
  }

  [[nodiscard]] std::optional<Mean> mean(ValueId value) const {
    const OnnxNode* node = graph_.maker(spread(value));
    if (node == nullptr) return {};
    std::uint64_t width = 0;
    if (is_one_of(node->op, {"Mul", "Div"})) {
      const bool divides = node->op == "Div";
      const ValueId in = node->input(0);
      const bool swapped = !divides && !std::isnan(scalar(in));
      const double factor = scalar(node->input(swapped ? 0 : 1));
      const double count = divides ? factor : 1.0 / factor;
      if (!(count >= 1.0 && count < 1e9)) return {};
      width = static_cast<std::uint64_t>(std::lround(count));
      node = graph_.maker(spread(node->input(swapped ? 1 : 0)));
      if (node == nullptr || node->op != "ReduceSum") return {};
    } else if (node->op != "ReduceMean") {
      return {};
    }
    const std::optional<std::int64_t> axis = axis_of(*node);
    if (!axis) return {};
    return Mean{plain(node->input(0)), axis, width};
  }

  /// The x for which `value` is x².
  [[nodiscard]] ValueId square_root_of(ValueId value) const {
    const OnnxNode* node = maker(value);
    if (node == nullptr) return no_value;
    const ValueId base = plain(node->input(0));
    const bool is_square = (node->op == "Mul" && plain(node->input(1)) == base) ||
                           (node->op == "Pow" && scalar(node->input(1)) == 2.0);
    return is_square ? base : no_value;
  }

  /// The mean that was subtracted to give `value`.
  [[nodiscard]] std::optional<Mean> taken_out(ValueId value) const {
    const OnnxNode* node = maker(value);
    if (node == nullptr || node->op != "Sub") return {};
    const std::optional<Mean> m = mean(node->input(1));
    return m && m->of == plain(node->input(0)) ? m : std::nullopt;
  }

  [[nodiscard]] std::optional<Variance> variance(ValueId value) const {
    const ValueId at = spread(value);
    if (const std::optional<Mean> m = mean(at)) {
      const ValueId base = square_root_of(m->of);
      if (base == no_value) return {};
      if (const std::optional<Mean> x = taken_out(base)) return Variance{*x, true};
      return Variance{{base, m->axis, m->width}, false};
    }
    const OnnxNode* node = graph_.maker(at);
    if (node == nullptr || node->op != "Sub") return {};
    const std::optional<Mean> of_squares = mean(node->input(0));
    const ValueId root = square_root_of(spread(node->input(1)));
    const std::optional<Mean> x = root == no_value ? std::nullopt : mean(root);
    if (!of_squares || !x || square_root_of(of_squares->of) != x->of || of_squares->axis != x->axis)
      return {};
    return Variance{*x, true};
  }

  /// Whether eps and variance are under the root.
  bool read_variance() {
    const OnnxNode* sum = graph_.maker(spread(root_.of));
    if (sum == nullptr || sum->op != "Add") return false;
    for (const auto [statistic, eps] : either_way(*sum)) {
      const double value = scalar(eps);
      if (!(value >= 0.0) || std::isinf(value)) continue;
      const std::optional<Variance> found = variance(statistic);
      if (!found) continue;
      norm_.eps = value;
      norm_.kind = found->is_centered ? NormKind::layer : NormKind::rms;
      variance_ = *found;
      return true;
    }
    return false;
  }

  /// The square root that `node` takes, if its inverse is a factor; `inverted` states whether the node's
  /// output is a divisor in the product.
  [[nodiscard]] std::optional<Root> as_root(const OnnxNode& node, bool inverted) const {
    if (node.op == "Sqrt" && inverted) return Root{&node, node.input(0)};
    if (node.op == "Pow" && scalar(node.input(1)) == (inverted ? 0.5 : -0.5))
      return Root{&node, node.input(0)};
    return {};
  }

  /// Searches for a root `depth` factors into a product. The shallowest one belongs to the current norm;
  /// deeper ones belong to earlier norms of x.
  void find_root(const OnnxNode& node, bool inverted, int depth) {
    if (root_.node != nullptr) return;
    if (const std::optional<Root> root = as_root(node, inverted)) root_ = *root;
    if (depth == 0) return;
    each_factor(node, inverted, [&](ValueId factor, bool factor_inverted) {
      if (const OnnxNode* next = graph_.maker(spread(factor))) find_root(*next, factor_inverted, depth - 1);
      return true;
    });
  }

  /// Calls `take(value, inverted)` for the factors of a node that multiplies or divides, until it returns
  /// false.
  template <typename Take>
  bool each_factor(const OnnxNode& node, bool inverted, const Take& take) const {
    if (node.op == "Reciprocal") return take(node.input(0), !inverted);
    if (node.op == "Mul") return take(node.input(0), inverted) && take(node.input(1), inverted);
    if (node.op == "Div") return take(node.input(0), inverted) && take(node.input(1), !inverted);
    return false;
  }

  /// Accounts for every factor of the product of `node`.
  bool collect(const OnnxNode& node, bool inverted, int depth) {
    if (depth > deepest_product) return false;
    return each_factor(node, inverted, [&](ValueId factor, bool factor_inverted) {
      return account(factor, factor_inverted, depth);
    });
  }

  bool account(ValueId factor, bool inverted, int depth) {
    if (is_numerator(factor)) return !inverted && ++numerators_ == 1;
    if (const Tensor* stored = constant(factor)) {
      if (scalar(spread(factor)) == 1.0) return true;
      if (inverted || norm_.gain != nullptr || stored->elements() <= 1) return false;
      norm_.gain = stored;
      return true;
    }
    const OnnxNode* node = graph_.maker(spread(factor));
    if (node == nullptr) return false;
    if (node == root_.node) return as_root(*node, inverted).has_value() && ++roots_ == 1;
    return collect(*node, inverted, depth + 1);
  }

  [[nodiscard]] bool is_numerator(ValueId value) const {
    const Mean& x = variance_.mean;
    if (!variance_.is_centered) return plain(value) == x.of;
    const std::optional<Mean> out = taken_out(value);
    return out && out->of == x.of && out->axis == x.axis;
  }

  const OnnxGraph& graph_;
  Root root_;
  Variance variance_;
  WrittenNorm norm_;
  int roots_ = 0;
  int numerators_ = 0;
};

}  // namespace

std::optional<WrittenNorm> match_norm(const OnnxGraph& graph, const OnnxNode& node) {
  return is_one_of(node.op, {"Mul", "Div"}) ? Matcher(graph).match(node) : std::nullopt;
}

const Tensor* spread_constant(const OnnxGraph& graph, ValueId value) {
  return Matcher(graph).constant(value);
}

}  // namespace normscope::model
