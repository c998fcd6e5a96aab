#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/selectability/select.hpp>

#include "proof/mixed_sizes.hpp"
#include "selectability/test_keys.hpp"

namespace normscope::selectability {
namespace {

TEST(Select, CornersOfASquareAndItsMiddle) {
  const Keys square{{0, 0, 1, 0, 0, 1, 1, 1, 0.5, 0.5, 0.5, 0}, 2};
  const Selection selection = select_keys(square.view());
  std::vector<Selectability> expected = all(4, Selectability::selectable);
  expected.resize(6, Selectability::unselectable);
  EXPECT_EQ(answers(selection), expected);
  // The largest margin of a corner is its distance from the hull of the others.
  EXPECT_LE(selection.keys[0].margin, std::sqrt(0.2));
  EXPECT_TRUE(verify(square.view(), selection));
}

TEST(Select, DegenerateSetsHaveAnswers) {
  const Keys none{{}, 3};
  EXPECT_TRUE(select_keys(none.view()).keys.empty());
  const Keys one{{1, 2, 3}, 3};
  EXPECT_EQ(select_keys(one.view()).keys[0].proof, Proof::alone);
  EXPECT_TRUE(verify(one.view(), select_keys(one.view())));
  const Keys equal{{1, 2, 1, 2, 1, 2}, 2};
  EXPECT_EQ(answers(select_keys(equal.view())), all(3, Selectability::unselectable));
  EXPECT_EQ(select_keys(equal.view()).keys[2].weights[0].id, 0);
  const Keys line{{3, 3, 1, 1, 2, 2, -1, -1}, 2};
  EXPECT_EQ(answers(select_keys(line.view())),
            (std::vector<Selectability>{Selectability::selectable, Selectability::unselectable,
                                        Selectability::unselectable, Selectability::selectable}));
  const Keys numbers{{4, -1, 0, 7, 7}, 1};
  // Two equal keys tie at one end, so that only the key at the other end is selectable.
  EXPECT_EQ(numbers.rows(), 5);
  std::vector<Selectability> expected = all(5, Selectability::unselectable);
  expected[1] = Selectability::selectable;
  EXPECT_EQ(answers(select_keys(numbers.view())), expected);
  const Keys wide = normal_keys(5, 40, 1);
  EXPECT_EQ(answers(select_keys(wide.view())), all(5, Selectability::selectable));
  const Keys zero{{0, 0, 0, 0, 1, 0, 0, 1}, 2};
  EXPECT_EQ(select_keys(zero.view()).count(Selectability::selectable), 2);
  // One key is the mean of all keys.
  const Keys middle{{-1, 0, 0, 0, 1, 0}, 2};
  EXPECT_EQ(answers(select_keys(middle.view()))[1], Selectability::unselectable);
  for (const Keys& set : {equal, line, numbers, wide, zero, middle}) {
    EXPECT_TRUE(verify(set.view(), select_keys(set.view())));
  }
}

/// Keys of nearly equal length, so that none is in the hull of others, with 30 bits, so that midpoints are
/// exact.
Keys vertices(std::size_t rows, std::size_t width) {
  Keys result = normal_keys(rows, width, width);
  for (std::size_t row = 0; row < rows; ++row) {
    const double length = euclidean_norm(result.view().row(row));
    for (std::size_t i = 0; i < width; ++i) {
      double& value = result.values[row * width + i];
      value = std::round(value / length * 0x1p30) * 0x1p-30;
    }
  }
  return result;
}

/// The mean of two keys a unit in the last place apart is rounded to one of them.
TEST(Select, AKeyThatIsTheRoundedMeanStatesItsQuery) {
  const Keys near{{0x1.00a64d095f35bp-2, 0x1.4cd1e9a36f73dp-3, 0x1.00a64d095f35cp-2, 0x1.4cd1e9a36f73ep-3},
                  2};
  const Selection selection = select_keys(near.view());
  EXPECT_EQ(answers(selection), all(2, Selectability::selectable));
  EXPECT_TRUE(verify(near.view(), selection));
  Selection forged = selection;
  forged.keys[1].proof = Proof::own_direction;
  forged.keys[1].query.clear();
  EXPECT_FALSE(verify(near.view(), forged));
}

TEST(Select, PlantedAnswersAtEveryWidth) {
  for (const std::size_t width : {2, 3, 8, 64, 320}) {
    const std::size_t count = width + 1 + std::min<std::size_t>(width, 100);
    Keys planted = vertices(count, width);
    std::vector<double> middle = planted.row(1);
    for (std::size_t i = 0; i < width; ++i) middle[i] = 0.5 * (middle[i] + planted.view().row(2)[i]);
    planted.add(middle);
    Random random(width);
    if (width <= 64) {
      planted.add(mixture(planted, count, 4 * width, random));
    } else {
      // An exact mean of four; a key deep inside would take a second.
      std::vector<double> face(width);
      for (std::size_t i = 0; i < 4 * width; ++i) face[i % width] += 0.25 * planted.values[i];
      planted.add(face);
    }
    planted.add(planted.row(0));
    std::vector<Selectability> expected = all(count, Selectability::selectable);
    expected.resize(count + 3, Selectability::unselectable);
    expected[0] = Selectability::unselectable;
    const Selection selection = select_keys(planted.view());
    EXPECT_EQ(answers(selection), expected) << width;
    EXPECT_TRUE(verify(planted.view(), selection)) << width;
  }
}

TEST(Select, TwiceThePrecisionDecidesNearFacets) {
  // The midpoint of the edge from (1, 0) to (0, 1), moved by one rounding to either side of the edge.
  for (const double side : {0x1p-52, 0.0, -0x1p-53}) {
    const Keys edge{{0, 0, 1, 0, 0, 1, 0.5 + side, 0.5}, 2};
    const Selection selection = select_keys(edge.view());
    EXPECT_EQ(selection.keys[3].answer, side > 0.0 ? Selectability::selectable : Selectability::unselectable)
        << side;
    EXPECT_TRUE(verify(edge.view(), selection));
    if (side > 0.0) {
      EXPECT_GT(selection.keys[3].margin, 0.0);
      EXPECT_LE(selection.keys[3].margin, side * std::sqrt(0.5) * (1.0 + 1e-15));
    }
  }
  // A key in twelve dimensions, next to the centre of a facet.
  const std::size_t width = 12;
  for (const double side : {0x1p-44, -0x1p-44}) {
    Keys simplex{.values = {}, .width = width};
    for (std::size_t i = 0; i <= width; ++i) {
      std::vector<double> corner(width, 0.0);
      if (i < width) corner[i] = 12.0;
      simplex.add(corner);
    }
    std::vector<double> centre(width, 1.0);
    centre[0] += side;
    simplex.add(centre);
    const Selection selection = select_keys(simplex.view());
    EXPECT_EQ(selection.keys.back().answer,
              side > 0.0 ? Selectability::selectable : Selectability::unselectable);
    EXPECT_TRUE(verify(simplex.view(), selection));
  }
}

TEST(Select, KeysWithoutAProofAreUndecided) {
  // Inside the hull, but no weights in float64 give the key exactly.
  const Keys thirds{{0, 0, 0, 3, 0, 0.1, 0, 3, 0.7, 0.7, 0.9, 1.1}, 3};
  Keys set = normal_keys(40, 3, 5);
  set.add(thirds.row(3));
  const Selection selection = select_keys(set.view(), {.tolerance = 0.0});
  EXPECT_GT(selection.count(Selectability::undecided), 0);
  for (const Verdict& verdict : selection.keys) {
    if (verdict.answer == Selectability::undecided) {
      EXPECT_LT(verdict.residual, 1e-14);
    }
  }
  EXPECT_EQ(select_keys(set.view()).count(Selectability::undecided), 0);
}

RC_GTEST_PROP(Select, AgreesWithPlanarHulls, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t count = 1 + random.below(60);
  const std::uint64_t side = 2 + random.below(40);
  Keys points{.values = {}, .width = 2};
  for (std::size_t i = 0; i < 2 * count; ++i)
    points.values.push_back(static_cast<double>(random.below(side)));
  if (count == 1) return;
  RC_ASSERT(answers(select_keys(points.view())) == planar_vertices(points));
}

RC_GTEST_PROP(Select, EveryAnswerIsProved, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t width = 1 + random.below(12);
  Keys set = normal_keys(1 + random.below(20 * width), width, seed);
  const std::uint64_t kind = random.below(4);
  if (kind == 1) {
    for (double& value : set.values) value = std::round(value);
  }
  if (kind == 2 && width > 1) set = projected(set);
  if (kind == 3) {
    for (double& value : set.values) value = std::exp(3.0 * value);
  }
  const Selection selection = select_keys(set.view());
  RC_ASSERT(selection.count(Selectability::undecided) == 0);
  RC_ASSERT(verify(set.view(), selection));
  if (kind == 0 && set.rows() <= width + 1)
    RC_ASSERT(selection.count(Selectability::selectable) == set.rows());
}

TEST(Select, ThreadsDoNotChangeABit) {
  Keys set = normal_keys(3000, 8, 2);
  const Selection one = select_keys(set.view(), {.threads = 1});
  const Selection three = select_keys(set.view(), {.threads = 3});
  EXPECT_EQ(answers(one), answers(three));
  for (std::size_t i = 0; i < set.rows(); ++i) {
    EXPECT_EQ(one.keys[i].margin, three.keys[i].margin);
    EXPECT_EQ(one.keys[i].residual, three.keys[i].residual);
    EXPECT_EQ(one.keys[i].query, three.keys[i].query);
  }
  EXPECT_GT(one.count(Selectability::unselectable), 1000);
  EXPECT_TRUE(verify(set.view(), one));
}

TEST(Select, EveryPairIsCompared) {
  // Keys of one length, far apart, and shorter copies of some, to which only the original scores higher.
  Keys set = vertices(1500, 24);
  for (std::size_t row = 3; row < 1500; row += 7) {
    std::vector<double> copy = set.row(row);
    for (double& value : copy) value *= 0.96875;
    set.add(copy);
  }
  const Selection selection = select_keys(set.view());
  for (std::size_t row = 1500; row < set.rows(); ++row) {
    EXPECT_NE(selection.keys[row].proof, Proof::own_direction);
  }
  EXPECT_TRUE(verify(set.view(), selection));
}

TEST(Select, KeysMayLieApartInMemory) {
  const Keys packed = normal_keys(300, 3, 7);
  Keys spaced{.width = 4};
  for (std::size_t row = 0; row < packed.rows(); ++row) {
    spaced.add(packed.row(row));
    spaced.values.push_back(std::nan(""));
  }
  const MatrixView<const double> view(spaced.values.data(), packed.rows(), 3, 4);
  Search search(view, {});
  while (!search.done()) search.step();
  const std::string state = search.state();
  EXPECT_EQ(answers(std::move(search).result()), answers(select_keys(packed.view())));
  Search other(view, {});
  other.resume(state);
  EXPECT_EQ(other.state(), state);
  spaced.values[0] += 1.0;
  EXPECT_THROW(Search(view, {}).resume(state), Error);
}

TEST(Select, EveryAnswerIsProvedForKeysOfManySizes) {
  for (std::uint64_t seed = 0; seed < 130; ++seed) {
    const proof::MixedRows rows = proof::mixed_rows(seed);
    for (const double tolerance : {1e-12, 0.0}) {
      Selection selection;
      try {
        selection = select_keys(rows.view(), {.tolerance = tolerance, .threads = 1});
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Argument) << seed << ": " << error.what();
        continue;
      }
      EXPECT_TRUE(verify(rows.view(), selection, 1U)) << seed;
      for (const Verdict& verdict : selection.keys) {
        EXPECT_TRUE(verdict.answer != Selectability::selectable || verdict.margin > 0.0) << seed;
        EXPECT_FALSE(std::isnan(verdict.residual)) << seed;
      }
    }
  }
}

TEST(Select, ThreadsFindTheSameAmongManyKeys) {
  // Keys of one length and means of some of them: keys of every place are violated.
  Keys set = vertices(2200, 5);
  Random random(3);
  for (std::size_t row = 0; row < 20; ++row) set.add(mixture(set, 2200, 3, random));
  const Selection one = select_keys(set.view(), {.threads = 1});
  const Selection four = select_keys(set.view(), {.threads = 4});
  EXPECT_EQ(answers(one), answers(four));
  for (std::size_t i = 0; i < set.rows(); ++i) {
    EXPECT_EQ(one.keys[i].margin, four.keys[i].margin) << i;
    EXPECT_EQ(one.keys[i].query, four.keys[i].query) << i;
  }
  EXPECT_TRUE(verify(set.view(), one));
}

TEST(Select, PairsCloserThanFloat32AreAllVertices) {
  const Keys set{{1, 0, 1, 1e-9, -1, 0, -1, -1e-9, 0.3, 0.01, -0.3, -0.01}, 2};
  const Selection selection = select_keys(set.view());
  EXPECT_EQ(answers(selection), all(6, Selectability::selectable));
  EXPECT_TRUE(verify(set.view(), selection));
}

TEST(Select, TheOnlyKeyMayHaveAnySize) {
  for (const double size : {1.0, 1e29, 1e-300}) {
    const Keys one{{size, 2.0 * size}, 2};
    const Selection selection = select_keys(one.view());
    EXPECT_EQ(selection.keys[0].proof, Proof::alone);
    EXPECT_TRUE(std::isinf(selection.keys[0].margin));
    EXPECT_TRUE(verify(one.view(), selection));
    EXPECT_FALSE(selection.margins().has_value());
  }
}

TEST(Select, AQueryBelongsToASelectableKey) {
  const Keys square{{0, 0, 1, 0, 0, 1, 1, 1, 0.5, 0.5}, 2};
  const Selection selection = select_keys(square.view());
  ASSERT_EQ(selection.keys[4].answer, Selectability::unselectable);
  EXPECT_TRUE(selection.query(square.view(), 4).empty());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GT(verified_margin(square.view(), i, selection.query(square.view(), i)), 0.0) << i;
  }
}

