// All 60,000 MNIST training images with random labels in one LN-Net of width 3: built, checked by the
// evaluator, and replayed under other rounding.
//   mnist_net [--classes C] [--replayed ROWS]
// Exit status: 0 as promised, 1 not, 77 without the data.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>
#include <normscope/files/array.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/evaluate.hpp>

using namespace normscope;

namespace {

/// How a sum of products, the mean of three numbers and the deviations from it are rounded.
template <typename T>
struct Plain {
  using Number = T;
  static T add(T sum, T a, T b) { return sum + a * b; }
  static T mean(T x, T y, T z) { return (x + y + z) / T(3); }
  static constexpr bool backwards = false;
  static constexpr int centrings = 1;
};
struct Fused : Plain<double> {
  static double add(double sum, double a, double b) { return std::fma(a, b, sum); }
};
struct Backwards : Plain<double> {
  static constexpr bool backwards = true;
};
struct LastTwoFirst : Plain<double> {
  static double mean(double x, double y, double z) { return (x + (y + z)) / 3.0; }
};
struct CentredTwice : Plain<double> {
  static constexpr int centrings = 2;
};

/// Rows processed together: independent rows hide the latency of a division.
constexpr std::size_t lanes = 8;

template <typename Rounding, typename T = typename Rounding::Number>
void apply(const nets::Layer& layer, const std::vector<T>& x, std::vector<T>& y) {
  y.resize(layer.out * lanes);
  for (std::size_t o = 0; o < layer.out; ++o) {
    T sums[lanes];
    for (T& sum : sums) sum = Rounding::backwards ? T(0) : static_cast<T>(layer.bias[o]);
    for (std::size_t k = 0; k < layer.in; ++k) {
      const std::size_t i = Rounding::backwards ? layer.in - 1 - k : k;
      const T weight = static_cast<T>(layer.weight[o * layer.in + i]);
      for (std::size_t r = 0; r < lanes; ++r) sums[r] = Rounding::add(sums[r], weight, x[i * lanes + r]);
    }
    for (std::size_t r = 0; r < lanes; ++r) {
      y[o * lanes + r] = Rounding::backwards ? sums[r] + static_cast<T>(layer.bias[o]) : sums[r];
    }
  }
}

template <typename Rounding, typename T = typename Rounding::Number>
void normalize(std::vector<T>& y) {
  for (std::size_t r = 0; r < lanes; ++r) {
    T& a = y[r];
    T& b = y[lanes + r];
    T& c = y[2 * lanes + r];
    for (int pass = 0; pass < Rounding::centrings; ++pass) {
      const T mean = Rounding::mean(a, b, c);
      a -= mean;
      b -= mean;
      c -= mean;
    }
    const T squares = Rounding::add(Rounding::add(a * a, b, b), c, c);
    const T length = std::sqrt(squares / T(3));
    a /= length;
    b /= length;
    c /= length;
  }
}

template <typename Rounding, typename T = typename Rounding::Number>
std::size_t replayed_wrong(const nets::Net& net, MatrixView<const double> x,
                           const std::vector<std::int64_t>& wanted, std::size_t rows) {
  std::vector<std::size_t> wrong(rows);
  parallel_for((rows + lanes - 1) / lanes, 1, 0, [&](std::size_t begin, std::size_t end) {
    std::vector<T> now;
    std::vector<T> next;
    for (std::size_t block = begin; block < end; ++block) {
      const auto row = [&](std::size_t r) { return std::min(block * lanes + r, rows - 1); };
      now.resize(x.width() * lanes);
      for (std::size_t i = 0; i < x.width() * lanes; ++i)
        now[i] = static_cast<T>(x.row(row(i % lanes))[i / lanes]);
      for (const nets::Layer& layer : net.layers) {
        apply<Rounding>(layer, now, next);
        normalize<Rounding>(next);
        now.swap(next);
      }
      apply<Rounding>(net.head, now, next);
      for (std::size_t r = 0; r < lanes; ++r) {
        std::size_t best = 0;
        for (std::size_t o = 1; o < net.out(); ++o) {
          if (next[o * lanes + r] > next[best * lanes + r]) best = o;
        }
        wrong[row(r)] = net.classes[best] == wanted[row(r)] ? 0 : 1;
      }
    }
  });
  std::size_t total = 0;
  for (const std::size_t one : wrong) total += one;
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t classes = 2;
  std::size_t replayed = 512;
  for (int i = 1; i + 1 < argc; i += 2) {
    (std::string(argv[i]) == "--classes" ? classes : replayed) = std::strtoull(argv[i + 1], nullptr, 10);
  }
  const std::string images = NORMSCOPE_DATA "/mnist/train-images-idx3-ubyte.gz";
  if (!std::filesystem::exists(images)) {
    std::printf("skipped: %s is not there\n", images.c_str());
    return 77;
  }
  const files::Array array = files::read_array(images);
  const std::size_t rows = array.shape[0];
  const MatrixView<const double> x(array.values.data(), rows, array.values.size() / rows);
  Random random(1);
  std::vector<std::int64_t> wanted(rows);
  for (std::int64_t& label : wanted) label = static_cast<std::int64_t>(random.below(classes));

  const nets::Construction made = nets::construct(x, wanted);
  const std::size_t layers = made.net.layers.size();
  std::printf("%zu layers, %zu of %zu rows right, %zu distinct, attempt %zu\n", layers, made.correct, rows,
              made.distinct, made.attempts);
  bool holds = made.correct == rows && layers < rows;
  const auto report = [&](const char* name, std::size_t wrong, bool promised) {
    std::printf("%-42s %zu of %zu wrong\n", name, wrong, replayed);
    std::fflush(stdout);
    holds = holds && (!promised || wrong == 0);
  };
  report("as evaluated", replayed_wrong<Plain<double>>(made.net, x, wanted, replayed), true);
  report("fused multiply and add", replayed_wrong<Fused>(made.net, x, wanted, replayed), true);
  report("inputs of a neuron backwards, bias last", replayed_wrong<Backwards>(made.net, x, wanted, replayed),
         true);
  report("80-bit long double", replayed_wrong<Plain<long double>>(made.net, x, wanted, replayed), true);
  report("mean as h1 + (h2 + h3)", replayed_wrong<LastTwoFirst>(made.net, x, wanted, replayed), false);
  report("centred twice", replayed_wrong<CentredTwice>(made.net, x, wanted, replayed), false);
  report("float32", replayed_wrong<Plain<float>>(made.net, x, wanted, replayed), false);
  return holds ? 0 : 1;
}
