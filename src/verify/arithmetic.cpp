#include "arithmetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::verify {

std::optional<Enclosure> total_of(const std::vector<Weight>& weights, std::size_t excluded) {
  CompensatedSum sum;
  for (const Weight& weight : weights) {
    if (!(weight.weight >= 0.0) || weight.index == excluded) return std::nullopt;
    sum.add(weight.weight);
  }
  const double total = sum.value();
  if (!(total > 0.0) || !std::isfinite(total)) return std::nullopt;
  return Enclosure{total, 16.0 * unit * total};
}

Enclosure operator-(const Enclosure& a, const Enclosure& b) {
  return {a.value - b.value, 2.0 * (a.error + b.error) + 2.0 * fine * (a.size() + b.size())};
}

Enclosure operator*(const Enclosure& a, const Enclosure& b) {
  if (a.is_zero() || b.is_zero()) return {};
  const DoubleDouble value = a.value * b.value;
  return {value,
          2.0 * (a.error * b.size() + b.error * a.size()) + 2.0 * fine * std::abs(value.high) + underflow};
}

Enclosure operator/(const Enclosure& a, const Enclosure& b) {
  const DoubleDouble value = a.value / b.value;
  const double size = std::abs(b.value.high) - 2.0 * b.error;
  if (!(size > 0.0)) return {value, std::numeric_limits<double>::infinity()};
  const double ratio = std::abs(value.high);
  return {value, 2.0 * (a.error + b.error * ratio) / size + 2.0 * fine * ratio};
}

Enclosure mean_of(std::span<const Enclosure> values) {
  EnclosureSum total;
  for (const Enclosure& value : values) total.add(value);
  return total.result() / Enclosure{DoubleDouble(static_cast<double>(values.size()))};
}

double length_at_most(std::span<const Enclosure> vector) {
  double largest = 0.0;
  std::vector<double> errors;
  for (const Enclosure& entry : vector) {
    if (!std::isfinite(entry.size())) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, entry.size());
    errors.push_back(entry.error);
  }
  const BinaryScale scale = BinaryScale::of(largest);
  DoubleDouble square;
  for (const Enclosure& entry : vector) {
    const DoubleDouble scaled(scale.divide(entry.value.high), scale.divide(entry.value.low));
    square += scaled * scaled;
  }
  return (scale.multiply(sqrt(square).high) + up(euclidean_norm(errors))) * (1.0 + 4.0 * unit);
}

std::vector<Enclosure> weighted_difference(std::span<const double> x, MatrixView<const double> rows,
                                           const std::vector<Weight>& weights) {
  std::vector<Enclosure> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EnclosureSum sum;
    for (const Weight& weight : weights) {
      sum.add(DoubleDouble::sum(x[i], -rows.row(weight.index)[i]), weight.weight);
    }
    result[i] = sum.result();
  }
  return result;
}

