#include "onnx_pattern.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

namespace normscope::models {
namespace {

using files::no_value;
using files::OnnxAttribute;
using files::OnnxGraph;
using files::OnnxNode;
using files::Tensor;
using files::ValueId;
using Type = OnnxAttribute::Type;

constexpr int longest_chain = 16;
constexpr int deepest_product = 4;

/// The number of a TensorProto.DataType.
enum CastTo : std::int64_t { to_float = 1, to_half = 10, to_double = 11, to_bfloat = 16 };

/// Operators that put the elements of a value into another shape, in their order or repeated.
bool changes_shape(const OnnxNode& node) {
  return node.is_standard &&
         (node.op == "Reshape" || node.op == "Expand" || node.op == "Unsqueeze" || node.op == "Squeeze");
}

/// Both orders of a node's two inputs.
struct Operands {
  ValueId first;
  ValueId second;
};
std::array<Operands, 2> either_way(const OnnxNode& node) {
  return {{{node.input(0), node.input(1)}, {node.input(1), node.input(0)}}};
}

/// Where the elements of a statistic are: beside the rows they are of, as with a kept axis; without that
/// axis; or repeated along axes.
enum class Form { kept, dropped, expanded };

bool lies_beside_rows(Form form) { return form != Form::dropped; }

/// A mean or a sum over one axis.
struct Moment {
  ValueId of = no_value;
  std::int64_t axis = -1;  ///< counted from the end
  bool is_mean = true;
  std::uint64_t count = 0;  ///< what a sum is divided by, else 0
  Form form = Form::kept;
};

/// The argument of the root.
struct Variance {
  Moment of;  ///< over x
  bool is_centered = false;
  double eps = 0.0;
};

/// A square root in a product.
struct Root {
  const OnnxNode* node = nullptr;
  ValueId of = no_value;
};

/// What both sums are divided by, if they agree.
std::optional<std::uint64_t> common_count(const Moment& a, const Moment& b) {
  if (a.count != 0 && b.count != 0 && a.count != b.count) return {};
  return std::max(a.count, b.count);
}

/// The n that `factor` is the inverse of, rounded as a file stores it; 0 for none.
std::uint64_t inverse_count(double factor) {
  if (!(factor > 1e-9 && factor <= 1.0)) return 0;
  const double count = std::round(1.0 / factor);
  const bool is_exact =
      1.0 / count == factor || static_cast<double>(static_cast<float>(1.0 / count)) == factor;
  return is_exact ? static_cast<std::uint64_t>(count) : 0;
}

class Matcher {
 public:
  Matcher(const OnnxGraph& graph, const OnnxShapes& shapes) : graph_(graph), shapes_(shapes) {}

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
    if (!collect(product, false, 0) || roots_ != 1 || numerators_ != 1) return {};
    return norm_;
  }

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
  /// The value before any casts.
  [[nodiscard]] ValueId plain(ValueId value) const {
    for (int i = 0; i < longest_chain; ++i) {
      const OnnxNode* const node = graph_.maker(value);
      if (node == nullptr || !changes_nothing(*node)) return value;
      value = node->input(0);
    }
    return value;
  }
  [[nodiscard]] const OnnxNode* maker(ValueId value) const { return graph_.maker(plain(value)); }