TEST(Select, NumbersThatAreNotFiniteProveNothing) {
  const Keys set{{0, 0, 4, 0, 0, 4, 1, 1}, 2};
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<proof::PointWeight> weights{{0, 0.5}, {1, 0.25}, {2, 0.25}};
  ASSERT_LT(verified_residual(set.view(), 3, weights), 1e-15);
  for (const double broken : {infinity, -infinity, std::nan("")}) {
    for (const std::vector<double>& query :
         {std::vector<double>{broken, 1.0}, {1.0, broken}, {0.0, broken}}) {
      EXPECT_EQ(verified_margin(set.view(), 1, query), -infinity) << broken;
    }
    std::vector<proof::PointWeight> forged = weights;
    forged[1].weight = broken;
    EXPECT_EQ(verified_residual(set.view(), 3, forged), infinity) << broken;
    Keys open = set;
    open.values[2] = open.values[4] = broken;
    EXPECT_EQ(verified_margin(open.view(), 3, std::vector<double>{1.0, 1.0}), -infinity) << broken;
    EXPECT_EQ(verified_residual(open.view(), 3, weights), infinity) << broken;
    const std::vector<double> distances = verified_distances(open.view(), 3, weights);
    ASSERT_EQ(distances.size(), 2U);
    EXPECT_EQ(distances[0], infinity) << broken;
  }
  // A sum of the largest double and three quarters of its last place.
  const std::vector<proof::PointWeight> beyond{
      {0, std::numeric_limits<double>::max()}, {1, 0x1.8p969}, {2, 0x1.8p969}};
  EXPECT_EQ(verified_residual(set.view(), 3, beyond), infinity);
}

