// A separate program, because it replaces the global operator new to measure a reader's memory.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

#include "files/gguf_files.hpp"
#include "files/onnx_files.hpp"
#include "files/test_files.hpp"
#include "files/torch_files.hpp"
#include "support/scratch.hpp"

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

namespace normscope::files {
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

void expect_bounded(std::size_t file_size, const std::function<void()>& read_file) {
  const std::size_t before = held;
  most_held = before;
  try {
    read_file();
  } catch (const Error&) {
  }
  EXPECT_LE(most_held - before, file_size + allowance);
  testing::Test::RecordProperty("MebibytesHeld", static_cast<int>((most_held - before) >> 20));
}

void expect_bounded(const std::string& header) {
  const std::string file = test::safetensors_file(header);
  expect_bounded(file.size(), [&file] { (void)parse_safetensors(test::as_bytes(file), "f"); });
}

void expect_checkpoint_bounded(const std::string& file) {
  const test::Scratch scratch;
  test::put(scratch / "f", file);
  expect_bounded(file.size(), [&scratch] { const Checkpoint checkpoint(scratch / "f"); });
}

std::string repeated(std::size_t times, const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
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

TEST(OnnxMemory, IsBoundedForWhatTakesTwoBytesEach) {
  const std::string empties = repeated(1'000'000, std::string("\x0a\0", 2));
  const auto model = [](const test::Proto& graph) {
    return test::Proto().integer(1, 8).message(7, graph).text();
  };
  const std::string attributes = test::Proto().bytes(5, repeated(1'000'000, "\x40\1")).text();
  expect_checkpoint_bounded(test::Proto().integer(1, 8).bytes(7, empties).text());
  expect_checkpoint_bounded(model(test::Proto().bytes(1, empties)));
  expect_checkpoint_bounded(model(test::Proto().bytes(1, attributes)));
}

TEST(OnnxMemory, IsBoundedForTinyTensors) {
  test::Proto graph;
  for (int i = 0; i < 300'000; ++i) graph.message(5, test::tensor_proto(std::to_string(i), 1, {0}));
  expect_checkpoint_bounded(test::Proto().integer(1, 8).message(7, graph).text());
}

TEST(GgufMemory, IsBoundedForTinyEntriesAndTensors) {
  test::GgufFile entries;
  for (int i = 0; i < 300'000; ++i) entries.entry(std::to_string(i), 0, "x");
  expect_checkpoint_bounded(entries.file());
  for (const std::uint32_t type : {0u, 8u}) {
    test::GgufFile tensors;
    tensors.alignment = 1;
    tensors.number("general.alignment", 1);
    for (int i = 0; i < 300'000; ++i) {
      const std::string data(type == 0 ? 4 : 34, 'x');
      tensors.tensor(std::to_string(i), {type == 0 ? 1u : 32u}, type, data);
    }
    expect_checkpoint_bounded(tensors.file());
  }
}

TEST(TorchMemory, IsBoundedForValuesThatTakeOneByteEach) {
  for (const char* opcodes : {"]", ")\x85", "}\x94", "]Na", "(", "N"}) {
    const std::string pickle = test::Pickle().op(repeated(1'000'000, opcodes)).stop();
    expect_checkpoint_bounded(test::zip(test::torch_members(pickle, {})));
  }
}

}  // namespace
}  // namespace normscope::files
