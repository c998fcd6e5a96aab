#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/random.hpp>
#include <normscope/files/array.hpp>
#include <normscope/signature/compare.hpp>
#include <normscope/signature/extract.hpp>
#include <normscope/signature/verify.hpp>

#include "support/files.hpp"
#include "support/scratch.hpp"
#include "support/thread_team.hpp"

namespace normscope::signature {
namespace {

/// A head behind a norm, small enough for its ellipse to be extracted from outputs.
struct Model {
  NormSpec norm{};
  std::size_t tokens = 0;
  std::vector<double> unembedding{};
  std::vector<double> bias{};

  [[nodiscard]] Head head() const {
    const MatrixView<const double> view(unembedding.data(), tokens, norm.width);
    Head result{.logits = selectability::fold(norm, view, bias), .eps = norm.eps};
    for (std::size_t token = 0; token < tokens; ++token) {
      double squares = 0.0;
      double shifts = bias.empty() ? 0.0 : std::abs(bias[token]);
      for (std::size_t i = 0; i < norm.width; ++i) {
        squares += view.row(token)[i] * view.row(token)[i] * norm.gain_at(i) * norm.gain_at(i);
        shifts += std::abs(norm.bias_at(i) * view.row(token)[i]);
      }
      result.sizes.push_back((norm.radius() * std::sqrt(squares) + shifts) * (1.0 + 1e-12));
    }
    return result;
  }

  /// Its logits at an input, in arithmetic of T.
  template <typename T>
  void logits(const std::vector<double>& input, std::vector<double>& to) const {
    std::vector<T> x(input.begin(), input.end());
    const T count = static_cast<T>(x.size());
    if (norm.centers()) {
      T mean = T{0};
      for (const T value : x) mean += value / count;
      for (T& value : x) value -= mean;
    }
    T square = T{0};
    for (const T value : x) square += value * value / count;
    const T scale = T{1} / std::sqrt(square + static_cast<T>(norm.eps));
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = x[i] * scale * static_cast<T>(norm.gain_at(i)) + static_cast<T>(norm.bias_at(i));
    }
    for (std::size_t token = 0; token < tokens; ++token) {
      T sum = T{0};
      for (std::size_t i = 0; i < x.size(); ++i)
        sum += static_cast<T>(unembedding[token * norm.width + i]) * x[i];
      to.push_back(static_cast<double>(sum + (bias.empty() ? T{0} : static_cast<T>(bias[token]))));
    }
  }
};

/// Weights that are exact in float32.
double rounded(double value) { return static_cast<double>(static_cast<float>(value)); }

Model random_model(std::uint64_t seed, NormKind kind, std::size_t width, std::size_t tokens,
                   double eps = 1e-5) {
  Random random(seed);
  Model model{.norm = {.kind = kind, .width = width, .eps = eps}, .tokens = tokens};
  for (std::size_t i = 0; i < width; ++i) {
    model.norm.gain.push_back(rounded(std::exp(0.5 * random.normal())));
    model.norm.bias.push_back(rounded(0.2 * random.normal()));
  }
  for (std::size_t k = 0; k < tokens * width; ++k) {
    model.unembedding.push_back(rounded(random.normal() / std::sqrt(static_cast<double>(width))));
  }
  for (std::size_t token = 0; token < tokens; ++token) model.bias.push_back(rounded(0.1 * random.normal()));
  return model;
}

std::vector<double> random_input(const Model& model, Random& random, double size = 1.0) {
  std::vector<double> input;
  const double scale = size * std::exp(0.3 * random.normal());
  for (std::size_t i = 0; i < model.norm.width; ++i) {
    input.push_back(rounded(scale * std::pow(1.0 + static_cast<double>(i), -0.3) * (random.normal() + 0.3)));
  }
  return input;
}

/// Outputs written to a file.
class OutputFile {
 public:
  template <typename T>
  const std::string& of(const Model& model, std::size_t rows, std::uint64_t seed, double size = 1.0) {
    Random random(seed);
    std::vector<double> values;
    for (std::size_t row = 0; row < rows; ++row) model.logits<T>(random_input(model, random, size), values);
    return write(std::move(values), model.tokens, sizeof(T) == 4 ? Dtype::F32 : Dtype::F64);
  }
  const std::string& write(std::vector<double> values, std::size_t width, Dtype dtype) {
    path_ = (folder_ / "x.npy").string();
    files::Array array{.shape = {values.size() / width, width}, .dtype = dtype, .values = {}};
    array.values = std::move(values);
    files::write_npy(path_, array);
    return path_;
  }