  /// The only element of a constant, as casts leave it; NaN for anything else.
  [[nodiscard]] double scalar(ValueId value, int depth = 0) const {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (const Tensor* const tensor = graph_.constant(value)) {
      return tensor->elements() == 1 && is_decodable(tensor->dtype) ? read(*tensor)[0] : none;
    }
    const OnnxNode* const node = graph_.maker(value);
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
  [[nodiscard]] std::optional<Form> form_after(const OnnxNode& node, Form form, const Moment& moment) const {
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
    constexpr OnnxNode::Known known[] = {{"axes", Type::integers}};
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
  [[nodiscard]] std::optional<Moment> reduced(const OnnxNode& node) const {
    const std::optional<std::vector<std::int64_t>> axes = reduced_axes(graph_, node);
    if (!axes || axes->size() != 1) return {};
    Moment result{plain(node.input(0)), axes->front()};
    if (const std::optional<OnnxShapes::Extents> rows = shapes_.of(result.of)) {
      result.axis = from_end(result.axis, rows->size()).value_or(0);
    }
    if (result.axis >= 0 || result.axis < -std::int64_t{longest_chain}) return {};
    result.form = node.integer("keepdims", 1) != 0 ? Form::kept : Form::dropped;
    return result;
  }

  [[nodiscard]] std::optional<Moment> moment(ValueId value, int depth = 0) const {
    const OnnxNode* const node = maker(value);
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
  [[nodiscard]] ValueId square_root_of(ValueId value) const {
    const OnnxNode* node = maker(value);
    if (node == nullptr) return no_value;
    const ValueId base = plain(node->input(0));
    const bool is_square = (is_plain(*node, "Mul") && plain(node->input(1)) == base) ||
                           (is_plain(*node, "Pow") && scalar(node->input(1)) == 2.0);
    return is_square ? base : no_value;
  }

  /// The mean that was subtracted to give `value`.
  [[nodiscard]] std::optional<Moment> taken_out(ValueId value) const {
    const OnnxNode* node = maker(value);
    if (node == nullptr || !is_plain(*node, "Sub")) return {};
    const std::optional<Moment> m = moment(node->input(1));
    const bool is_of_rows = m && m->is_mean && lies_beside_rows(m->form) && m->of == plain(node->input(0));
    return is_of_rows ? m : std::nullopt;
  }

  /// The mean or sum of squares that `value` is.
  [[nodiscard]] std::optional<Variance> of_squares(const Moment& m) const {
    const ValueId base = square_root_of(m.of);
    if (base == no_value) return {};
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
    return result;
  }

  [[nodiscard]] std::optional<Variance> variance(ValueId value, int depth = 0) const {
    if (const std::optional<Moment> m = moment(value)) return of_squares(*m);
    const OnnxNode* const node = maker(value);
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
    if (is_plain(*node, "Clip") && node->input(2) == no_value && scalar(node->input(1)) == 0.0)
      return variance(node->input(0), depth + 1);
    if (!is_plain(*node, "Sub")) return {};
    const std::optional<Moment> squares = moment(node->input(0));
    const ValueId root = square_root_of(node->input(1));
    std::optional<Moment> x = root == no_value ? std::nullopt : moment(root);
    if (!squares || !x || square_root_of(squares->of) != x->of) return {};
    const std::optional<std::uint64_t> count = common_count(*squares, *x);
    if (!squares->is_mean || !x->is_mean || squares->axis != x->axis || squares->form != x->form || !count)
      return {};
    x->count = *count;
    return Variance{*x, true};
  }

  /// A variance and eps, in either order, or a variance alone.
  [[nodiscard]] std::optional<Variance> padded(ValueId value, int depth = 0) const {
    const OnnxNode* const node = maker(value);
    if (node == nullptr || depth == longest_chain) return {};
    if (is_plain(*node, "Add")) {
      for (const auto [statistic, eps] : either_way(*node)) {
        const double number = scalar(eps);
        if (!(number >= 0.0) || std::isinf(number)) continue;
        std::optional<Variance> found = variance(statistic);
        if (!found) continue;
        found->eps = number;
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
    if (is_numerator(factor)) return !inverted && ++numerators_ == 1;
    if (scalar(factor) == 1.0) return true;
    if (std::optional<GraphParameter> gain = parameter(factor)) {
      if (inverted || norm_.gain || gain->tensor->elements() <= 1) return false;
      norm_.gain = std::move(gain);
      return true;
    }
    if (const std::optional<Form> form = form_of_root(factor, inverted, 0))
      return lies_beside_rows(*form) && ++roots_ == 1;
    const OnnxNode* const node = maker(factor);
    return node != nullptr && collect(*node, inverted, depth + 1);
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

  const OnnxGraph& graph_;
  const OnnxShapes& shapes_;
  Root root_;
  Variance variance_;
  WrittenNorm norm_;
  int roots_ = 0;
  int numerators_ = 0;
};

}  // namespace

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
