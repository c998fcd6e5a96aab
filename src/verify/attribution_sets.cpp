#include "attribution_sets.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <utility>

#include <normscope/core/error.hpp>

#include "heads.hpp"

namespace normscope::verify {
namespace {

/// Deviations of attained numbers that are accepted, as quotients of small rows enlarge rounding.
constexpr double accepted_of_attained = 1e-6;
/// Components of whose matrices factors are computed.
constexpr std::size_t most_factored = 1024;

/// What no set may leave, of |u + Σ d_k|² and of the price.
struct SetLimits {
  SetRange square{}, price{};
  SetRange known{};  ///< limits of |u + Σ d_k|² that hold
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

  /// The range of prices, for squares that are within those that hold for all sets.
  [[nodiscard]] SetRange price_range(const SetRange& square, const SetRange& read) const {
    SetRange range{infinity, -infinity};
    for (const double of :
         {std::max(square.least, limits_.known.least), std::min(square.most, limits_.known.most)}) {
      for (const double its_read : {read.least, read.most}) {
        const double price = rows_.price(of, its_read);
        range = {std::min(range.least, price), std::max(range.most, price)};
      }
    }
    return range;
  }

  /// Whether it holds for a set S and all that have `left` more components from `first` on; `products` are
  /// d_k·(u + Σ_S d_j).
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
    const SetRange squares{square - less.total(), square + more.total()};
    const SetRange reads{read - down.total(), read + up.total()};
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

}  // namespace

/// The squares that bounds of s/s_S leave.
SetRange SetCheck::squares_of(const Field& bound, double longest) const {
  const auto square = [&](double factor) {
    const double divisor = rows_.s / factor;
    return rows_.squared_radius * (divisor * divisor - rows_.eps);
  };
  SetRange range;
  const double least = bound["least"].number();
  const double most = bound["most"].number_or(infinity);
  if (least > 0.0) range.most = square(least / (1.0 + accepted));
  // The ratio of two divisors is positive: no row allows less.
  if (most < infinity) range.least = most > 0.0 ? square(most * (1.0 + accepted)) : infinity;
  // Nothing but rounding may be left of a row that a number of finite size divides.
  if (most < infinity && rows_.eps == 0.0) range.least = std::max(range.least, 1e-12 * longest * longest);
  const double slack = 1e-13 * longest * longest;  // of rows that cancel
  return {range.least - slack, range.most + slack};
}

void SetCheck::check(const Field& bound, std::size_t expected) {
  const std::size_t removed = bound["removed"].count();
  if (removed != expected || removed > rows_.count) bound["removed"].refuse("1, 2, ... up to all components");
  const double longest = rows_.longest(removed);
  const SetLimits stated{
      squares_of(bound, longest),
      {bound["least_price"].number_or(-infinity), bound["most_price"].number_or(infinity)}};
  const auto prove = [&](std::optional<bool> holds, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (holds) {
        found_.check(*holds, bound[name].place(), "a set leaves it, or its proof does not hold");
      } else {
        found_.not_checkable.push_back({bound[name].place(), "takes too long to prove"});
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
    const SetRange known{no_shorter.value_or(false) ? stated.square.least : -infinity,
                         no_longer.value_or(false) ? stated.square.most : infinity};
    const double small = rows_.divisor(std::max(stated.square.least, 0.0) - 1e-12 * longest * longest);
    const double allowed = accepted * rows_.direction_length * longest * (1.0 / rows_.s + 1.0 / small);
    prove(search({.price = {stated.price.least - allowed, infinity}, .known = known}), {"least_price"});
    prove(search({.price = {-infinity, stated.price.most + allowed}, .known = known}), {"most_price"});
  } else {
    const SetRange square{relaxed(bound, "below", removed, 1.0), relaxed(bound, "above", removed, -1.0)};
    prove(square.most <= stated.square.most, {"least"});
    prove(square.least >= stated.square.least, {"most"});
    check_relaxed_prices(bound, removed, square, longest);
  }
  for (const char* name : {"least", "most", "least_price", "most_price"})
    check_attained(bound, name, removed);
}

/// The price is a product of two factors, of which each has bounds.
void SetCheck::check_relaxed_prices(const Field& bound, std::size_t removed, const SetRange& square,
                                    double longest) {
  std::vector<double> reads = rows_.reads;
  std::sort(reads.begin(), reads.end());
  SetRange read{rows_.read, rows_.read};
  for (std::size_t k = 0; k < removed; ++k) {
    read.least += std::min(0.0, reads[k]);
    read.most += std::max(0.0, reads[reads.size() - 1 - k]);
  }
  SetRange price{infinity, -infinity};
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
double SetCheck::relaxed(const Field& bound, const char* name, std::size_t removed, double sign) {
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
bool SetCheck::is_semidefinite(const std::vector<double>& diagonal, double sign) {
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

void SetCheck::check_attained(const Field& bound, const std::string& name, std::size_t removed) {
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

}  // namespace normscope::verify