DoubleDouble dot(std::span<const DoubleDouble> a, std::span<const DoubleDouble> b) {
  // Four sums at a time: each addition waits for the one before.
  std::array<DoubleDouble, 4> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

Matrix product(const Matrix& a, const Matrix& b) { return product_transposed(a, transposed(b)); }

namespace {

/// Rows of B whose products with a row of A are summed together, entry by entry: sums that do not wait for
/// each other, in registers of several doubles.
constexpr std::size_t lanes = 4;
/// Terms whose low parts are summed in float64: (n² + 7 n + 6) u² of the sizes of n <= 8 terms, no more than
/// 16 (n + 1) u²; sums of such sums add 16 u² each.
constexpr std::size_t terms_together = 8;

using Lanes = double __attribute__((vector_size(lanes * sizeof(double))));

struct RowBlock {
  /// Rows first to first + lanes of a matrix; those beyond it are 0.
  RowBlock(const Matrix& b, std::size_t first) : high(b.columns * lanes), low(b.columns * lanes) {
    for (std::size_t lane = 0; lane < lanes && first + lane < b.rows; ++lane) {
      for (std::size_t k = 0; k < b.columns; ++k) {
        high[k * lanes + lane] = b.at(first + lane, k).high;
        low[k * lanes + lane] = b.at(first + lane, k).low;
      }
    }
  }
  /// The products with x.
  [[nodiscard]] std::array<DoubleDouble, lanes> times(const DoubleDouble* x) const {
    std::array<DoubleDouble, lanes> result{};
    const std::size_t terms = high.size() / lanes;
    for (std::size_t first = 0; first < terms; first += terms_together) {
      Lanes sum{};
      Lanes rest{};
      for (std::size_t k = first; k < std::min(first + terms_together, terms); ++k) {
        // DoubleDouble::product and sum, of several numbers.
        const double split = 134217729.0 * x[k].high;
        const double upper = split - (split - x[k].high);
        const double lower = x[k].high - upper;
        Lanes b;
        Lanes b_low;
        std::memcpy(&b, high.data() + k * lanes, sizeof b);
        std::memcpy(&b_low, low.data() + k * lanes, sizeof b_low);
        const Lanes b_split = 134217729.0 * b;
        const Lanes b_upper = b_split - (b_split - b);
        const Lanes b_lower = b - b_upper;
        const Lanes product = x[k].high * b;
        const Lanes left =
            ((upper * b_upper - product) + upper * b_lower + lower * b_upper) + lower * b_lower;
        const Lanes next = sum + product;
        const Lanes part = next - sum;
        rest += ((sum - (next - part)) + (product - part)) + (left + (x[k].high * b_low + x[k].low * b));
        sum = next;
      }
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        result[lane] += DoubleDouble::sum(sum[lane], rest[lane]);
      }
    }
    return result;
  }

  std::vector<double> high;
  std::vector<double> low;
};

}  // namespace

Matrix product_transposed(const Matrix& a, const Matrix& b) {
  Matrix result(a.rows, b.rows);
  const bool symmetric = &a == &b;
  for (std::size_t first = 0; first < b.rows; first += lanes) {
    const RowBlock block(b, first);
    const std::size_t last = std::min(first + lanes, b.rows);
    for (std::size_t i = 0; i < (symmetric ? last : a.rows); ++i) {
      const std::array<DoubleDouble, lanes> sums = block.times(a.values.data() + i * a.columns);
      for (std::size_t j = first; j < last; ++j) {
        result.at(i, j) = sums[j - first];
        if (symmetric) result.at(j, i) = sums[j - first];
      }
    }
  }
  return result;
}

Column product(const Matrix& a, std::span<const DoubleDouble> x) {
  Column result;
  for (std::size_t i = 0; i < a.rows; ++i)
    result.push_back(dot({a.values.data() + i * a.columns, a.columns}, x));
  return result;
}

Column transposed_product(const Matrix& a, std::span<const DoubleDouble> x) {
  Column result(a.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) result[j] += a.at(i, j) * x[i];
  }
  return result;
}

Matrix transposed(const Matrix& a) {
  Matrix result(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) result.at(j, i) = a.at(i, j);
  }
  return result;
}

DoubleDouble square_of(std::span<const DoubleDouble> x) { return dot(x, x); }

double length_of(std::span<const DoubleDouble> x) { return sqrt(square_of(x)).high; }

Column to_column(std::span<const double> x) { return {x.begin(), x.end()}; }

std::optional<Matrix> cholesky(const Matrix& a) {
  Matrix factor(a.rows, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const DoubleDouble rest =
          a.at(i, j) - dot({&factor.values[i * a.rows], j}, {&factor.values[j * a.rows], j});
      if (i != j) {
        factor.at(i, j) = rest / factor.at(j, j);
      } else if (!(rest.high > 0.0)) {
        return std::nullopt;
      } else {
        factor.at(i, i) = sqrt(rest);
      }
    }
  }
  return factor;
}