TEST(Select, VerifyAsksForTheTolerance) {
  const Keys set = normal_keys(200, 4, 4);
  const Selection honest = select_keys(set.view());
  Selection forged = honest;
  // No distance is 0 to the last bit, nor that small beside an extent of 0.
  forged.tolerance = 0.0;
  EXPECT_FALSE(verify(set.view(), forged));
  forged = honest;
  forged.scale = 0.0;
  EXPECT_FALSE(verify(set.view(), forged));
  forged = honest;
  forged.extents.assign(4, 0.0);
  EXPECT_FALSE(verify(set.view(), forged));
  forged = honest;
  forged.extents.pop_back();
  EXPECT_FALSE(verify(set.view(), forged));
}

TEST(Select, ScaleAndTranslationDoNotMatter) {
  const Keys plain = normal_keys(300, 5, 3);
  const std::vector<Selectability> expected = answers(select_keys(plain.view()));
  for (const double factor : {0x1p-90, 0x1p90}) {
    Keys scaled = plain;
    for (double& value : scaled.values) value *= factor;
    EXPECT_EQ(answers(select_keys(scaled.view())), expected);
  }
  Keys moved = plain;
  for (double& value : moved.values) value = std::round(value * 0x1p20) + 0x1p40;
  const Selection selection = select_keys(moved.view());
  EXPECT_EQ(answers(selection), expected);
  EXPECT_TRUE(verify(moved.view(), selection));
}

