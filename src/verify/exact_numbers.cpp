#include "exact_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace normscope::verify {

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

}  // namespace normscope::verify