Matrix semidefinite_factor(const Matrix& a, double least) {
  const std::size_t n = a.rows;
  Matrix rest = a;
  Matrix factor(n, n);
  for (std::size_t k = 0; k < n; ++k) {
    // The largest remaining pivot.
    std::size_t at = 0;
    for (std::size_t i = 1; i < n; ++i) {
      if (rest.at(i, i).high > rest.at(at, at).high) at = i;
    }
    const DoubleDouble pivot = rest.at(at, at);
    if (!(pivot.high > least)) break;
    const DoubleDouble root = sqrt(pivot);
    for (std::size_t i = 0; i < n; ++i) factor.at(i, k) = rest.at(i, at) / root;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) rest.at(i, j) -= factor.at(i, k) * factor.at(j, k);
    }
  }
  return factor;
}

Column solve(const Matrix& factor, Column b) {
  const std::size_t n = factor.rows;
  for (std::size_t i = 0; i < n; ++i) {
    b[i] = (b[i] - dot({factor.values.data() + i * n, i}, {b.data(), i})) / factor.at(i, i);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) b[i] -= factor.at(j, i) * b[j];
    b[i] /= factor.at(i, i);
  }
  return b;
}

std::optional<Matrix> inverse(Matrix a) {
  const std::size_t n = a.rows;
  Matrix result(n, n);
  for (std::size_t i = 0; i < n; ++i) result.at(i, i) = 1.0;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t at = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::abs(a.at(i, k).high) > std::abs(a.at(at, k).high)) at = i;
    }
    if (!(std::abs(a.at(at, k).high) > 0.0)) return std::nullopt;
    for (std::size_t j = 0; j < n; ++j) {
      std::swap(a.at(k, j), a.at(at, j));
      std::swap(result.at(k, j), result.at(at, j));
    }
    const DoubleDouble pivot = a.at(k, k);
    for (std::size_t j = 0; j < n; ++j) {
      a.at(k, j) /= pivot;
      result.at(k, j) /= pivot;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const DoubleDouble factor = a.at(i, k);
      if (i == k || factor.high == 0.0) continue;
      for (std::size_t j = 0; j < n; ++j) {
        a.at(i, j) -= factor * a.at(k, j);
        result.at(i, j) -= factor * result.at(k, j);
      }
    }
  }
  return result;
}

Exact::Exact(double value) {
  NORMSCOPE_ASSERT(std::isfinite(value));
  if (value == 0.0) return;
  int exponent = 0;
  number_ = static_cast<long>(std::ldexp(std::frexp(value, &exponent), 53));
  // Integers stay as short as they can be.
  const mp_bitcnt_t zeros = mpz_scan1(number_.get_mpz_t(), 0);
  number_ >>= zeros;
  exponent_ = exponent - 53 + static_cast<long>(zeros);
}

Exact Exact::of_digits(const std::string& digits) { return {mpz_class(digits, 10), 0}; }

std::pair<mpz_class, mpz_class> Exact::fraction() const {
  const auto shift = static_cast<mp_bitcnt_t>(std::abs(exponent_));
  const mpz_class one = 1;
  if (exponent_ >= 0) return {number_ << shift, one};
  return {number_, one << shift};
}

Exact& Exact::operator+=(const Exact& other) {
  if (other.number_ == 0) return *this;
  if (number_ == 0) return *this = other;
  if (exponent_ > other.exponent_) {
    number_ <<= static_cast<mp_bitcnt_t>(exponent_ - other.exponent_);
    exponent_ = other.exponent_;
  }
  if (exponent_ == other.exponent_) {
    number_ += other.number_;
  } else {
    number_ += other.number_ << static_cast<mp_bitcnt_t>(other.exponent_ - exponent_);
  }
  return *this;
}

