#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/text.hpp>
#include <normscope/verify/verify.hpp>

#include "document.hpp"
#include "heads.hpp"
#include "share_ranges.hpp"

/// Results of `attribute`: what changes d_k of a row u do to v·u/s, s² = |u|²/R² + eps, and all sets of them.
namespace normscope::verify {
namespace {

/// Deviations of this part of the sizes of terms are accepted.
constexpr double accepted = 1e-9;
/// The same of attained numbers, where quotients of small rows enlarge it.
constexpr double accepted_of_attained = 1e-6;

/// The rows of a proof and their inner products.
struct Rows {
  std::size_t width = 0, count = 0;
  double squared_radius = 1.0, eps = 0.0;
  std::vector<double> u{}, v{};
  std::vector<std::vector<double>> d{};
  std::vector<double> gram{}, along{}, reads{}, lengths{};  ///< d_j·d_k, u·d_k, v·d_k, |d_k|
  double square = 0.0, length = 0.0, read = 0.0, direction_length = 0.0;
  double s = 0.0;

  void multiply() {
    gram.resize(count * count);
    for (std::size_t j = 0; j < count; ++j) {
      along.push_back(plain_dot(u, d[j]));
      reads.push_back(plain_dot(v, d[j]));
      for (std::size_t k = 0; k <= j; ++k) {
        gram[j * count + k] = gram[k * count + j] = plain_dot(d[j], d[k]);
      }
      lengths.push_back(std::sqrt(gram[j * count + j]));
    }
    square = plain_dot(u, u);
    length = std::sqrt(square);
    read = plain_dot(v, u);
    direction_length = std::sqrt(plain_dot(v, v));
    s = divisor(square);
  }
  [[nodiscard]] const double* row(std::size_t k) const { return gram.data() + k * count; }
  [[nodiscard]] double divisor(double of) const {
    return std::sqrt(std::max(0.0, of) / squared_radius + eps);
  }
  /// The price of freezing of a row of that square, which may be infinite.
  [[nodiscard]] double price(double of, double its_read) const {
    if (its_read == 0.0) return 0.0;
    return of == infinity ? -its_read / s : its_read * (1.0 / divisor(of) - 1.0 / s);
  }
  /// |u| and the `removed` largest |d_k|.
  [[nodiscard]] double longest(std::size_t removed) const {
    std::vector<double> sorted = lengths;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    return std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(removed), length);
  }
};

struct Range {
  double least = -infinity, most = infinity;

  [[nodiscard]] bool contains(const Range& other) const { return other.least >= least && other.most <= most; }
};

/// What no set may leave, of |u + Σ d_k|² and of the price.
struct SetLimits {
  Range square{}, price{};
  Range known{};  ///< limits of |u + Σ d_k|² that hold
};

/// Looks for a set of at most so many components that leaves the limits: by the components in it, the longest
/// first, without those whose own bounds stay within the limits.
class SetSearch {
 public:
  SetSearch(const Rows& rows, std::size_t removed)
      : rows_(rows), removed_(removed), lowest_(removed), highest_(removed) {
    std::vector<std::size_t> order(rows.count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rows.lengths[a] > rows.lengths[b]; });
    std::vector<double> others;
    for (const std::size_t k : order) {
      along_.push_back(rows.along[k]);
      reads_.push_back(rows.reads[k]);
      own_.push_back(rows.row(k)[k]);
      for (const std::size_t j : order) gram_.push_back(rows.row(k)[j]);
      // The least and the most that `size` other components can add to its products.
      others.assign(rows.row(k), rows.row(k) + rows.count);
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
      double low = 0.0, high = 0.0;
      for (std::size_t size = 0; size < removed; ++size) {
        lowest_[size].push_back(low);
        highest_[size].push_back(high);
        if (others.empty()) continue;
        const auto [least, most] = std::minmax_element(others.begin(), others.end());
        low += std::min(0.0, *least);
        high += std::max(0.0, *most);
        *least = *most = 0.0;
      }
    }
  }