TEST(Select, VerifyIsIndependent) {
  const Keys set = normal_keys(200, 4, 4);
  const Selection honest = select_keys(set.view());
  ASSERT_TRUE(verify(set.view(), honest));
  const auto find = [&](Proof proof) {
    return static_cast<std::size_t>(std::find_if(honest.keys.begin(), honest.keys.end(),
                                                 [&](const Verdict& v) { return v.proof == proof; }) -
                                    honest.keys.begin());
  };
  const std::size_t searched = find(Proof::query);
  const std::size_t inside = find(Proof::weights);
  ASSERT_LT(std::max(searched, inside), set.rows());
  const auto rejects = [&](std::size_t key, auto forge) {
    Selection forged = honest;
    forge(forged.keys[key]);
    return !verify(set.view(), forged);
  };
  EXPECT_TRUE(rejects(searched, [](Verdict& v) { v.margin *= 1.5; }));
  EXPECT_TRUE(rejects(searched, [](Verdict& v) { v.margin = 0.0; }));
  EXPECT_TRUE(rejects(searched, [](Verdict& v) { v.query.assign(4, 0.0); }));
  EXPECT_TRUE(rejects(searched, [](Verdict& v) { v.query.assign(3, 1.0); }));
  EXPECT_TRUE(rejects(searched, [](Verdict& v) { v.answer = Selectability::unselectable; }));
  EXPECT_TRUE(rejects(inside, [](Verdict& v) { v.weights[0].weight += 1e-6; }));
  EXPECT_TRUE(rejects(inside, [](Verdict& v) { v.weights[0].weight = -v.weights[0].weight; }));
  EXPECT_TRUE(rejects(inside, [&](Verdict& v) { v.weights = {{inside, 1.0}}; }));
  EXPECT_TRUE(rejects(inside, [](Verdict& v) { v.weights = {{1000, 1.0}}; }));
  EXPECT_TRUE(rejects(inside, [](Verdict& v) { v.answer = Selectability::selectable; }));
  EXPECT_FALSE(verify(set.view(), Selection{}));
}

