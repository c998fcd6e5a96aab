#include "onnx_pattern.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "onnx_statistics.hpp"

namespace normscope::models {
namespace {

using files::no_value;
using files::OnnxAttribute;
using files::OnnxGraph;
using files::OnnxNode;
using files::Tensor;
using files::ValueId;
using Type = OnnxAttribute::Type;

constexpr int deepest_product = 4;

/// A square root in a product.
struct Root {
  const OnnxNode* node = nullptr;
  ValueId of = no_value;
};

class Matcher : private OnnxStatistics {
 public:
  using OnnxStatistics::OnnxStatistics;

  std::optional<WrittenNorm> match(const OnnxNode& product) {
    for (int depth = 1; depth <= deepest_product && root_.node == nullptr; ++depth) {
      find_root(product, false, depth);
    }
    if (root_.node == nullptr || !read_root()) return {};
    norm_.root = root_.node;
    norm_.input = variance_.of.of;
    norm_.axis = variance_.of.axis;
    norm_.count = variance_.of.count;
    norm_.eps = variance_.eps;
    const bool is_understood = collect(product, false, 0);
    if (is_understood && numerators_ != 1) fail(fmt::format("{} is no factor of it", numerator_name()));
    if (!is_understood || roots_ != 1 || numerators_ != 1) return {};
    norm_.reasons = reasons();
    return norm_;
  }

  /// Why `match` returned none, if a statistic enters the root.
  [[nodiscard]] const std::string& why() const { return why_; }

  [[nodiscard]] std::optional<GraphParameter> parameter(ValueId value) const {
    GraphParameter result;
    const std::optional<OnnxShapes::Extents> extents = shapes_.of(value);
    if (!extents) return {};
    result.extents = *extents;
    for (int i = 0; i < longest_chain; ++i) {
      if (const Tensor* const tensor = graph_.constant(value)) {
        if (!is_floating(tensor->dtype) || !is_decodable(tensor->dtype)) return {};
        std::uint64_t elements = 1;
        for (const std::int64_t extent : result.extents) {
          if (extent <= 0 || __builtin_mul_overflow(elements, static_cast<std::uint64_t>(extent), &elements))
            return {};
        }
        if (elements != tensor->elements()) return {};
        result.tensor = tensor;
        result.stored = value;
        return result;
      }
      const OnnxNode* const node = graph_.maker(value);
      if (node == nullptr) return {};
      if (changes_nothing(*node) || changes_shape(*node)) {
        value = node->input(0);
      } else if (is_plain(*node, "Add") && result.offset == 0.0) {
        const bool first = scalar(node->input(0)) == 1.0;
        if (!first && scalar(node->input(1)) != 1.0) return {};
        result.offset = 1.0;
        value = node->input(first ? 1 : 0);
      } else {
        return {};
      }
    }
    return {};
  }

 private:
  /// Reads what the root is of, and with it the kind of the norm.
  bool read_root() {
    if (root_.node->op == "ReduceL2") {
      const std::optional<Moment> length = reduced(*root_.node);
      if (!length) return false;
      if (const std::optional<Moment> mean = taken_out(length->of); mean && mean->axis == length->axis)
        return false;
      variance_ = {*length, false};
      variance_.of.is_mean = false;
    } else {
      const std::optional<Variance> found = padded(root_.of);
      if (!found) return false;
      variance_ = *found;
    }
    norm_.kind = variance_.is_centered  ? NormKind::layer
                 : variance_.of.is_mean ? NormKind::rms
                                        : NormKind::spherical;
    return true;
  }

  /// The square root that `node` takes, if its inverse is a factor; `inverted` states whether the node's
  /// output is a divisor in the product.
  [[nodiscard]] std::optional<Root> as_root(const OnnxNode& node, bool inverted) const {
    if (is_plain(node, "Sqrt") && inverted) return Root{&node, node.input(0)};
    if (node.is_standard && node.op == "ReduceL2" && inverted) return Root{&node, node.input(0)};
    if (is_plain(node, "Pow") && scalar(node.input(1)) == (inverted ? 0.5 : -0.5))
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
      const OnnxNode* next = maker(factor);
      for (int i = 0; i < longest_chain && next != nullptr && changes_shape(*next); ++i)
        next = maker(next->input(0));
      if (next != nullptr) find_root(*next, factor_inverted, depth - 1);
      return true;
    });
  }

  /// Calls `take(value, inverted)` for the factors of a node that multiplies or divides, until it returns
  /// false.
  template <typename Take>
  bool each_factor(const OnnxNode& node, bool inverted, const Take& take) const {
    if (is_plain(node, "Reciprocal")) return take(node.input(0), !inverted);
    if (is_plain(node, "Mul")) return take(node.input(0), inverted) && take(node.input(1), inverted);
    if (is_plain(node, "Div")) return take(node.input(0), inverted) && take(node.input(1), !inverted);
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
    if (is_numerator(factor)) {
      if (inverted) return fail(fmt::format("it divides by {}", numerator_name()));
      return ++numerators_ == 1 || fail(fmt::format("{} is a factor twice", numerator_name()));
    }
    if (scalar(factor) == 1.0) return true;
    if (std::optional<GraphParameter> gain = parameter(factor)) {
      const std::string name(graph_.name(gain->stored));
      if (gain->tensor->elements() <= 1) return fail(fmt::format("{} is a factor, of one number", name));
      if (inverted) return fail(fmt::format("it divides by the vector {}", name));
      if (norm_.gain) return fail(fmt::format("{} is a factor beside the gain", name));
      norm_.gain = std::move(gain);
      return true;
    }
    if (const std::optional<Form> form = form_of_root(factor, inverted, 0)) {
      if (!lies_beside_rows(*form)) return fail("the root does not lie beside the rows that it is of");
      return ++roots_ == 1 || fail("the root is a factor twice");
    }
    const OnnxNode* const node = maker(factor);
    const bool is_product = node != nullptr && (is_plain(*node, "Mul") || is_plain(*node, "Div") ||
                                                is_plain(*node, "Reciprocal"));
    return is_product ? collect(*node, inverted, depth + 1)
                      : fail(fmt::format("its factor {} is neither {} nor a stored vector",
                                         graph_.name(plain(factor)), numerator_name()));
  }