 private:
  test::Scratch folder_{};
  std::string path_{};
};

Outputs opened(const std::string& path, const OutputOptions& options = {}, const char* ids = nullptr) {
  std::optional<files::OpenedArray> tokens;
  if (ids != nullptr) tokens.emplace(ids);
  return {files::OpenedArray(path), tokens, options};
}

TEST(Verify, NoOutputOfTheModelIsRefuted) {
  OutputFile file;
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    for (const double size : {1e-4, 1.0, 1e3}) {
      const Model model = random_model(3, kind, 24, 60);
      const Verification floats = verify(model.head(), opened(file.of<float>(model, 150, 7, size)));
      EXPECT_EQ(floats.with(Verdict::not_this_model), 0U) << size;
      const Verification doubles = verify(model.head(), opened(file.of<double>(model, 150, 8, size)));
      EXPECT_EQ(doubles.with(Verdict::not_this_model), 0U) << size;
      if (size < 1.0) {
        // Such inputs are small compared to eps: their outputs lie inside, which proves nothing.
        EXPECT_EQ(doubles.reason, Reason::inside);
        EXPECT_LT(doubles.rows[0].mean_square, 1e-6);
      } else {
        EXPECT_EQ(doubles.verdict, Verdict::consistent);
        EXPECT_EQ(floats.verdict, Verdict::consistent);
        for (const RowResult& row : floats.rows) EXPECT_LT(row.off_units, 4.0);
      }
    }
  }
}

TEST(Verify, OtherModelsAreRefutedWithCertificatesThatHoldInLongDouble) {
  OutputFile file;
  const Model model = random_model(3, NormKind::layer, 24, 60);
  Model gains = model;
  for (double& gain : gains.norm.gain) gain = rounded(gain * 1.1);
  const Head head = model.head();
  for (const Model& other : {random_model(4, NormKind::layer, 24, 60), gains}) {
    const Verification found = verify(head, opened(file.of<float>(other, 40, 7)));
    EXPECT_EQ(found.verdict, Verdict::not_this_model);
    EXPECT_TRUE(found.proved);
    for (const RowResult& row : found.rows) {
      if (!row.proved) continue;
      long double sum = 0.0L;
      long double lead = 0.0L;
      long double slack = 0.0L;
      std::vector<long double> gradient(model.norm.width, 0.0L);
      for (std::size_t i = 0; i < row.weights.size(); ++i) {
        const long double weight = row.weights[i];
        sum += weight;
        lead += weight * row.logits[i];
        slack += std::abs(weight) * row.slack[i];
        lead -= weight * model.bias[i];
        for (std::size_t j = 0; j < gradient.size(); ++j) {
          const long double entry = model.unembedding[i * model.norm.width + j];
          lead -= weight * entry * model.norm.bias[j];
          gradient[j] += weight * entry * model.norm.gain[j];
        }
      }
      long double mean = 0.0L;
      for (const long double value : gradient) mean += value / static_cast<long double>(gradient.size());
      long double squares = 0.0L;
      for (const long double value : gradient) squares += (value - mean) * (value - mean);
      EXPECT_EQ(sum, 0.0L);
      const long double margin =
          lead - std::sqrt(static_cast<long double>(model.norm.width) * squares) - slack;
      EXPECT_GT(margin, 0.0L);
      EXPECT_GE(margin / slack, static_cast<long double>(row.margin));
      EXPECT_LT(margin / slack, static_cast<long double>(row.margin) * 1.001L + 1e-3L);
    }
  }
  EXPECT_EQ(verify(head, opened(file.of<float>(gains, 40, 7))).reason, Reason::outside);
}