TEST(Select, MarginsAreProvedForQueriesOfEverySize) {
  // The second entry of the query is 2^-300 times the first, and decides.
  const Keys set{{0x1p-210, 0x1p90, 0, 0}, 2};
  EXPECT_LE(verified_margin(set.view(), 0, std::vector<double>{1.0, -0x1p-300}), 0.0);
  EXPECT_GT(verified_margin(set.view(), 0, std::vector<double>{1.0, 0.0}), 0.0);
  for (const double size : {0x1p-900, 1.0, 0x1p900}) {
    const std::vector<double> query{size, size};
    EXPECT_NEAR(verified_margin(set.view(), 0, query) / (std::sqrt(0.5) * 0x1p90), 1.0, 1e-13) << size;
  }
}

TEST(Select, TheOnlyKeyHasNoMargin) {
  const Keys one{{1, 2}, 2};
  EXPECT_TRUE(std::isinf(verified_margin(one.view(), 0, std::vector<double>{1.0, 1.0})));
}

TEST(Select, BadInputIsNamed) {
  for (const double broken : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Keys set{{1, 2, broken, 3}, 2};
    EXPECT_THROW(static_cast<void>(select_keys(set.view())), Error);
  }
  const double nothing = 0.0;
  EXPECT_THROW(static_cast<void>(select_keys({&nothing, 3, 0})), Error);
}

