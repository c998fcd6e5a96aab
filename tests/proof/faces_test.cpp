#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/proof/minimum_norm.hpp>

namespace normscope::proof {
namespace {

using Faces = std::vector<std::vector<std::size_t>>;

std::vector<double> normals(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = random.normal();
  return values;
}

MatrixView<const double> view(const std::vector<double>& values, std::size_t width) {
  return {values.data(), values.size() / width, width};
}

std::set<std::size_t> corners(const Faces& faces) {
  std::set<std::size_t> result;
  for (const auto& face : faces) result.insert(face.begin(), face.end());
  return result;
}

TEST(Faces, CubeWithAPointInside) {
  std::vector<double> points;
  for (const double x : {-1.0, 1.0}) {
    for (const double y : {-1.0, 1.0}) {
      for (const double z : {-1.0, 1.0}) points.insert(points.end(), {x, y, z});
    }
  }
  points.insert(points.end(), {0.2, 0.1, -0.3});
  const Faces faces = hull_faces(view(points, 3));
  ASSERT_EQ(faces.size(), 6);
  for (const auto& face : faces) {
    ASSERT_EQ(face.size(), 4);
    // Neighbours around a face share two coordinates: an edge, not a diagonal.
    for (std::size_t i = 0; i < 4; ++i) {
      int same = 0;
      for (std::size_t c = 0; c < 3; ++c)
        same += points[3 * face[i] + c] == points[3 * face[(i + 1) % 4] + c];
      EXPECT_EQ(same, 2);
    }
  }
  EXPECT_EQ(corners(faces).count(8), 0);
}

TEST(Faces, SquareGivesItsCornersInOrder) {
  const std::vector<double> points{0, 0, 1, 1, 1, 0, 0, 1, 0.5, 0.5, 0.5, 0};
  EXPECT_EQ(hull_faces(view(points, 2)), (Faces{{0, 2, 1, 3}}));
}

TEST(Faces, FewOrFlatPoints) {
  EXPECT_TRUE(hull_faces({nullptr, 0, 2}).empty());
  EXPECT_EQ(hull_faces(view({1, 2}, 2)), (Faces{{0}}));
  EXPECT_EQ(hull_faces(view({1, 2, 3, 1, 2, 3}, 3)), (Faces{{0}}));
  EXPECT_EQ(hull_faces(view({0, 0, 1, 1, 2, 2}, 2)), (Faces{{0, 2}}));
  EXPECT_EQ(hull_faces(view({0, 0, 0, 1, 1, 1, 2, 2, 2}, 3)), (Faces{{0, 2}}));
  EXPECT_EQ(hull_faces(view({0, 0, 0, 1, 1, 1}, 3)).front().size(), 2);
}

RC_GTEST_PROP(Faces, PlanarPointsInSpaceGiveTheirPolygon, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const std::vector<double> plane = normals(24, seed);
  const std::vector<double> frame = normals(6, seed + 1);
  std::vector<double> space;
  for (std::size_t i = 0; i < 12; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      space.push_back(plane[2 * i] * frame[c] + plane[2 * i + 1] * frame[3 + c] + 0.5);
    }
  }
  const Faces faces = hull_faces(view(space, 3));
  RC_ASSERT(faces.size() == std::size_t{1});
  RC_ASSERT(corners(faces) == corners(hull_faces(view(plane, 2))));
  RC_ASSERT(faces[0].size() == corners(faces).size());
}

RC_GTEST_PROP(Faces, NoPointIsOutside, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto rows = *rc::gen::inRange<std::size_t>(4, 25);
  const std::vector<double> points = normals(3 * rows, seed);
  const Faces faces = hull_faces(view(points, 3));
  std::set<std::pair<std::size_t, std::size_t>> edges;
  for (const auto& face : faces) {
    RC_ASSERT(face.size() >= std::size_t{3});
    for (std::size_t i = 0; i < face.size(); ++i) {
      edges.insert(std::minmax(face[i], face[(i + 1) % face.size()]));
    }
    const auto at = [&](std::size_t row, std::size_t c) {
      return points[3 * row + c] - points[3 * face[0] + c];
    };
    const auto volume = [&](std::size_t row) {
      const auto minor = [&](std::size_t a, std::size_t b) {
        return at(face[1], a) * at(face[2], b) - at(face[1], b) * at(face[2], a);
      };
      return at(row, 0) * minor(1, 2) + at(row, 1) * minor(2, 0) + at(row, 2) * minor(0, 1);
    };
    double least = 0.0;
    double most = 0.0;
    for (std::size_t row = 0; row < rows; ++row) {
      least = std::min(least, volume(row));
      most = std::max(most, volume(row));
    }
    RC_ASSERT(std::min(-least, most) <= 1e-7);
  }
  // Euler's formula: no face is missing or repeated.
  RC_ASSERT(corners(faces).size() + faces.size() == edges.size() + 2);
}

TEST(Faces, BadInputIsNamed) {
  EXPECT_THROW((void)hull_faces(view({1, 2, 3, 4}, 4)), Error);
  EXPECT_THROW((void)hull_faces(view({1, std::nan("")}, 2)), Error);
}

}  // namespace
}  // namespace normscope::proof