  /// Keeps the first reason; returns false.
  bool fail(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }

  [[nodiscard]] std::string numerator_name() const {
    const std::string_view x = graph_.name(variance_.of.of);
    return variance_.is_centered ? fmt::format("{} minus its mean", x) : std::string(x);
  }

  [[nodiscard]] std::string identity() const {
    if (root_.node->op == "ReduceL2") return "x / |x|";
    const char* const under = variance_.is_difference ? "mean x\u00b2 - (mean x)\u00b2"
                              : variance_.is_centered ? "mean (x - mean x)\u00b2"
                              : variance_.of.is_mean  ? "mean x\u00b2"
                                                      : "sum x\u00b2";
    return fmt::format("{} / sqrt({} + eps)", variance_.is_centered ? "(x - mean x)" : "x", under);
  }

  /// What was found: the identity, its nodes and its constants.
  [[nodiscard]] std::vector<std::string> reasons() const {
    std::vector<std::string> result;
    result.push_back(fmt::format("{}, where x is {}", identity(), graph_.name(variance_.of.of)));
    if (variance_.reduce != nullptr && variance_.square != nullptr) {
      result.push_back(fmt::format("{} along axis {} of the squares that {} computes{}",
                                   title_of(graph_, *variance_.reduce), norm_.axis,
                                   title_of(graph_, *variance_.square),
                                   norm_.count == 0 ? "" : fmt::format(", divided by {}", norm_.count)));
    }
    result.push_back(fmt::format("{} takes the root", title_of(graph_, *root_.node)));
    result.push_back(variance_.eps_value == no_value
                         ? std::string("eps is 0: nothing is added under the root")
                         : fmt::format("eps is {:g}, the constant {}, added under the root", norm_.eps,
                                       graph_.name(variance_.eps_value)));
    if (norm_.gain) {
      result.push_back(fmt::format("the gain is the factor {}{}", graph_.name(norm_.gain->stored),
                                   norm_.gain->offset == 0.0 ? "" : ", to which 1 is added"));
    }
    return result;
  }

  /// The form of the inverse root that `value` is; empty if it is something else.
  [[nodiscard]] std::optional<Form> form_of_root(ValueId value, bool inverted, int depth) const {
    const OnnxNode* const node = maker(value);
    if (node == nullptr || depth == longest_chain) return {};
    if (node == root_.node) return as_root(*node, inverted) ? std::optional(variance_.of.form) : std::nullopt;
    if (changes_shape(*node)) {
      const std::optional<Form> inner = form_of_root(node->input(0), inverted, depth + 1);
      return inner ? form_after(*node, *inner, variance_.of) : std::nullopt;
    }
    if (is_plain(*node, "Reciprocal")) return form_of_root(node->input(0), !inverted, depth + 1);
    if (is_plain(*node, "Div") && scalar(node->input(0)) == 1.0)
      return form_of_root(node->input(1), !inverted, depth + 1);
    return {};
  }

  [[nodiscard]] bool is_numerator(ValueId value) const {
    const Moment& x = variance_.of;
    if (!variance_.is_centered) return plain(value) == x.of;
    const std::optional<Moment> out = taken_out(value);
    return out && out->of == x.of && out->axis == x.axis && common_count(*out, x);
  }

  Root root_;
  Variance variance_;
  WrittenNorm norm_;
  int roots_ = 0;
  int numerators_ = 0;
  std::string why_{};
};

}  // namespace

std::string title_of(const OnnxGraph& graph, const OnnxNode& node) {
  const std::string_view name = !node.name.empty()          ? node.name
                                : node.output() == no_value ? std::string_view()
                                                            : graph.name(node.output());
  return fmt::format("{} {}", node.op, name);
}

std::string why_no_product(const OnnxGraph& graph, const OnnxShapes& shapes, const OnnxNode& node) {
  Matcher matcher(graph, shapes);
  return matcher.match(node) ? std::string() : matcher.why();
}

bool changes_nothing(const OnnxNode& node) {
  if (is_plain(node, "Identity")) return true;
  constexpr OnnxNode::Known known[] = {
      {"to", Type::integer}, {"saturate", Type::integer}, {"round_mode", Type::text}};
  if (!node.is_standard || node.op != "Cast" || !node.has_only(known)) return false;
  const std::int64_t to = node.integer("to", 0);
  return to == to_float || to == to_half || to == to_double || to == to_bfloat;
}

bool is_plain(const OnnxNode& node, std::string_view op) {
  return node.is_standard && node.op == op && node.attributes.empty();
}

std::optional<WrittenNorm> match_norm(const OnnxGraph& graph, const OnnxShapes& shapes,
                                      const OnnxNode& node) {
  return is_plain(node, "Mul") || is_plain(node, "Div") ? Matcher(graph, shapes).match(node) : std::nullopt;
}

std::optional<GraphParameter> parameter_of(const OnnxGraph& graph, const OnnxShapes& shapes, ValueId value) {
  return Matcher(graph, shapes).parameter(value);
}

}  // namespace normscope::models