TEST(Select, NumbersBeyondTheAcceptedSizesAreRefused) {
  const auto message = [](const Keys& set) -> std::string {
    try {
      static_cast<void>(select_keys(set.view()));
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Argument);
      return error.what();
    }
  };
  EXPECT_EQ(message({{1e30, -1e30, 0, 1}, 2}), "accepted");
  EXPECT_EQ(
      message({{1e31, -1e30, 0, 1}, 2}),
      "select: row 0 has 1e+31, expected numbers up to 2^100 (1.3e+30); a power of two times all rows has "
      "the same answers");
  EXPECT_EQ(message({{1e-60, 1, 0, 1}, 2}), "accepted");
  EXPECT_EQ(
      message({{1, 1e-61, 0, 0}, 2}),
      "select: column 1 extends over 1e-61, expected 0 or at least 2^-200 (6.2e-61); a power of two times "
      "the column has the same answers");
}

TEST(Weights, AreTheSoftmax) {
  const std::vector<double> keys{0, 0, 1, 0, 0, 2};
  const std::vector<double> few = attention_weights({keys.data(), 3, 2}, std::vector{std::log(2.0), 0.0});
  EXPECT_NEAR(few[0], 0.25, 1e-15);
  EXPECT_NEAR(few[1], 0.5, 1e-15);
  EXPECT_NEAR(few[2], 0.25, 1e-15);
  const std::vector<double> sharp = attention_weights({keys.data(), 3, 2}, std::vector{0.0, 1e300});
  EXPECT_EQ(sharp, (std::vector{0.0, 0.0, 1.0}));
}

RC_GTEST_PROP(Weights, OfAKeyInsideTheHullAreNeverLargest, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto rows = *rc::gen::inRange<std::size_t>(1, 20);
  Random random(seed);
  std::vector<double> keys(2 * rows);
  for (double& value : keys) value = random.normal();
  const std::vector<double> query{3 * random.normal(), 3 * random.normal()};
  const std::vector<double> weights = attention_weights({keys.data(), rows, 2}, query);
  RC_ASSERT(std::abs(std::accumulate(weights.begin(), weights.end(), -1.0)) <= 1e-14);
  const Selection selection = selectability::select_keys({keys.data(), rows, 2});
  const auto best =
      static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  RC_ASSERT(selection.keys[best].answer == Selectability::selectable);
}

TEST(Weights, BadInputIsNamed) {
  const std::vector<double> keys{0, 0, 1, 0};
  EXPECT_THROW((void)attention_weights({keys.data(), 2, 2}, std::vector{1.0}), Error);
  EXPECT_THROW((void)attention_weights({keys.data(), 0, 2}, std::vector{1.0, 1.0}), Error);
  EXPECT_THROW((void)attention_weights({keys.data(), 2, 2}, std::vector{INFINITY, 1.0}), Error);
}

TEST(RandomTable, EmptyRangesAreNamed) {
  const RandomTable fine{.least_width = 3, .most_width = 3, .least_count = 4, .most_count = 4, .runs = 1};
  EXPECT_EQ(random_table(fine, 1).size(), 1U);
  const auto message = [&](const auto& change) -> std::string {
    RandomTable table = fine;
    change(table);
    try {
      static_cast<void>(random_table(table, 1));
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Argument);
      return error.what();
    }
  };
  const auto says = [](const std::string& found, const char* what) {
    EXPECT_NE(found.find(what), std::string::npos) << found;
  };
  says(message([](RandomTable& t) { t.least_width = 0; }), "widths 0 to 3");
  says(message([](RandomTable& t) { t.least_width = 4; }), "widths 4 to 3");
  says(message([](RandomTable& t) { t.least_count = 0; }), "counts 0 to 4");
  says(message([](RandomTable& t) { t.least_count = 5; }), "counts 5 to 4");
  says(message([](RandomTable& t) { t.runs = 0; }), "0 runs");
}

}  // namespace

}  // namespace normscope::selectability