TEST(Verify, AStatedMeanSquareRefutesRowsInside) {
  OutputFile file;
  const Model model = random_model(3, NormKind::rms, 24, 60);
  const std::string& path = file.of<double>(model, 20, 8, 1e-4);
  EXPECT_EQ(verify(model.head(), opened(path)).verdict, Verdict::undecided);
  const Verification found = verify(model.head(), opened(path), {.least_mean_square = 1e-2});
  EXPECT_EQ(found.verdict, Verdict::not_this_model);
  EXPECT_FALSE(found.proved);
  Model exact = model;
  exact.norm.eps = 0.0;
  EXPECT_EQ(verify(exact.head(), opened(path)).reason, Reason::inside);
}

TEST(Verify, FewValuesRefuteOnlyStatesThatAreTooLong) {
  OutputFile file;
  const Model model = random_model(3, NormKind::layer, 24, 60);
  Model gains = model;
  for (double& gain : gains.norm.gain) gain = rounded(gain * 2.0);
  const char* ids = "3,7,1,0,20,59,33,41,12,13,14";
  const auto of = [&](const Model& source) {
    Random random(9);
    std::vector<double> whole;
    std::vector<double> values;
    for (std::size_t row = 0; row < 60; ++row) source.logits<float>(random_input(source, random), whole);
    for (std::size_t row = 0; row < 60; ++row) {
      for (const std::size_t id : {3, 7, 1, 0, 20, 59, 33, 41, 12, 13, 14})
        values.push_back(whole[row * 60 + id]);
    }
    return verify(model.head(), opened(file.write(values, 11, Dtype::F32), {.vocabulary = 60}, ids));
  };
  const Verification own = of(model);
  EXPECT_EQ(own.verdict, Verdict::undecided);
  EXPECT_EQ(own.reason, Reason::few_values);
  EXPECT_EQ(own.with(Verdict::not_this_model), 0U);
  const Verification other = of(gains);
  EXPECT_GT(other.with(Verdict::not_this_model), 5U);
  EXPECT_TRUE(other.proved);
}

double worst_axis(const Ellipse& found, const Ellipse& truth, bool& understated) {
  EXPECT_EQ(found.rank, truth.rank);
  double worst = 0.0;
  understated = false;
  for (std::size_t k = 0; k < std::min(found.rank, truth.rank); ++k) {
    const double error = std::abs(found.semi_axes[k] / truth.semi_axes[k] - 1.0);
    worst = std::max(worst, error);
    if (error > found.errors[k]) understated = true;
  }
  return worst;
}