bool Exact::is_product_at_most(const Exact& a, const Exact& square, const Exact& b) {
  const int left = square.sign() == 0 ? 0 : a.sign();
  if (left <= 0 && b.sign() >= 0) return true;
  if (left >= 0 && b.sign() <= 0) return left == 0 && b.sign() == 0;
  const Exact of_a = a * a * square;
  const Exact of_b = b * b;
  return left > 0 ? of_a <= of_b : of_b <= of_a;
}

Exact exact_dot(std::span<const double> a, std::span<const double> b) {
  Exact sum;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != 0.0 && b[i] != 0.0) sum += Exact(a[i]) * Exact(b[i]);
  }
  return sum;
}

Exact exact_square(std::span<const double> a) { return exact_dot(a, a); }

Exact exact_square(const std::vector<Exact>& a) {
  Exact sum;
  for (const Exact& entry : a) sum += entry * entry;
  return sum;
}

Exact exact_total(const std::vector<Weight>& weights) {
  Exact sum;
  for (const Weight& weight : weights) sum += weight.weight;
  return sum;
}

std::vector<Exact> exact_sum(MatrixView<const double> rows, const std::vector<Weight>& weights) {
  std::vector<Exact> sum(rows.width());
  for (const Weight& weight : weights) {
    if (weight.weight == 0.0) continue;
    const Exact factor = weight.weight;
    const std::span<const double> row = rows.row(weight.index);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if (row[i] != 0.0) sum[i] += factor * Exact(row[i]);
    }
  }
  return sum;
}

namespace {

Exact integer_score(const std::vector<Exact>& normal, std::span<const double> row) {
  Exact result;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] != 0.0) result += normal[i] * Exact(row[i]);
  }
  return result;
}

/// Adds numerators times rows; false where a numerator is not positive or a row is not there.
bool add_numerators(const std::vector<Numerator>& numerators, MatrixView<const double> rows, bool subtract,
                    std::vector<Exact>& point, Exact& total) {
  for (const Numerator& numerator : numerators) {
    const Exact number = Exact::of_digits(numerator.digits);
    if (number.sign() <= 0 || numerator.row >= rows.rows()) return false;
    total += number;
    const Exact factor = subtract ? -number : number;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const double value = rows.row(numerator.row)[i];
      if (value != 0.0) point[i] += factor * Exact(value);
    }
  }
  return true;
}

}  // namespace

bool separates(const std::vector<std::string>& normal, MatrixView<const double> a, MatrixView<const double> b,
               std::size_t skipped) {
  if (normal.size() != a.width()) return false;
  std::vector<Exact> numbers;
  for (const std::string& digits : normal) numbers.push_back(Exact::of_digits(digits));
  Exact least = integer_score(numbers, a.row(0));
  for (std::size_t row = 1; row < a.rows(); ++row) {
    least = std::min(least, integer_score(numbers, a.row(row)));
  }
  for (std::size_t row = 0; row < b.rows(); ++row) {
    if (row != skipped && least <= integer_score(numbers, b.row(row))) return false;
  }
  return true;
}

bool meet(const std::vector<Numerator>& of_a, const std::vector<Numerator>& of_b,
          const std::string& denominator, MatrixView<const double> a, MatrixView<const double> b) {
  std::vector<Exact> difference(a.width());
  Exact total_a;
  Exact total_b;
  if (!add_numerators(of_a, a, false, difference, total_a)) return false;
  if (!add_numerators(of_b, b, true, difference, total_b)) return false;
  const Exact whole = Exact::of_digits(denominator);
  return whole.sign() > 0 && total_a == whole && total_b == whole &&
         std::all_of(difference.begin(), difference.end(), [](const Exact& d) { return d.sign() == 0; });
}

namespace {

constexpr std::size_t most_width = 64;
constexpr std::size_t most_rows = std::size_t{1} << 14;
constexpr std::size_t most_bits = std::size_t{1} << 16;

/// Sums of integer rows x, and Σ x xᵀ above the diagonal and on it.
struct Moments {
  explicit Moments(std::size_t width) : sums(width), squares{width, std::vector<mpz_class>(width * width)} {}

