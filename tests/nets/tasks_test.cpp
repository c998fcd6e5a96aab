#include <normscope/nets/tasks.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/train.hpp>

#include "support/data.hpp"
#include "support/scratch.hpp"

namespace normscope::nets {
namespace {

TEST(Tasks, EveryTaskIsWhatItsNameSays) {
  for (const Task& task : tasks()) {
    const Dataset data = task.make(task.rows, 5);
    EXPECT_EQ(data.rows(), task.rows) << task.name;
    EXPECT_NO_THROW(validate(task.name, data));
    EXPECT_EQ(data.x, task.make(task.rows, 5).x) << task.name;
    EXPECT_NE(data.x, task.make(task.rows, 6).x) << task.name;
    for (std::size_t label = 0; label < data.classes; ++label) {
      const auto count = static_cast<double>(std::count(data.labels.begin(), data.labels.end(), label));
      EXPECT_NEAR(count / static_cast<double>(data.rows()), 1.0 / static_cast<double>(data.classes), 0.06);
    }
    EXPECT_NO_THROW(validate(task.spec));
    const std::optional<Task> found = find_task(task.name);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->claim, task.claim);
    if (task.test) {
      EXPECT_NE(task.test(5).x, data.x) << task.name;
    }
  }
  EXPECT_FALSE(find_task("nothing"));
}

TEST(Tasks, NoiseHasItsDeviation) {
  const Dataset clean = spiral(2000, 7);
  const Dataset noisy = with_noise(clean, 0.3, 7);
  double squares = 0.0;
  double across = 0.0;
  for (std::size_t i = 0; i < clean.x.size(); ++i) {
    squares += (noisy.x[i] - clean.x[i]) * (noisy.x[i] - clean.x[i]);
    across += (noisy.x[i] - clean.x[i]) * clean.x[i];
  }
  const auto count = static_cast<double>(clean.x.size());
  EXPECT_NEAR(std::sqrt(squares / count), 0.3, 0.01);
  EXPECT_NEAR(across / count, 0.0, 0.01);
  EXPECT_EQ(noisy.labels, clean.labels);
  EXPECT_EQ(noisy.x, with_noise(clean, 0.3, 7).x);
  EXPECT_NE(noisy.x, with_noise(clean, 0.3, 8).x);
  EXPECT_EQ(with_noise(clean, 0.0, 7).x, clean.x);
}

TEST(Tasks, ANetForUnscaledFeaturesGivesTheSame) {
  constexpr double shift = 33.0;
  constexpr double scale = 0.0125;
  Dataset scaled = octants(50, 3);
  const Net net = Trainer({.width = 6, .depth = 2, .norm = NormKind::layer}, scaled).net();
  const std::vector<double> wanted = evaluate(net, scaled.view());
  for (double& value : scaled.x) value = value / scale + shift;
  const std::vector<double> got = evaluate(for_unscaled(net, shift, scale), scaled.view());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12);
}

TEST(Tasks, NeighbouringOctantsDiffer) {
  const Dataset data = octants(500, 1);
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const auto x = data.view().row(row);
    EXPECT_NEAR(x[0] * x[0] + x[1] * x[1] + x[2] * x[2], 1.0, 1e-12);
    EXPECT_EQ(data.labels[row], x[0] * x[1] * x[2] > 0.0 ? 1U : 0U);
  }
}

TEST(Tasks, SpiralArmsAreHalfATurnApart) {
  using std::numbers::pi;
  const Dataset data = spiral(400, 1, 1.0);
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const auto x = data.view().row(row);
    const double s = std::hypot(x[0], x[1]);
    const double turn = std::cos(std::atan2(x[1], x[0]) - 2.0 * pi * s);
    // Noise of 0.02 rotates a point at radius 0.15 by less than a radian.
    EXPECT_GT(data.labels[row] == 0 ? turn : -turn, 0.0) << row;
  }
}

TEST(Dataset, ConflictsAreEqualRowsWithOtherLabels) {
  Dataset data{
      .width = 2, .classes = 3, .x = {1, 2, 3, 4, 1, 2, 3, 4, 3, 4, 5, 6}, .labels = {0, 1, 0, 2, 1, 2}};
  const Conflicts found = conflicts(data);
  EXPECT_EQ(found.rows, 1U);
  EXPECT_EQ(found.first, 3U);
  EXPECT_EQ(found.of, 1U);
  data.labels[3] = 1;
  EXPECT_EQ(conflicts(data).rows, 0U);
}