TEST(Extract, FindsTheAxesOfTheWeights) {
  OutputFile file;
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    const Model model = random_model(5, kind, 16, 40, 0.0);
    const Ellipse truth = ellipse_of(model.head().logits);
    const std::size_t rows = 2 * unknowns(truth.rank);
    bool understated = true;
    const Outputs floats = opened(file.of<float>(model, rows, 11));
    const Subspace subspace = find_subspace(floats);
    EXPECT_EQ(subspace.rank, kind == NormKind::layer ? 15U : 16U);
    const Extraction found = extract(floats, subspace);
    ASSERT_TRUE(found.ellipse);
    EXPECT_LT(worst_axis(*found.ellipse, truth, understated), 1e-6);
    EXPECT_FALSE(understated);
    EXPECT_EQ(compare(truth, *found.ellipse).relation, Relation::same);
    // The bits are equal for any number of threads.
    EXPECT_EQ(extract(floats, find_subspace(floats, 1), {.threads = 1}).ellipse->semi_axes,
              found.ellipse->semi_axes);
    // And for any number of processes.
    ThreadTeam::run(3, [&](const Team& team) {
      EXPECT_EQ(extract(floats, subspace, {.threads = 1, .team = &team}).ellipse->semi_axes,
                found.ellipse->semi_axes);
    });
    EXPECT_EQ(kind_of(floats, subspace).norm, kind == NormKind::layer ? FinalNorm::layer : FinalNorm::rms);
    EXPECT_EQ(kind_of(floats, subspace).width, 16U);

    const Outputs doubles = opened(file.of<double>(model, rows, 11));
    const Extraction precise = extract(doubles, find_subspace(doubles));
    ASSERT_TRUE(precise.ellipse);
    EXPECT_LT(worst_axis(*precise.ellipse, truth, understated), 1e-11);
    EXPECT_EQ(verify(*precise.ellipse, doubles).verdict, Verdict::consistent);
    const Verification fresh = verify(*found.ellipse, opened(file.of<float>(model, 100, 12)));
    EXPECT_EQ(fresh.verdict, Verdict::consistent);
    const Verification other =
        verify(*found.ellipse, opened(file.of<float>(random_model(6, kind, 16, 40, 0.0), 50, 12)));
    EXPECT_EQ(other.with(Verdict::not_this_model), 50U);
    EXPECT_FALSE(other.proved);
  }
}

TEST(Extract, ErrorsAreNotUnderstated) {
  OutputFile file;
  for (std::uint64_t seed = 20; seed < 26; ++seed) {
    const Model model = random_model(seed, NormKind::rms, 10, 30, 0.0);
    const Ellipse truth = ellipse_of(model.head().logits);
    std::vector<double> values;
    Random random(seed);
    const std::size_t rows = (seed % 2 == 0 ? 2 : 6) * unknowns(10);
    for (std::size_t row = 0; row < rows; ++row) model.logits<double>(random_input(model, random), values);
    const double noise = std::pow(10.0, -2.0 - static_cast<double>(seed % 3));
    for (double& value : values) value += noise * random.normal();
    const Outputs outputs =
        opened(file.write(values, 30, Dtype::F32), {.precision = seed % 3 == 0 ? Dtype::BF16 : Dtype::F16});
    const Extraction found = extract(outputs, find_subspace(outputs));
    ASSERT_TRUE(found.ellipse) << seed;
    bool understated = false;
    EXPECT_LT(worst_axis(*found.ellipse, truth, understated), 0.2) << seed;
    EXPECT_FALSE(understated) << seed;
  }
}

TEST(Extract, NoEllipseWithoutANorm) {
  OutputFile file;
  const Model model = random_model(5, NormKind::rms, 12, 30, 1e12);
  const Outputs outputs = opened(file.of<float>(model, 3 * unknowns(12), 11));
  const Subspace subspace = find_subspace(outputs);
  const Extraction found = extract(outputs, subspace);
  EXPECT_FALSE(found.ellipse);
  EXPECT_GT(found.relative_surface, on_an_ellipse);
  EXPECT_EQ(kind_of(outputs, subspace).norm, FinalNorm::none);
}

