// A program of its own: it replaces the global operator new to learn how much memory a reader holds.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/test_files.hpp"

namespace {

std::atomic<std::size_t> held{0};
std::atomic<std::size_t> most_held{0};

}  // namespace

void* operator new(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = held += malloc_usable_size(memory);
  if (now > most_held) most_held = now;
  return memory;
}
void operator delete(void* memory) noexcept {
  held -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace normscope::checkpoint {
namespace {

constexpr std::size_t header_size = 24'000'000;
constexpr std::size_t allowance = std::size_t{64} << 20;

/// Header of about `header_size` bytes: `begin`, then `item(0)`, `item(1)`, ... separated by commas, then
/// `end`.
std::string header_of(const std::string& begin, const std::function<std::string(std::size_t)>& item,
                      const std::string& end) {
  std::string header = begin;
  for (std::size_t i = 0; header.size() < header_size; ++i) {
    if (i > 0) header += ',';
    header += item(i);
  }
  return header + end;
}

void expect_bounded(const std::string& header) {
  const std::string file = test::safetensors_file(header);
  const std::size_t before = held;
  most_held = before;
  try {
    const SafetensorsContents contents = parse_safetensors(test::as_bytes(file), "f");
  } catch (const Error&) {
  }
  EXPECT_LE(most_held - before, file.size() + allowance);
  testing::Test::RecordProperty("MebibytesHeld", static_cast<int>((most_held - before) >> 20));
}

TEST(SafetensorsMemory, IsBoundedForTinyTensors) {
  expect_bounded(header_of(
      "{",
      [](std::size_t i) {
        return "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
      },
      "}"));
}

TEST(SafetensorsMemory, IsBoundedForEscapedNames) {
  expect_bounded(header_of(
      "{",
      [](std::size_t i) {
        return "\"\\n" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
      },
      "}"));
}

TEST(SafetensorsMemory, IsBoundedForHugeRanks) {
  expect_bounded(header_of(R"({"a":{"dtype":"U8","shape":[)", [](std::size_t) { return "0"; },
                           R"(],"data_offsets":[0,0]}})"));
}

TEST(SafetensorsMemory, IsBoundedForTinyMetadata) {
  expect_bounded(header_of(R"({"__metadata__":{)",
                           [](std::size_t i) { return "\"" + std::to_string(i) + "\":\"\""; }, "}}"));
}

TEST(SafetensorsMemory, IsBoundedForLongStrings) {
  const std::string value((std::size_t{4} << 20) - 10, 'x');
  expect_bounded(
      header_of(R"({"__metadata__":{)",
                [&value](std::size_t i) { return "\"" + std::to_string(i) + "\":\"" + value + "\""; }, "}}"));
}

TEST(SafetensorsMemory, IsBoundedForBrokenLongStrings) {
  expect_bounded("{\"" + std::string((std::size_t{4} << 20) - 10, 'x') + "\x01\":{}}");
  expect_bounded("{\"a\":" + std::string(65'000, '\n') + "?}");
}

TEST(SafetensorsMemory, IsBoundedForDeepNesting) {
  expect_bounded("{\"a\":{\"shape\":" + std::string(header_size, '[') + "}}");
  expect_bounded(std::string(header_size, '{') + "}");
}

}  // namespace
}  // namespace normscope::checkpoint
