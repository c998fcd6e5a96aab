#include <normscope/nets/tasks.hpp>

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "support/data.hpp"
#include "support/scratch.hpp"

namespace normscope::nets {
namespace {

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