using namespace std::string_literals;

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string message(const std::string& task, std::size_t rows = 0) {
  try {
    static_cast<void>(find_task(task)->make(rows, 1));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Dataset, PrincipalComponentsAreOfItsDirectionsOfLargestDeviation) {
  // Deviations 3 along (0.6, 0.8, 0) and 1 along (0, 0, 1), 0 along the other; the mean does not count.
  const Dataset data{.width = 3,
                     .classes = 2,
                     .x = {7.0 + 1.8, 5.0 + 2.4, 1.0, 7.0 - 1.8, 5.0 - 2.4, 1.0, 7.0 + 1.8, 5.0 + 2.4, -1.0,
                           7.0 - 1.8, 5.0 - 2.4, -1.0},
                     .labels = {0, 1, 0, 1}};
  const std::vector<double> map = principal_components(data, 2);
  ASSERT_EQ(map.size(), 6U);
  const double sign = map[0] > 0.0 ? 1.0 : -1.0;
  EXPECT_NEAR(sign * map[0], 0.6 / 3.0, 1e-14);
  EXPECT_NEAR(sign * map[2], 0.8 / 3.0, 1e-14);
  EXPECT_NEAR(map[4], 0.0, 1e-14);
  EXPECT_NEAR(std::abs(map[5]), 1.0 / 3.0, 1e-14);
  const Dataset small = mapped(data, map);
  EXPECT_EQ(small.width, 2U);
  EXPECT_EQ(small.labels, data.labels);
  EXPECT_NEAR(std::abs(small.x[0] - small.x[2]), 2.0, 1e-14) << "the leading component is the first";
}

TEST(Images, MnistIsReadAndScaled) {
  const test::Scratch scratch;
  write(scratch / "train-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02\0\xff\x01\x02"s);
  write(scratch / "train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x02\x07\x03"s);
  const Dataset data = mnist(scratch.folder(), Part::train);
  EXPECT_EQ(data.width, 2U);
  EXPECT_EQ(data.labels, (std::vector<std::uint32_t>{7, 3}));
  EXPECT_DOUBLE_EQ(data.x[1], (255.0 - mnist_scaling.mean) / mnist_scaling.deviation);
  EXPECT_EQ(mnist(scratch.folder(), Part::train, 1).rows(), 1U);
  const std::string task = "mnist:" + scratch.folder().string();
  EXPECT_NE(message(task, 3).find("has 2 images, but 3 were requested"), std::string::npos);
  EXPECT_THROW(static_cast<void>(mnist(scratch.folder(), Part::test)), Error);
  write(scratch / "train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x01\x07"s);
  EXPECT_NE(message(task).find("2 images and 1 labels"), std::string::npos);
  EXPECT_NE(message("mnist:/nowhere").find("has no train-images-idx3-ubyte and no"), std::string::npos);
}

TEST(Images, CifarIsReadInItsOrder) {
  const test::Scratch scratch;
  std::string record(3073, '\x05');
  record[0] = '\x09';
  record[1] = '\x01';
  write(scratch / "data_batch_1.bin", record);
  record[0] = '\x02';
  write(scratch / "data_batch_3.bin", record + record);
  const Dataset data = cifar10(scratch.folder(), Part::train);
  EXPECT_EQ(data.width, 3072U);
  EXPECT_EQ(data.labels, (std::vector<std::uint32_t>{9, 2, 2}));
  EXPECT_DOUBLE_EQ(data.x[0], (1.0 - cifar10_scaling.mean) / cifar10_scaling.deviation);
  const std::string task = "cifar10:" + scratch.folder().string();
  write(scratch / "data_batch_3.bin", record + "x");
  EXPECT_NE(message(task).find("ends within record 1"), std::string::npos);
  write(scratch / "data_batch_3.bin", std::string(3073, '\x0a'));
  EXPECT_NE(message(task).find("the class of record 0 is 10"), std::string::npos);
}

TEST(Images, RandomLabelsAreDrawnAnew) {
  NORMSCOPE_NEED_DATA(folder, "mnist");
  const std::optional<Task> task = find_task("random-labels:mnist:" + folder.string());
  ASSERT_TRUE(task);
  EXPECT_FALSE(task->test);
  const Dataset one = task->make(200, 1);
  EXPECT_EQ(one.labels, task->make(200, 1).labels);
  EXPECT_NE(one.labels, task->make(200, 2).labels);
  EXPECT_EQ(one.x, mnist(folder, Part::train, 200).x);
}

}  // namespace

}  // namespace normscope::nets