  void add(const std::vector<mpz_class>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0) continue;
      sums[i] += x[i];
      for (std::size_t j = i; j < x.size(); ++j) {
        mpz_addmul(squares.at(i, j).get_mpz_t(), x[i].get_mpz_t(), x[j].get_mpz_t());
      }
    }
    ++count;
  }
  /// count Σ (x − mean)(x − mean)ᵀ = count Σ x xᵀ − Σx Σxᵀ.
  [[nodiscard]] IntegerForm scatter() const {
    IntegerForm form = squares;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      for (std::size_t j = i; j < sums.size(); ++j) {
        form.at(i, j) = count * squares.at(i, j) - sums[i] * sums[j];
        form.at(j, i) = form.at(i, j);
      }
    }
    return form;
  }

  std::vector<mpz_class> sums;
  IntegerForm squares;
  unsigned long count = 0;
};

void add_times(IntegerForm& to, const mpz_class& factor, const IntegerForm& form) {
  for (std::size_t i = 0; i < to.entries.size(); ++i) to.entries[i] += factor * form.entries[i];
}

/// Arithmetic modulo the Mersenne prime 2⁶¹ − 1, in which powers of two are rotations.
struct Modular {
  __extension__ using Wide = unsigned __int128;
  static constexpr int bits = 61;
  static constexpr std::uint64_t prime = (std::uint64_t{1} << bits) - 1;

  [[nodiscard]] static std::uint64_t reduce(Wide x) {
    std::uint64_t result = (static_cast<std::uint64_t>(x) & prime) + static_cast<std::uint64_t>(x >> bits);
    while (result >= prime) result -= prime;
    return result;
  }
  [[nodiscard]] static std::uint64_t times(std::uint64_t a, std::uint64_t b) { return reduce(Wide{a} * b); }
  [[nodiscard]] static std::uint64_t minus(std::uint64_t a, std::uint64_t b) {
    return a >= b ? a - b : a + prime - b;
  }
  [[nodiscard]] static std::uint64_t inverse(std::uint64_t a) {
    std::uint64_t result = 1;
    for (std::uint64_t power = prime - 2; power > 0; power >>= 1) {
      if ((power & 1) != 0) result = times(result, a);
      a = times(a, a);
    }
    return result;
  }
  [[nodiscard]] static std::uint64_t of(double value) {
    int exponent = 0;
    const auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    const int turn = ((exponent - 53) % bits + bits) % bits;
    const std::uint64_t size =
        reduce(Wide{static_cast<std::uint64_t>(digits < 0 ? -digits : digits)} << turn);
    return digits < 0 ? minus(0, size) : size;
  }
};

}  // namespace