TEST(Extract, RefusesRowsThatDetermineNoEllipse) {
  OutputFile file;
  const Model model = random_model(5, NormKind::rms, 12, 30);
  const auto error = [](const std::string& path) {
    return test::error_of(ErrorCode::Argument, [&] {
      const Outputs outputs = opened(path);
      static_cast<void>(extract(outputs, find_subspace(outputs)));
    });
  };
  EXPECT_NE(error(file.of<float>(model, unknowns(12) - 1, 1)).find("has 89 rows, expected at least 90"),
            std::string::npos);
  EXPECT_NE(
      error(file.of<float>(random_model(5, NormKind::rms, 12, 12), 200, 1)).find("fill all 11 dimensions"),
      std::string::npos);
  Random random(1);
  std::vector<double> once;
  for (std::size_t row = 0; row < 60; ++row) model.logits<float>(random_input(model, random), once);
  std::vector<double> repeated = once;
  for (int k = 0; k < 3; ++k) repeated.insert(repeated.end(), once.begin(), once.end());
  EXPECT_NE(error(file.write(repeated, 30, Dtype::F32)).find("has 60 different rows"), std::string::npos);
  std::vector<double> constant = once;
  std::fill_n(constant.begin() + 30, 30, 1.5);
  EXPECT_NE(error(file.write(constant, 30, Dtype::F32)).find("row 1 is constant"), std::string::npos);
  constant[35] = NAN;
  EXPECT_NE(error(file.write(constant, 30, Dtype::F32)).find("row 1 has nan in column 5"), std::string::npos);
  std::vector<double> probabilities;
  for (std::size_t k = 0; k < 90; ++k) probabilities.push_back(k % 30 == 3 ? 0.42 : 0.02);
  EXPECT_NE(error(file.write(probabilities, 30, Dtype::F32)).find("has probabilities"), std::string::npos);
}

TEST(EllipseFile, GivesBackWhatWasWritten) {
  const test::Scratch folder;
  const std::filesystem::path path = folder / "e.safetensors";
  Ellipse ellipse = ellipse_of(random_model(5, NormKind::layer, 12, 30).head().logits);
  ellipse.rows = 7;
  ellipse.surface = 1e-7;
  write_ellipse(path, ellipse);
  const std::optional<Ellipse> read = read_ellipse(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->axes, ellipse.axes);
  EXPECT_EQ(read->semi_axes, ellipse.semi_axes);
  EXPECT_EQ(read->errors, ellipse.errors);
  EXPECT_EQ(read->centre, ellipse.centre);
  EXPECT_EQ(read->rows, 7U);
  EXPECT_EQ(read->surface, 1e-7);
  ellipse.axes[3] += 1e-3;
  write_ellipse(path, ellipse);
  EXPECT_NE(
      test::error_of(ErrorCode::Format, [&] { static_cast<void>(read_ellipse(path)); }).find("orthonormal"),
      std::string::npos);
  ellipse.axes[3] -= 1e-3;
  std::swap(ellipse.semi_axes[0], ellipse.semi_axes[1]);
  write_ellipse(path, ellipse);
  EXPECT_NE(
      test::error_of(ErrorCode::Format, [&] { static_cast<void>(read_ellipse(path)); }).find("descending"),
      std::string::npos);
}

TEST(Compare, DistinguishesRescaledFineTunedAndUnrelated) {
  const Model model = random_model(5, NormKind::layer, 12, 60);
  const auto of = [](const Model& one) { return ellipse_of(one.head().logits); };
  Model scaled = model;
  for (double& weight : scaled.unembedding) weight *= 1.5;
  for (double& bias : scaled.bias) bias *= 1.5;
  const Comparison rescaled = compare(of(model), of(scaled));
  EXPECT_EQ(rescaled.relation, Relation::rescaled);
  EXPECT_NEAR(rescaled.scale, 1.5, 1e-12);
  Model tuned = model;
  Random random(1);
  for (double& weight : tuned.unembedding) weight += 0.01 * random.normal();
  const Comparison near = compare(of(model), of(tuned));
  EXPECT_EQ(near.relation, Relation::fine_tuned);
  EXPECT_LT(near.outside, 0.1);
  Model gains = model;
  gains.norm.gain[0] *= 1.01;
  EXPECT_EQ(compare(of(model), of(gains)).relation, Relation::fine_tuned);
  EXPECT_EQ(compare(of(model), of(model)).relation, Relation::same);
  EXPECT_EQ(compare(of(model), of(random_model(6, NormKind::layer, 12, 60))).relation, Relation::unrelated);
}

}  // namespace
}  // namespace normscope::signature