  /// Whether no set does; none if that takes too long.
  std::optional<bool> none_leaves(const SetLimits& limits) {
    limits_ = limits;
    work_ = 0.0;
    const bool none = holds(0, rows_.square, rows_.read, along_, removed_);
    if (none && work_ > most_work) return std::nullopt;
    return none;
  }

 private:
  static constexpr double most_work = 2e9;

  /// The sum of the `most` largest positive numbers that are added.
  class Largest {
   public:
    explicit Largest(std::size_t most) : values_(most) {}
    void add(double value) {
      if (values_.empty() || value <= values_.back()) return;
      auto at = values_.end() - 1;
      for (; at != values_.begin() && *(at - 1) < value; --at) *at = *(at - 1);
      *at = value;
    }
    [[nodiscard]] double total() const { return std::accumulate(values_.begin(), values_.end(), 0.0); }

   private:
    std::vector<double> values_;
  };

  /// Of squares that are within those that hold for all sets.
  [[nodiscard]] Range price_range(const Range& square, const Range& read) const {
    Range range{infinity, -infinity};
    for (const double of :
         {std::max(square.least, limits_.known.least), std::min(square.most, limits_.known.most)}) {
      for (const double its_read : {read.least, read.most}) {
        const double price = rows_.price(of, its_read);
        range = {std::min(range.least, price), std::max(range.most, price)};
      }
    }
    return range;
  }

  /// Of a set S and all that have `left` more components from `first` on; `products` are d_k·(u + Σ_S d_j).
  bool holds(std::size_t first, double square, double read, const std::vector<double>& products,
             std::size_t left) {
    if (!limits_.square.contains({square, square})) return false;
    const double price = rows_.price(square, read);
    if (!limits_.price.contains({price, price})) return false;
    if (left == 0 || work_ > most_work) return true;
    work_ += static_cast<double>(rows_.count - first);
    Largest less(left), more(left), down(left), up(left);
    for (std::size_t k = first; k < rows_.count; ++k) {
      const double own = 2.0 * products[k] + own_[k];
      less.add(-own - lowest_[left - 1][k]);
      more.add(own + highest_[left - 1][k]);
      down.add(-reads_[k]);
      up.add(reads_[k]);
    }
    const Range squares{square - less.total(), square + more.total()};
    const Range reads{read - down.total(), read + up.total()};
    if (limits_.square.contains(squares) && limits_.price.contains(price_range(squares, reads))) return true;
    std::vector<double> next(left > 1 ? rows_.count : 0);
    for (std::size_t k = first; k < rows_.count; ++k) {
      const double* const row = gram_.data() + k * rows_.count;
      for (std::size_t j = k + 1; j < rows_.count && left > 1; ++j) next[j] = products[j] + row[j];
      if (!holds(k + 1, square + 2.0 * products[k] + own_[k], read + reads_[k], next, left - 1)) return false;
    }
    return true;
  }

  const Rows& rows_;
  SetLimits limits_{};
  std::size_t removed_;
  std::vector<double> gram_{}, along_{}, reads_{}, own_{};  ///< of the rows, in that order
  std::vector<std::vector<double>> lowest_, highest_;       ///< by the number of components that are left
  double work_ = 0.0;
};