std::optional<Scatter> exact_scatter(const std::vector<MatrixView<const double>>& classes) {
  const std::size_t width = classes[0].width();
  std::size_t rows = 0;
  int lowest = 0;
  int highest = 0;
  bool any = false;
  mpz_class multiple = 1;
  for (const MatrixView<const double> of_class : classes) {
    rows += of_class.rows();
    if (rows > most_rows || width > most_width) return std::nullopt;
    mpz_lcm_ui(multiple.get_mpz_t(), multiple.get_mpz_t(), of_class.rows());
    for (std::size_t row = 0; row < of_class.rows(); ++row) {
      for (const double value : of_class.row(row)) {
        if (value == 0.0) continue;
        int exponent = 0;
        std::frexp(value, &exponent);
        lowest = any ? std::min(lowest, exponent) : exponent;
        highest = any ? std::max(highest, exponent) : exponent;
        any = true;
      }
    }
  }
  mpz_lcm_ui(multiple.get_mpz_t(), multiple.get_mpz_t(), rows);
  const std::size_t bits =
      2 * static_cast<std::size_t>(highest - lowest + 53) + mpz_sizeinbase(multiple.get_mpz_t(), 2);
  if (bits * width > most_bits) return std::nullopt;
  Scatter result{{width, std::vector<mpz_class>(width * width)},
                 {width, std::vector<mpz_class>(width * width)}};
  Moments all(width);
  std::vector<mpz_class> x(width);
  for (const MatrixView<const double> of_class : classes) {
    Moments own(width);
    for (std::size_t row = 0; row < of_class.rows(); ++row) {
      for (std::size_t i = 0; i < width; ++i) {
        // In units of 2^(lowest − 53).
        const double value = of_class.row(row)[i];
        int exponent = 0;
        x[i] = static_cast<long>(std::ldexp(std::frexp(value, &exponent), 53));
        if (value != 0.0) x[i] <<= static_cast<mp_bitcnt_t>(exponent - lowest);
      }
      own.add(x);
      all.add(x);
    }
    add_times(result.within, multiple / own.count, own.scatter());
  }
  add_times(result.total, multiple / all.count, all.scatter());
  return result;
}

std::optional<std::size_t> semidefinite_rank(IntegerForm form) {
  std::vector<std::size_t> left(form.width);
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::size_t rank = 0;
  mpz_class last = 1;
  while (!left.empty()) {
    const auto pivot = std::max_element(left.begin(), left.end(), [&](std::size_t i, std::size_t j) {
      return form.at(i, i) < form.at(j, j);
    });
    const std::size_t p = *pivot;
    if (form.at(p, p) <= 0) {
      // Beside diagonal entries of at most 0, a semidefinite form has nothing.
      for (const std::size_t i : left) {
        for (const std::size_t j : left) {
          if (form.at(i, j) != 0) return std::nullopt;
        }
      }
      return rank;
    }
    left.erase(pivot);
    for (std::size_t a = 0; a < left.size(); ++a) {
      for (std::size_t b = a; b < left.size(); ++b) {
        mpz_class& entry = form.at(left[a], left[b]);
        entry = entry * form.at(p, p) - form.at(left[a], p) * form.at(left[b], p);
        mpz_divexact(entry.get_mpz_t(), entry.get_mpz_t(), last.get_mpz_t());
        form.at(left[b], left[a]) = entry;
      }
      if (form.at(left[a], left[a]) < 0) return std::nullopt;
    }
    last = form.at(p, p);
    ++rank;
  }
  return rank;
}

std::size_t rank_of_differences_at_least(const std::vector<MatrixView<const double>>& classes) {
  constexpr std::size_t most_operations = std::size_t{1} << 30;
  const std::size_t width = classes[0].width();
  std::vector<std::uint64_t> first;
  for (const double value : classes[0].row(0)) first.push_back(Modular::of(value));
  std::vector<std::vector<std::uint64_t>> basis;  // each with a 1 at its pivot, and 0 there in later ones
  std::vector<std::size_t> pivots;
  std::size_t operations = 0;
  for (const MatrixView<const double> of_class : classes) {
    for (std::size_t row = 0; row < of_class.rows(); ++row) {
      operations += width * (basis.size() + 1);
      if (basis.size() == width || operations > most_operations) return basis.size();
      std::vector<std::uint64_t> rest(width);
      for (std::size_t i = 0; i < width; ++i) {
        rest[i] = Modular::minus(Modular::of(of_class.row(row)[i]), first[i]);
      }
      for (std::size_t k = 0; k < basis.size(); ++k) {
        const std::uint64_t factor = rest[pivots[k]];
        if (factor == 0) continue;
        for (std::size_t i = 0; i < width; ++i) {
          rest[i] = Modular::minus(rest[i], Modular::times(factor, basis[k][i]));
        }
      }
      const auto pivot = std::find_if(rest.begin(), rest.end(), [](std::uint64_t x) { return x != 0; });
      if (pivot == rest.end()) continue;
      pivots.push_back(static_cast<std::size_t>(pivot - rest.begin()));
      const std::uint64_t inverse = Modular::inverse(*pivot);
      for (std::uint64_t& entry : rest) entry = Modular::times(entry, inverse);
      basis.push_back(std::move(rest));
    }
  }
  return basis.size();
}