class AttributionCheck {
 public:
  AttributionCheck(const Result& result, const files::Checkpoint& checkpoint, const models::Model& model)
      : result_(result), root_(result.fields().root()), checkpoint_(checkpoint), model_(model) {
    if (!root_.has("proof")) {
      throw Error(
          ErrorCode::Format,
          fmt::format("{}: has no proof, expected a result of attribute with its proofs", result.source()));
    }
    if (const std::string why = models::why_no_logits(model); !why.empty()) {
      throw Error(ErrorCode::Unsupported, fmt::format("{}: {}", checkpoint.path().string(), why));
    }
    norm_ = models::find_norm(model, model.vocabulary->final_norm);
    spec_ = models::read_norm(checkpoint, *norm_);
    if (spec_.elementwise() || spec_.groups != 1) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("{}: {} has no one divisor", checkpoint.path().string(), norm_->name));
    }
    read_rows();
  }

  Verification run() {
    check_facts();
    check_reading();
    const Field components = root_["components"];
    for (std::size_t k = 0; k < rows_.count; ++k) check_component(components[k], rows_.d[k]);
    check_anywhere(components, root_["proof"]["shares"]);
    const Field bounds = root_["bounds"];
    for (std::size_t i = 0; i < bounds.size(); ++i) check_bound(bounds[i], i + 1);
    if (!root_["circuit"].is_null()) check_circuit(root_["circuit"]);
    list_unproved(found_, result_.fields());
    return std::move(found_);
  }

 private:
  void read_rows() {
    const Field proof = root_["proof"];
    const Field components = root_["components"];
    rows_.width = spec_.width;
    rows_.count = components.size();
    rows_.squared_radius = spec_.squared_radius();
    rows_.eps = spec_.eps;
    rows_.u = proof["row"].numbers(spec_.width);
    rows_.v = proof["direction"].numbers(spec_.width);
    if (proof["changes"].size() != rows_.count) proof["changes"].refuse("a row for each component");
    for (std::size_t k = 0; k < rows_.count; ++k) {
      rows_.d.push_back(proof["changes"][k].numbers(spec_.width));
      names_.emplace(components[k]["name"].text(), k);
    }
    if (names_.size() != rows_.count) components.refuse("each name once");
    rows_.multiply();
    if (!(rows_.s > 0.0) || !std::isfinite(rows_.s)) proof["row"].refuse("a row with a divisor above zero");
    double largest = rows_.length;
    for (const double length : rows_.lengths) largest = std::max(largest, length);
    const auto is_centered = [&](const std::vector<double>& row) {
      return !spec_.centers() || std::abs(mean(row)) <= accepted * largest;
    };
    if (!is_centered(rows_.u) || !std::all_of(rows_.d.begin(), rows_.d.end(), is_centered)) {
      proof.refuse("rows without a mean, as the norm centres");
    }
  }

  void check(bool holds, const Field& field) {
    found_.check(holds, field.place(), "does not hold to 1e-9 of the sizes of its terms");
  }
  void check_equal(const Field& field, double expected, double size) {
    check(std::abs(field.number() - expected) <= accepted * size, field);
  }
  void check_fact(bool holds, const Field& field) {
    found_.check(holds, field.place(), "is not that of the model");
  }

  /// What the description of the model says.
  void check_facts() {
    const models::Vocabulary& vocabulary = *model_.vocabulary;
    const models::Linear& map = *vocabulary.unembedding;
    std::vector<std::string> notes;
    for (std::size_t i = 0; i < root_["notes"].size(); ++i) notes.push_back(root_["notes"][i].text());
    check_fact(root_["path"].text() == result_.argument("model"), root_["path"]);
    check_fact(root_["architecture"].text() == model_.title, root_["architecture"]);
    check_fact(notes == model_.notes, root_["notes"]);
    check_fact(root_["norm"].text() == norm_->name, root_["norm"]);
    check_fact(root_["soft_cap"].number_or(0.0) == vocabulary.soft_cap, root_["soft_cap"]);
    const Field proof = root_["proof"];
    check_fact(proof["squared_radius"].number() == rows_.squared_radius, proof["squared_radius"]);
    check_fact(proof["eps"].number() == rows_.eps, proof["eps"]);
    const auto selector = [](const std::optional<models::Slice>& slice) {
      return slice ? slice->selector() : std::string();
    };
    const Field source = proof["source"];
    check_fact(source["kind"].text() == to_string(norm_->kind) &&
                   is_null_or(source["gain"], selector(norm_->gain)) &&
                   source["gain_offset"].number() == norm_->gain_offset &&
                   is_null_or(source["bias"], selector(norm_->bias)) &&
                   source["unembedding"].text() == map.weight.selector() &&
                   source["layout"].text() == (map.layout == models::Layout::out_in ? "out_in" : "in_out") &&
                   is_null_or(source["unembedding_bias"], selector(map.bias)) &&
                   source["logit_scale"].number() == vocabulary.logit_scale,
               source);
  }

  /// The direction, the constant, the divisor and the value.
  void check_reading() {
    const models::Vocabulary& vocabulary = *model_.vocabulary;
    const models::Linear& map = *vocabulary.unembedding;
    const std::vector<double> bias = models::read_bias(checkpoint_, map);
    std::vector<double> reader(spec_.width);
    double constant = 0.0, size = 0.0;
    const auto add = [&](const Field& token, double sign) {
      const std::size_t index = token["token"].index(static_cast<std::size_t>(map.out));
      const std::vector<double> row = models::read_weight(checkpoint_, map, index, 1);
      for (std::size_t i = 0; i < row.size(); ++i) reader[i] += sign * vocabulary.logit_scale * row[i];
      if (bias.empty()) return;
      constant += sign * vocabulary.logit_scale * bias[index];
      size += std::abs(vocabulary.logit_scale * bias[index]);
    };
    add(root_["target"], 1.0);
    if (!root_["against"].is_null()) add(root_["against"], -1.0);
    std::vector<double> direction(spec_.width), miss(spec_.width);
    for (std::size_t i = 0; i < spec_.width; ++i) {
      constant += spec_.bias_at(i) * reader[i];
      size += std::abs(spec_.bias_at(i) * reader[i]);
      direction[i] = spec_.gain_at(i) * reader[i];
    }
    const double length = euclidean_norm(direction);
    if (spec_.centers()) center(direction);
    for (std::size_t i = 0; i < spec_.width; ++i) miss[i] = direction[i] - rows_.v[i];
    check(euclidean_norm(miss) <= accepted * length, root_["proof"]["direction"]);
    check_equal(root_["constant"], constant, size);
    check_equal(root_["divisor"], rows_.s, rows_.s);
    check_equal(root_["value"], root_["constant"].number() + rows_.read / rows_.s,
                rows_.direction_length * rows_.length / rows_.s + std::abs(root_["constant"].number()));
  }

  struct Change {
    double frozen = 0.0, price = 0.0, exact = 0.0, gradient = 0.0, size = 0.0;
    double along = 0.0, square = 0.0, length_after = 0.0, with_after = 0.0;
  };

  /// What adding d does.
  [[nodiscard]] Change change_of(const std::vector<double>& d) const {
    std::vector<double> after(rows_.width);
    for (std::size_t i = 0; i < rows_.width; ++i) after[i] = rows_.u[i] + d[i];
    Change change{.along = plain_dot(rows_.u, d), .square = plain_dot(d, d)};
    const double t = rows_.divisor(plain_dot(after, after));
    const double read = plain_dot(rows_.v, d);
    change.frozen = read / rows_.s;
    change.exact = plain_dot(rows_.v, after) / t - rows_.read / rows_.s;
    change.price = change.exact - change.frozen;
    change.gradient =
        (read - rows_.read * change.along / (rows_.squared_radius * rows_.s * rows_.s)) / rows_.s;
    change.size =
        rows_.direction_length * (rows_.length + std::sqrt(change.square)) * (1.0 / rows_.s + 1.0 / t);
    change.length_after = std::sqrt(plain_dot(after, after));
    change.with_after = plain_dot(rows_.u, after);
    return change;
  }

  void check_component(const Field& of, const std::vector<double>& d) {
    const Change change = change_of(d);
    check_equal(of["frozen"], change.frozen, change.size);
    check_equal(of["price"], change.price, change.size);
    check_equal(of["exact"], change.exact, change.size);
    check_equal(of["gradient"], change.gradient, change.size);
    // The least |u + t d|² of t in [0, 1].
    const double step = change.square > 0.0 ? std::clamp(-change.along / change.square, 0.0, 1.0) : 0.0;
    double nearest = 0.0;
    for (std::size_t i = 0; i < rows_.width; ++i) {
      const double value = rows_.u[i] + step * d[i];
      nearest += value * value;
    }
    const double least = rows_.divisor(nearest);
    const double remainder =
        rows_.direction_length * change.square / (std::sqrt(3.0 * rows_.squared_radius) * least * least);
    check(change.square == 0.0 || of["remainder"].number_or(infinity) >= remainder * (1.0 - accepted),
          of["remainder"]);
    const double lengths = rows_.length * change.length_after;
    check_equal(of["cosine"], lengths > 0.0 ? change.with_after / lengths : 0.0, 1.0);
    if (root_["removal"].text() == "zero") {
      check_equal(of["share"], -change.frozen, change.size);
      check_equal(of["rules"]["gradient_input"], -change.gradient, change.size);
      check_equal(of["rules"]["half_rule"], 0.5 * (change.gradient - 2.0 * change.frozen), change.size);
    } else {
      for (const char* name : {"share", "rules"}) {
        leave(of[name], "of replaced components only a forward pass tells");
      }
    }
  }

  /// The bounds of shares in all contexts, a/s for each s of at least the divisor.
  void check_anywhere(const Field& components, const Field& sources) {
    if (sources.size() != rows_.count) sources.refuse("one for each component");
    std::optional<ShareRanges> ranges;
    for (std::size_t k = 0; k < rows_.count; ++k) {
      const Field anywhere = components[k]["anywhere"];
      if (anywhere.is_null()) {
        check_fact(sources[k].is_null(), sources[k]);
        continue;
      }
      if (!model_.decoder || !model_.decoder->activation) anywhere.refuse("null for such a model");
      if (!ranges) ranges.emplace(checkpoint_, model_, rows_.v);
      bool is_source = false;
      const auto limits = ranges->limits(components[k]["name"].text(), sources[k], is_source);
      check_fact(is_source, sources[k]);
      const double allowed = limits ? accepted * limits->size / rows_.s : 0.0;
      const char* const reason = "does not follow from what the component can add";
      found_.check(limits && anywhere["least"].number() <= std::min(0.0, limits->lower) / rows_.s + allowed,
                   anywhere["least"].place(), reason);
      found_.check(limits && anywhere["most"].number() >= std::max(0.0, limits->upper) / rows_.s - allowed,
                   anywhere["most"].place(), reason);
    }
  }

  void leave(const Field& field, const char* why) { found_.not_checkable.push_back({field.place(), why}); }

  /// The squares that bounds of s/s_S leave.
  [[nodiscard]] Range squares_of(const Field& bound, double longest) const {
    const auto square = [&](double factor) {
      const double divisor = rows_.s / factor;
      return rows_.squared_radius * (divisor * divisor - rows_.eps);
    };
    Range range;
    const double least = bound["least"].number();
    const double most = bound["most"].number_or(infinity);
    if (least > 0.0) range.most = square(least / (1.0 + accepted));
    if (most < infinity) range.least = square(most * (1.0 + accepted));
    // Nothing but rounding may be left of a row that a number of finite size divides.
    if (most < infinity && rows_.eps == 0.0) range.least = std::max(range.least, 1e-12 * longest * longest);
    const double slack = 1e-13 * longest * longest;  // of rows that cancel
    return {range.least - slack, range.most + slack};
  }

  void check_bound(const Field& bound, std::size_t expected) {
    const std::size_t removed = bound["removed"].count();
    if (removed != expected || removed > rows_.count)
      bound["removed"].refuse("1, 2, ... up to all components");
    const double longest = rows_.longest(removed);
    const SetLimits stated{
        squares_of(bound, longest),
        {bound["least_price"].number_or(-infinity), bound["most_price"].number_or(infinity)}};
    const auto prove = [&](std::optional<bool> holds, std::initializer_list<const char*> names) {
      for (const char* name : names) {
        if (holds) {
          found_.check(*holds, bound[name].place(), "a set leaves it, or its proof does not hold");
        } else {
          leave(bound[name], "takes too long to prove");
        }
      }
    };
    if (bound["proof"].text() == "every_set") {
      // Each limit alone, so that a false one is named.
      SetSearch sets(rows_, removed);
      const auto search = [&](const SetLimits& limits) { return sets.none_leaves(limits); };
      const std::optional<bool> no_longer = search({.square = {-infinity, stated.square.most}});
      const std::optional<bool> no_shorter = search({.square = {stated.square.least, infinity}});
      prove(no_longer, {"least"});
      prove(no_shorter, {"most"});
      const Range known{no_shorter.value_or(false) ? stated.square.least : -infinity,
                        no_longer.value_or(false) ? stated.square.most : infinity};
      const double small = rows_.divisor(std::max(stated.square.least, 0.0) - 1e-12 * longest * longest);
      const double allowed = accepted * rows_.direction_length * longest * (1.0 / rows_.s + 1.0 / small);
      prove(search({.price = {stated.price.least - allowed, infinity}, .known = known}), {"least_price"});
      prove(search({.price = {-infinity, stated.price.most + allowed}, .known = known}), {"most_price"});
    } else {
      const Range square{relaxed(bound, "below", removed, 1.0), relaxed(bound, "above", removed, -1.0)};
      prove(square.most <= stated.square.most, {"least"});
      prove(square.least >= stated.square.least, {"most"});
      check_relaxed_prices(bound, removed, square, longest);
    }
    for (const char* name : {"least", "most", "least_price", "most_price"})
      check_attained(bound, name, removed);
  }

  /// The price is a product of two factors, of which each has bounds.
  void check_relaxed_prices(const Field& bound, std::size_t removed, const Range& square, double longest) {
    std::vector<double> reads = rows_.reads;
    std::sort(reads.begin(), reads.end());
    Range read{rows_.read, rows_.read};
    for (std::size_t k = 0; k < removed; ++k) {
      read.least += std::min(0.0, reads[k]);
      read.most += std::max(0.0, reads[reads.size() - 1 - k]);
    }
    Range price{infinity, -infinity};
    for (const double of : {square.least, square.most}) {
      for (const double its_read : {read.least, read.most}) {
        const double one = rows_.price(of, its_read);
        price = {std::min(price.least, one), std::max(price.most, one)};
      }
    }
    const double small = rows_.divisor(square.least - 1e-12 * longest * longest);
    const double allowed = accepted * rows_.direction_length * longest * (1.0 / rows_.s + 1.0 / small);
    const char* const reason = "does not follow from the bounds of its factors";
    found_.check(bound["least_price"].number_or(-infinity) <= price.least + allowed,
                 bound["least_price"].place(), reason);
    found_.check(bound["most_price"].number_or(infinity) >= price.most - allowed, bound["most_price"].place(),
                 reason);
  }

  /// The bound of |u + Σ d_k|² that a tangent proves; infinite if its diagonal does not make it one.
  [[nodiscard]] double relaxed(const Field& bound, const char* name, std::size_t removed, double sign) {
    if (!bound.has(name)) return -sign * infinity;
    const std::vector<double> diagonal = bound[name]["diagonal"].numbers(rows_.count);
    const std::vector<double> point = bound[name]["point"].numbers(rows_.count);
    if (std::accumulate(point.begin(), point.end(), 0.0) > static_cast<double>(removed) ||
        !is_semidefinite(diagonal, sign)) {
      return -sign * infinity;
    }
    double value = sign * rows_.square;
    std::vector<double> slope(rows_.count);
    for (std::size_t j = 0; j < rows_.count; ++j) {
      double image = -diagonal[j] * point[j];
      for (std::size_t k = 0; k < rows_.count; ++k) image += rows_.row(j)[k] * point[k];
      value -= sign * point[j] * image;
      slope[j] = sign * (2.0 * rows_.along[j] + diagonal[j] + 2.0 * image);
    }
    std::sort(slope.begin(), slope.end());
    for (std::size_t k = 0; k < removed; ++k) value += std::min(0.0, slope[k]);
    return sign * value;
  }

  /// Whether sign (G − D) is positive semidefinite, up to 1e-10 of the lengths.
  [[nodiscard]] bool is_semidefinite(const std::vector<double>& diagonal, double sign) {
    const auto key = std::make_pair(sign, diagonal);
    if (const auto known = semidefinite_.find(key); known != semidefinite_.end()) return known->second;
    bool& is = semidefinite_[key];
    const std::size_t n = rows_.count;
    // A Gram matrix is, and so is one whose diagonal is at least the sum of the sizes in its row.
    is = sign > 0.0 && std::all_of(diagonal.begin(), diagonal.end(), [](double x) { return x == 0.0; });
    bool dominates = sign < 0.0;
    for (std::size_t j = 0; j < n && dominates; ++j) {
      double sizes = 0.0;
      for (std::size_t k = 0; k < n; ++k) sizes += std::abs(rows_.row(j)[k]);
      dominates = sizes <= diagonal[j] * (1.0 + 1e-12);
    }
    is = is || dominates;
    if (is || n > most_factored) return is;
    Matrix scaled(n, n);
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) {
        const double lengths = (rows_.lengths[j] > 0.0 ? rows_.lengths[j] : 1.0) *
                               (rows_.lengths[k] > 0.0 ? rows_.lengths[k] : 1.0);
        const double entry = sign * (rows_.row(j)[k] - (j == k ? diagonal[j] : 0.0)) / lengths;
        scaled.at(j, k) = DoubleDouble(entry + (j == k ? 1e-10 : 0.0));
      }
    }
    return is = cholesky(scaled).has_value();
  }

  void check_attained(const Field& bound, const std::string& name, std::size_t removed) {
    const Field attained = bound[("attained_" + name).c_str()];
    std::vector<double> left = rows_.u;
    const Field components = attained["components"];
    std::map<std::string, bool> taken;
    for (std::size_t i = 0; i < components.size(); ++i) {
      const auto known = names_.find(components[i].text());
      if (known == names_.end() || !taken.emplace(known->first, true).second) {
        components.refuse("names of components, each once");
      }
      for (std::size_t j = 0; j < left.size(); ++j) left[j] += rows_.d[known->second][j];
    }
    const bool is_price = name.size() > 6 && name.substr(name.size() - 6) == "_price";
    const double square = plain_dot(left, left);
    const double value =
        is_price ? rows_.price(square, plain_dot(rows_.v, left)) : rows_.s / rows_.divisor(square);
    const double size =
        std::abs(value) + (is_price ? rows_.longest(removed) * rows_.direction_length / rows_.s : 0.0);
    const bool holds = attained["value"].is_null() ||
                       std::abs(attained["value"].number() - value) <= accepted_of_attained * size;
    found_.check(components.size() <= removed && holds, attained.place(), "the set has another value");
  }

  /// The reading with all but the kept ones at their means.
  void check_circuit(const Field& circuit) {
    if (root_["removal"].text() != "mean") {
      for (const char* name : {"frozen", "gradient", "exact"}) {
        leave(circuit[name], "the means are in results whose removal is mean only");
      }
      return;
    }
    std::vector<bool> kept(rows_.count);
    for (std::size_t i = 0; i < circuit["kept"].size(); ++i) {
      const auto known = names_.find(circuit["kept"][i].text());
      if (known == names_.end()) circuit["kept"][i].refuse("a component");
      kept[known->second] = true;
    }
    std::vector<double> total(rows_.width);
    for (std::size_t k = 0; k < rows_.count; ++k) {
      for (std::size_t i = 0; i < rows_.width && !kept[k]; ++i) total[i] += rows_.d[k][i];
    }
    const Change change = change_of(total);
    const double value = root_["value"].number();
    const double size = change.size + std::abs(value);
    check_equal(circuit["frozen"], value + change.frozen, size);
    check_equal(circuit["gradient"], value + change.gradient, size);
    check_equal(circuit["exact"], value + change.exact, size);
  }

  /// Components of whose matrices factors are computed.
  static constexpr std::size_t most_factored = 1024;

  const Result& result_;
  Field root_;
  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  const models::Norm* norm_ = nullptr;
  NormSpec spec_{};
  Rows rows_{};
  std::map<std::string, std::size_t> names_{};
  std::map<std::pair<double, std::vector<double>>, bool> semidefinite_{};
  Verification found_{};
};

}  // namespace

Verification verify_attribute(const Result& result, const files::Checkpoint& checkpoint,
                              const models::Model& model) {
  return AttributionCheck(result, checkpoint, model).run();
}

}  // namespace normscope::verify