namespace {

/// Claims whose scores are computed in one product, and rows: their scores fit into the second-level cache.
constexpr std::size_t block = 128;
constexpr std::size_t tile = 512;

/// A matrix in float32, each row or all of it divided by a power of two.
void append_single(std::vector<float>& to, std::span<const double> row, const BinaryScale& scale) {
  for (const double value : row) to.push_back(static_cast<float>(scale.divide(value)));
}

/// A lower bound of the lead, in twice the precision of float64.
double exact_lead(MatrixView<const double> rows, const LeadClaim& claim, std::size_t row) {
  const std::span<const double> a = rows.row(claim.index);
  const std::span<const double> b = rows.row(row);
  ExactSum sum;
  double error = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const DoubleDouble difference = two_sum(a[i], -b[i]);
    sum.add(difference, claim.direction[i]);
    if (!claim.rest.empty()) sum.add(difference, claim.rest[i]);
    if (!claim.error.empty()) error += claim.error[i] * std::abs(a[i] - b[i]);
  }
  const double terms = static_cast<double>(a.size()) + 4.0;
  return sum.result().low() - error * (1.0 + 2.0 * terms * unit);
}

class LeadChecker {
 public:
  explicit LeadChecker(MatrixView<const double> rows) : rows_(rows), scale_(BinaryScale::of(rows)) {
    single_.reserve(rows.rows() * rows.width());
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      lengths_.push_back(up(euclidean_norm(rows.row(row))));
      append_single(single_, rows.row(row), scale_);
    }
  }

  void check(const std::vector<LeadClaim>& claims, std::size_t first, std::size_t count,
             const DecideLead& decide, char* holds) const {
    const std::size_t width = rows_.width();
    std::vector<float> directions;
    std::vector<Limit> limits;
    for (std::size_t k = first; k < first + count; ++k) {
      const BinaryScale scale = BinaryScale::of(claims[k].direction);
      append_single(directions, claims[k].direction, scale);
      limits.push_back(limit_of(claims[k], scale));
    }
    std::fill(holds, holds + count, char{1});
    std::vector<float> scores(count * tile);
    for (std::size_t begin = 0; begin < rows_.rows(); begin += tile) {
      const std::size_t columns = std::min(tile, rows_.rows() - begin);
      multiply(Factor<float>(directions.data(), count, width, width),
               Factor<float>(single_.data() + begin * width, columns, width, width).transposed(),
               MatrixView<float>(scores.data(), count, columns));
      for (std::size_t k = 0; k < count; ++k) {
        if (holds[k] == 0) continue;
        const float* const products = scores.data() + k * columns;
        holds[k] = leads_all(claims[first + k], limits[k], products, begin, columns,
                             [&](std::size_t row) { return decide && decide(first + k, row); });
      }
    }
  }

 private:
  /// What a float32 score has to stay below: `factor` score + `part` length of the row <= `most`.
  struct Limit {
    double factor = 1.0;
    double part = 0.0;
    double most = 0.0;
    double length = 0.0;  ///< of the direction
    double error = 0.0;   ///< of the direction
  };

  [[nodiscard]] Limit limit_of(const LeadClaim& claim, const BinaryScale& scale) const {
    const double width = static_cast<double>(rows_.width());
    const std::size_t own = claim.index;
    Limit limit;
    limit.factor = std::scalbn(1.0, scale_.exponent() + scale.exponent());
    limit.length = up(euclidean_norm(claim.direction));
    limit.error = up(euclidean_norm(claim.error) + euclidean_norm(claim.rest));
    limit.part = up(single_rounding(rows_.width()) * limit.length + limit.error);
    double score = 0.0;
    for (std::size_t i = 0; i < claim.direction.size(); ++i) {
      score += claim.direction[i] * rows_.row(own)[i];
    }
    // Numbers divided by their scales are less than 2; what underflows in float32 is less than 2⁻¹²⁶.
    const double tiny = 4.0 * width * 0x1p-126 * limit.factor + least_of_products();
    limit.most = score - claim.least - (relative() * limit.length + limit.error) * lengths_[own] - tiny;
    limit.most -= 16.0 * unit * (std::abs(score) + std::abs(limit.most));
    return limit;
  }

  template <typename Decide>
  [[nodiscard]] bool leads_all(const LeadClaim& claim, const Limit& limit, const float* products,
                               std::size_t begin, std::size_t count, const Decide& decide) const {
    const auto is_clear = [&](std::size_t i) {
      return limit.factor * static_cast<double>(products[i]) + limit.part * lengths_[begin + i] <= limit.most;
    };
    bool holds = true;
    each_open(count, is_clear, [&](std::size_t i) {
      const std::size_t row = begin + i;
      // NaN and infinity, where products overflow, decide nothing.
      if (!holds || row == claim.index || quick_lead(claim, limit, row) >= claim.least) return;
      holds = exact_lead(rows_, claim, row) >= claim.least || decide(row);
    });
    return holds;
  }

  /// Rounding of a product in float64 and the few operations around it, relative to the sizes of its terms.
  [[nodiscard]] double relative() const {
    return rounding(static_cast<std::ptrdiff_t>(rows_.width())) + 16.0 * unit;
  }
  [[nodiscard]] double least_of_products() const {
    return 4.0 * static_cast<double>(rows_.width() + 4) * std::numeric_limits<double>::min();
  }

  /// A lower bound of the lead, in float64.
  [[nodiscard]] double quick_lead(const LeadClaim& claim, const Limit& limit, std::size_t row) const {
    const std::span<const double> a = rows_.row(claim.index);
    const std::span<const double> b = rows_.row(row);
    double own = 0.0;
    double other = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      own += claim.direction[i] * a[i];
      other += claim.direction[i] * b[i];
    }
    const double reach = lengths_[claim.index] + lengths_[row];
    return own - other - up((relative() * limit.length + limit.error) * reach + least_of_products());
  }

  MatrixView<const double> rows_;
  BinaryScale scale_;
  std::vector<float> single_{};  ///< the rows in float32, divided by the scale
  std::vector<double> lengths_{};
};

}  // namespace

std::vector<char> proved_leads(MatrixView<const double> rows, const std::vector<LeadClaim>& claims,
                               const DecideLead& decide, unsigned threads, const Progress& progress) {
  std::vector<char> holds(claims.size());
  const LeadChecker checker(rows);
  const std::size_t together = block * thread_count(threads);
  for (std::size_t begin = 0; begin < claims.size(); begin += together) {
    progress("claim", begin, claims.size());
    const std::size_t count = std::min(together, claims.size() - begin);
    parallel_for((count + block - 1) / block, 1, threads, [&](std::size_t first, std::size_t last) {
      for (std::size_t k = first; k < last; ++k) {
        const std::size_t at = begin + k * block;
        checker.check(claims, at, std::min(block, begin + count - at), decide, holds.data() + at);
      }
    });
  }
  progress("claim", claims.size(), claims.size());
  return holds;
}

bool is_proved_lead(MatrixView<const double> rows, const LeadClaim& claim,
                    std::span<const std::size_t> others, const std::function<bool(std::size_t row)>& decide) {
  return std::all_of(others.begin(), others.end(), [&](std::size_t row) {
    return exact_lead(rows, claim, row) >= claim.least || decide(row);
  });
}

}  // namespace normscope::verify
