#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/checkpoint/opened_array.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/hdf5_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::checkpoint {
namespace {

using namespace std::string_literals;
using test::hdf5_complaint;
using test::hdf5_dataset;
using test::hdf5_message;
using test::hdf5_nowhere;
using test::Hdf5File;
using test::le;
using test::le16;
using test::le32;
using test::le64;
using test::octet;
using MessageKind = test::Hdf5Message;
using Values = std::vector<double>;

/// A file that is refused, and the message that says why.
struct Hdf5Refusal {
  std::string bytes;
  ErrorCode code;
  std::string complaint;
};

void expect_hdf5_refusals(const std::vector<Hdf5Refusal>& refusals) {
  for (const Hdf5Refusal& refusal : refusals) {
    EXPECT_EQ(hdf5_complaint(refusal.code, refusal.bytes), refusal.complaint);
  }
}

const std::string single_row = test::hdf5_space({1});
const std::string float_type = test::hdf5_floats();
const std::string single_float = test::hdf5_compact(le(1.5F));

TEST(Hdf5Hostile, ReadsTheFilesThatItsTestsBreak) {
  EXPECT_EQ(read(*test::open_hdf5(hdf5_dataset(single_row + float_type + single_float)).find("a")),
            Values{1.5});
  Hdf5File file;
  const std::uint64_t root = file.object("");
  EXPECT_EQ(test::open_hdf5(file.file(root, 1)).tensors().size(), 0u);
  EXPECT_EQ(test::open_hdf5(file.file(root, 2)).tensors().size(), 0u);
}

TEST(Hdf5Hostile, RefusesOtherSuperblocks) {
  Hdf5File file;
  const std::uint64_t root = file.object("");
  expect_hdf5_refusals(
      {{"This is not a file of HDF5.", ErrorCode::Format, "does not begin as HDF5 files do"},
       {file.file(root, 2, 512), ErrorCode::Unsupported, "has addresses relative to byte 512, expected 0"},
       {file.file(5000), ErrorCode::Format,
        "an object header at byte 5000 extends beyond the file, which has 114"}});
}

TEST(Hdf5Hostile, RefusesOtherObjectHeaders) {
  Hdf5File file;
  const std::uint64_t third = file.add(octet(3) + std::string(15, '\0'));
  const std::uint64_t fourth = file.add("OHDR" + octet(4) + std::string(11, '\0'));
  expect_hdf5_refusals(
      {{file.file(third), ErrorCode::Unsupported,
        "object header at byte " + std::to_string(third) + " has version 3, expected 1 or 2"},
       {file.file(fourth), ErrorCode::Unsupported,
        "object header at byte " + std::to_string(fourth) + " has version 4, expected 1 or 2"}});
}

/// A file whose root continues in a block of these bytes, which is the first structure.
std::string file_of_continuation(const std::string& block) {
  Hdf5File file;
  const std::uint64_t address = file.add(block);
  return file.file(file.object(hdf5_message(MessageKind::continuation, le64(address) + le64(block.size()))));
}

TEST(Hdf5Hostile, ReadsContinuedHeadersUnlessTheyAreCircles) {
  Hdf5File file;
  const std::uint64_t dataset = file.object(single_row + float_type + single_float);
  const std::string block = "OCHK" + test::hdf5_link("a", dataset) + "\0\0\0\0"s;
  const std::uint64_t address = file.add(block);
  const std::string bytes =
      file.file(file.object(hdf5_message(MessageKind::continuation, le64(address) + le64(block.size()))));
  EXPECT_EQ(read(*test::open_hdf5(bytes).find("a")), Values{1.5});

  const std::uint64_t size = 4 + 20 + 4;
  const std::string circle =
      "OCHK" + hdf5_message(MessageKind::continuation, le64(Hdf5File::begin) + le64(size)) + "\0\0\0\0"s;
  expect_hdf5_refusals(
      {{file_of_continuation("OC"), ErrorCode::Format, "has no continued object header at byte 96"},
       {file_of_continuation("OCHK\0"s), ErrorCode::Format, "has no continued object header at byte 96"},
       {file_of_continuation("KHCO\0\0\0\0"s), ErrorCode::Format,
        "has no continued object header at byte 96"},
       {file_of_continuation(circle), ErrorCode::Format,
        "has structures that refer to the same places many times, or in circles"}});
}

/// An object header of version 1 with messages of that kind and these data.
std::string old_object(MessageKind kind, const std::string& data) {
  const std::string message =
      le16(static_cast<std::uint64_t>(kind)) + le16(data.size()) + octet(0) + std::string(3, '\0') + data;
  return octet(1) + octet(0) + le16(1) + le32(1) + le32(message.size()) + le32(0) + message;
}

TEST(Hdf5Hostile, ReadsContinuedHeadersOfVersion1) {
  Hdf5File file;
  const std::uint64_t dataset = file.object(single_row + float_type + single_float);
  const std::string link = octet(1) + octet(0) + octet(1) + "a" + le64(dataset);
  const std::string block = old_object(MessageKind::link, link).substr(16);
  const std::uint64_t address = file.add(block);
  const std::uint64_t root =
      file.add(old_object(MessageKind::continuation, le64(address) + le64(block.size())));
  EXPECT_EQ(read(*test::open_hdf5(file.file(root, 1)).find("a")), Values{1.5});
}

TEST(Hdf5Hostile, RefusesDatasetsThatItCannotRead) {
  const auto space = [](unsigned version, std::size_t axes) {
    std::string data = octet(version) + octet(axes) + octet(0) + octet(1);
    for (std::size_t axis = 0; axis < axes; ++axis) data += le64(1);
    return hdf5_message(MessageKind::dataspace, data);
  };
  const auto layout = [](unsigned version, unsigned kind) {
    return hdf5_message(MessageKind::layout, octet(version) + octet(kind) + std::string(24, '\0'));
  };
  const std::string only =
      ", expected compact, contiguous or chunks in a tree; write it without libver=\"latest\"";
  const std::string numbers = ", expected integers or IEEE floating-point numbers";
  const std::string fixed_time =
      hdf5_message(MessageKind::datatype, octet(0x12) + octet(0) + le16(0) + le32(4));
  const std::string wide = test::hdf5_compact(le(1.5));
  expect_hdf5_refusals(
      {{hdf5_dataset(float_type), ErrorCode::Unsupported,
        "\"a\" is a committed type, expected a group or a dataset"},
       {hdf5_dataset(float_type + single_float), ErrorCode::Format, "tensor \"a\" has no dataspace"},
       {hdf5_dataset(space(0, 1) + float_type + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has a dataspace of version 0 with 1 axes, expected version 1 or 2 and at most 32"},
       {hdf5_dataset(space(3, 1) + float_type + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has a dataspace of version 3 with 1 axes, expected version 1 or 2 and at most 32"},
       {hdf5_dataset(space(2, 33) + float_type + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has a dataspace of version 2 with 33 axes, expected version 1 or 2 and at most 32"},
       {hdf5_dataset(single_row + hdf5_message(MessageKind::datatype, std::string(16, '\0'), 2) +
                     single_float),
        ErrorCode::Unsupported, "tensor \"a\" has a committed type, expected it in itself"},
       {hdf5_dataset(single_row + float_type + single_float + hdf5_message(MessageKind::external_files, "")),
        ErrorCode::Unsupported, "tensor \"a\" has its elements in another file, expected it in itself"},
       {hdf5_dataset(single_row + test::hdf5_integers(4, 1, 32) + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has elements of HDF5's class 0 in 4 bytes" + numbers},
       {hdf5_dataset(single_row + test::hdf5_integers(4, 0, 31) + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has elements of HDF5's class 0 in 4 bytes" + numbers},
       {hdf5_dataset(single_row + test::hdf5_integers(3, 0, 24) + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has elements of HDF5's class 0 in 3 bytes" + numbers},
       {hdf5_dataset(single_row + test::hdf5_floats(0, 126) + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has elements of HDF5's class 1 in 4 bytes" + numbers},
       // A mantissa whose leading bit has no known meaning.
       {hdf5_dataset(single_row + test::hdf5_floats(0x10) + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has elements of HDF5's class 1 in 4 bytes" + numbers},
       {hdf5_dataset(single_row + test::hdf5_floats(0x41) + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has elements in VAX order"},
       {hdf5_dataset(single_row + fixed_time + single_float), ErrorCode::Unsupported,
        "tensor \"a\" has elements of HDF5's class 2 in 4 bytes" + numbers},
       {hdf5_dataset(single_row + float_type + layout(2, 1)), ErrorCode::Unsupported,
        "tensor \"a\" has a layout of version 2 and class 255" + only},
       {hdf5_dataset(single_row + float_type + layout(3, 3)), ErrorCode::Unsupported,
        "tensor \"a\" has a layout of version 3 and class 3" + only},
       {hdf5_dataset(single_row + float_type + layout(4, 2)), ErrorCode::Unsupported,
        "tensor \"a\" has a layout of version 4 and class 2" + only},
       {hdf5_dataset(single_row + float_type + wide), ErrorCode::Shape,
        "tensor \"a\" has 8 bytes, expected 4 for 1 elements of F32"},
       {hdf5_dataset(single_row + float_type + single_float + test::hdf5_deflate()), ErrorCode::Format,
        "tensor \"a\" is packed, but not in chunks"}});
  for (const std::uint64_t address : {std::uint64_t{1} << 40U, std::uint64_t{100}}) {
    const std::string bytes = hdf5_dataset(single_row + float_type + test::hdf5_contiguous(address, 4096));
    expect_hdf5_refusals({{bytes, ErrorCode::Format,
                           "tensor \"a\" has 4096 bytes at byte " + std::to_string(address) + " of " +
                               std::to_string(bytes.size())}});
  }
}

TEST(Hdf5Hostile, ReadsDatasetsWithoutElements) {
  const std::string no_space = hdf5_message(MessageKind::dataspace, "\2\0\0\2"s);
  const std::string none = test::hdf5_contiguous(hdf5_nowhere, 0);
  const std::string empty = test::hdf5_space({0, 2});
  for (const std::string& bytes :
       {hdf5_dataset(no_space + float_type + test::hdf5_compact("")),
        hdf5_dataset(empty + float_type + test::hdf5_chunks(hdf5_nowhere, {1, 2, 4})),
        hdf5_dataset(empty + test::hdf5_floats(1) + none)}) {
    const test::Scratch scratch;
    test::put(scratch / "m.h5", bytes);
    EXPECT_EQ(read_array((scratch / "m.h5").string() + ":a").values, Values{});
  }
}

TEST(Hdf5Hostile, LeavesOutText) {
  const std::string fixed = hdf5_message(MessageKind::datatype, octet(0x13) + octet(0) + le16(0) + le32(4));
  const std::string variable =
      hdf5_message(MessageKind::datatype, octet(0x19) + octet(1) + le16(0) + le32(16));
  const std::string list = hdf5_message(MessageKind::datatype, octet(0x19) + octet(0) + le16(0) + le32(16));
  EXPECT_EQ(test::open_hdf5(hdf5_dataset(single_row + fixed + single_float)).tensors().size(), 0u);
  EXPECT_EQ(test::open_hdf5(hdf5_dataset(single_row + variable + single_float)).tensors().size(), 0u);
  EXPECT_EQ(
      hdf5_complaint(ErrorCode::Unsupported, hdf5_dataset(single_row + list + single_float)),
      "tensor \"a\" has elements of HDF5's class 9 in 16 bytes, expected integers or IEEE floating-point "
      "numbers");
}

TEST(Hdf5Hostile, RefusesGridsOfChunksThatCannotBe) {
  const auto grid = [](const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& extent) {
    return hdf5_dataset(test::hdf5_space(shape) + float_type + test::hdf5_chunks(hdf5_nowhere, extent));
  };
  const auto size = [](const std::string& found, const std::string& axes) {
    return "tensor \"a\" has chunks of " + found + " bytes, expected " + axes +
           " axes and 1 to 33554432 bytes";
  };
  const std::string many = "tensor \"a\" has more chunks than its file has bytes";
  constexpr std::uint64_t one = 1;
  expect_hdf5_refusals(
      {{grid({1}, {1}), ErrorCode::Unsupported, size("1 axes and 1", "2")},
       {grid({}, {4}), ErrorCode::Unsupported, size("1 axes and 4", "1")},
       {grid({1}, {1, 2}), ErrorCode::Unsupported, size("2 axes and 2", "2")},
       {grid({1}, {0, 4}), ErrorCode::Unsupported, size("2 axes and 0", "2")},
       {grid({1}, {8388609, 4}), ErrorCode::Unsupported, size("2 axes and 33554436", "2")},
       {grid({1, 1}, {0xffffffff, 0xffffffff, 4}), ErrorCode::Unsupported, size("3 axes and 0", "3")},
       {grid({one << 40U}, {1, 4}), ErrorCode::Format, many},
       {grid({one << 33U, one << 33U}, {1, 1, 4}), ErrorCode::Format, many},
       {grid({one << 62U}, {one << 23U, 4}), ErrorCode::Format, many},
       {grid({1}, {1, 4}), ErrorCode::Unsupported, "tensor \"a\" has no stored elements"}});
}

TEST(Hdf5Hostile, RefusesOtherFilters) {
  const auto packed = [](const std::string& filters) {
    return hdf5_dataset(single_row + float_type + test::hdf5_chunks(hdf5_nowhere, {1, 4}) +
                        test::hdf5_filters(filters));
  };
  const std::string versions = ", expected at most 32 of version 1 or 2";
  const std::string other = ", expected deflate (1) or shuffle (2)";
  // Version 1 names every filter, and pads names and values; version 2 names those from 256 on.
  const std::string named = octet(1) + octet(2) + std::string(6, '\0') + le16(1) + le16(8) + le16(0) +
                            le16(1) + "deflate\0"s + le32(6) + le32(0) + le16(4) + le16(3) + le16(0) +
                            le16(2) + "szip\0\0\0\0"s + le32(1) + le32(2);
  const std::string numbered = octet(2) + octet(1) + le16(3) + le16(0) + le16(0);
  const std::string registered =
      octet(2) + octet(1) + le16(32001) + le16(5) + le16(0) + le16(1) + "blosc" + le32(1);
  expect_hdf5_refusals(
      {{packed(octet(0) + octet(1)), ErrorCode::Unsupported,
        "tensor \"a\" has 1 filters of version 0" + versions},
       {packed(octet(3) + octet(1)), ErrorCode::Unsupported,
        "tensor \"a\" has 1 filters of version 3" + versions},
       {packed(octet(2) + octet(33)), ErrorCode::Unsupported,
        "tensor \"a\" has 33 filters of version 2" + versions},
       {packed(named), ErrorCode::Unsupported, "tensor \"a\" is packed by filter 4" + other},
       {packed(numbered), ErrorCode::Unsupported, "tensor \"a\" is packed by filter 3" + other},
       {packed(registered), ErrorCode::Unsupported, "tensor \"a\" is packed by filter 32001" + other},
       {packed(octet(2) + octet(1) + le16(1)), ErrorCode::Format,
        "a filter pipeline is truncated: 2 bytes are needed, 0 are left"}});
}

/// An entry of a tree of chunks of a vector.
std::string chunk_entry(std::uint64_t size, std::uint64_t skipped, std::uint64_t begin,
                        std::uint64_t address) {
  return le32(size) + le32(skipped) + le64(begin) + le64(0) + le64(address);
}

/// A vector of four numbers in chunks of two: these elements are the first structure, this tree the second.
std::string file_of_chunks(const std::string& elements, const std::string& tree,
                           const std::string& filters = "") {
  Hdf5File file;
  file.add(elements);
  const std::uint64_t address = file.add(tree);
  const std::uint64_t dataset =
      file.object(test::hdf5_space({4}) + float_type + test::hdf5_chunks(address, {2, 4}) + filters);
  return file.file(file.object(test::hdf5_link("a", dataset)));
}

const std::string counted_floats = le(1.0F) + le(2.0F) + le(3.0F) + le(4.0F);
constexpr std::uint64_t first_chunk = Hdf5File::begin;
constexpr std::uint64_t second_chunk = first_chunk + 8;

TEST(Hdf5Hostile, ReadsChunksThatTheirFiltersLeftAlone) {
  const std::string plain =
      test::hdf5_node(1, 0, {chunk_entry(8, 0, 0, first_chunk), chunk_entry(8, 0, 2, second_chunk)});
  EXPECT_EQ(read(*test::open_hdf5(file_of_chunks(counted_floats, plain)).find("a")), (Values{1, 2, 3, 4}));
  const std::string packed = test::deflated(counted_floats.substr(8), 15);
  const std::string half = test::hdf5_node(
      1, 0, {chunk_entry(8, 1, 0, first_chunk), chunk_entry(packed.size(), 0, 2, second_chunk)});
  EXPECT_EQ(
      read(*test::open_hdf5(file_of_chunks(counted_floats.substr(0, 8) + packed, half, test::hdf5_deflate()))
                .find("a")),
      (Values{1, 2, 3, 4}));
}

TEST(Hdf5Hostile, RefusesTreesOfChunksThatAreNotSound) {
  const std::uint64_t at = first_chunk + 16;  // of the tree
  const std::string first = chunk_entry(8, 0, 0, first_chunk);
  const auto tree = [&first](const std::string& second) {
    return file_of_chunks(counted_floats, test::hdf5_node(1, 0, {first, second}));
  };
  const std::string no_tree = "tensor \"a\" has no tree of chunks at byte ";
  std::string other = test::hdf5_node(1, 0, {first});
  other[0] = 't';
  const std::string circle = test::hdf5_node(1, 1, {le32(0) + le32(0) + le64(0) + le64(0) + le64(at)});
  expect_hdf5_refusals(
      {{file_of_chunks(counted_floats, other), ErrorCode::Format, no_tree + std::to_string(at)},
       {file_of_chunks(counted_floats, test::hdf5_node(0, 0, {first})), ErrorCode::Format,
        no_tree + std::to_string(at)},
       {file_of_chunks(counted_floats, circle), ErrorCode::Format, no_tree + std::to_string(at)},
       {tree(chunk_entry(8, 0, 3, second_chunk)), ErrorCode::Format,
        "tensor \"a\" has a chunk at 3 of axis 0, which is no multiple of 2 below 4"},
       {tree(chunk_entry(8, 0, 4, second_chunk)), ErrorCode::Format,
        "tensor \"a\" has a chunk at 4 of axis 0, which is no multiple of 2 below 4"},
       {tree(chunk_entry(0, 0, 2, second_chunk)), ErrorCode::Format,
        "tensor \"a\" has a chunk of 8 bytes that is stored in 0"},
       {tree(chunk_entry(7, 0, 2, second_chunk)), ErrorCode::Format,
        "tensor \"a\" has a chunk of 8 bytes that is stored in 7"}});
  const std::uint64_t size = tree(first).size();
  for (const std::uint64_t address : {size - 4, size + 1}) {
    expect_hdf5_refusals({{tree(chunk_entry(8, 0, 2, address)), ErrorCode::Format,
                           "tensor \"a\" has a chunk of 8 bytes at byte " + std::to_string(address) + " of " +
                               std::to_string(size)}});
  }
}

TEST(Hdf5Hostile, UnpacksChunksAgainThatItCouldNotKeep) {
  constexpr std::size_t half = std::size_t{17} << 20U;  // two are more than is kept
  Hdf5File file;
  std::vector<std::string> entries;
  for (const char letter : {'\1', '\2'}) {
    const std::string packed = test::deflated(std::string(half, letter), 15);
    entries.push_back(chunk_entry(packed.size(), 0, entries.size() * half, file.add(packed)));
  }
  const std::uint64_t tree = file.add(test::hdf5_node(1, 0, entries));
  const std::uint64_t dataset = file.object(test::hdf5_space({2 * half}) + test::hdf5_integers(1, 0, 8) +
                                            test::hdf5_chunks(tree, {half, 1}) + test::hdf5_deflate());
  const Checkpoint checkpoint = test::open_hdf5(file.file(file.object(test::hdf5_link("a", dataset))));
  const Tensor& tensor = *checkpoint.find("a");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(read(tensor, 0, 1), Values{1});
    EXPECT_EQ(read(tensor, half, 1), Values{2});
  }
}

/// A group of one dataset whose link is in a symbol table.
struct SymbolGroup {
  std::string heap = "HEAP";
  std::string tree = "TREE";
  std::string leaf = "SNOD";
  std::string names = "\0a\0"s;
  unsigned kind = 0;
  std::uint64_t name = 1;
  unsigned cached = 0;
};

std::string file_of(const SymbolGroup& group) {
  Hdf5File file;
  const std::uint64_t dataset = file.object(single_row + float_type + single_float);
  const std::uint64_t names = file.add(group.names);
  const std::uint64_t heap =
      file.add(group.heap + le32(0) + le64(group.names.size()) + le64(0) + le64(names));
  const std::uint64_t leaf = file.add(group.leaf + le16(1) + le16(1) + le64(group.name) + le64(dataset) +
                                      le32(group.cached) + std::string(20, '\0'));
  const std::string node = test::hdf5_node(group.kind, 0, {le64(0) + le64(leaf)});
  const std::uint64_t tree = file.add(group.tree + node.substr(4));
  return file.file(file.object(hdf5_message(MessageKind::symbol_table, le64(tree) + le64(heap))));
}

TEST(Hdf5Hostile, RefusesSymbolTablesThatAreNotSound) {
  EXPECT_EQ(read(*test::open_hdf5(file_of({})).find("a")), Values{1.5});
  const auto with = [](auto change) {
    SymbolGroup group;
    change(group);
    return file_of(group);
  };
  expect_hdf5_refusals({{with([](auto& group) { group.heap = "heap"; }), ErrorCode::Format,
                         "has no local heap where one was expected"},
                        {with([](auto& group) { group.tree = "tree"; }), ErrorCode::Format,
                         "has no tree of links where one was expected"},
                        {with([](auto& group) { group.leaf = "snod"; }), ErrorCode::Format,
                         "has no list of links where one was expected"},
                        {with([](auto& group) { group.name = 3; }), ErrorCode::Format,
                         "a link's name at byte 3 of a heap of 3 has no end"},
                        {with([](auto& group) { group.names = "\0a"s; }), ErrorCode::Format,
                         "a link's name at byte 1 of a heap of 2 has no end"},
                        {with([](auto& group) { group.cached = 2; }), ErrorCode::Unsupported,
                         "link \"a\" leads to a name, expected an object"}});
  EXPECT_NE(hdf5_complaint(ErrorCode::Format, with([](auto& group) { group.kind = 1; }))
                .find(" has kind 1 and level 0, expected kind 0 and level 0"),
            std::string::npos);
}

TEST(Hdf5Hostile, RefusesLinksToOtherThanObjects) {
  Hdf5File file;
  const std::uint64_t dataset = file.object(single_row + float_type + single_float);
  const auto group = [&file](const std::string& messages) {
    Hdf5File copy = file;
    return copy.file(copy.object(messages));
  };
  const auto link = [](const std::string& data) { return hdf5_message(MessageKind::link, data); };
  // With its position in the order of creation and its set of characters.
  const std::string ordered = octet(1) + octet(0x14) + le64(0) + octet(0) + octet(1) + "a" + le64(dataset);
  const std::string unindexed =
      hdf5_message(MessageKind::link_info, octet(0) + octet(1) + le64(1) + le64(hdf5_nowhere));
  EXPECT_EQ(read(*test::open_hdf5(group(unindexed + link(ordered))).find("a")), Values{1.5});
  expect_hdf5_refusals(
      {{group(link(octet(2) + octet(0) + octet(1) + "a" + le64(dataset))), ErrorCode::Unsupported,
        "has a link of version 2, expected 1"},
       {group(link(octet(1) + octet(8) + octet(1) + octet(1) + "a" + le16(1) + "b")), ErrorCode::Unsupported,
        "link \"a\" leads to a name or to another file, expected an object"},
       {group(hdf5_message(MessageKind::link_info, octet(0) + octet(0) + le64(100))), ErrorCode::Unsupported,
        "has a group whose links are in a fractal heap, which is not read; write it without "
        "libver=\"latest\" "
        "and track_order"},
       {group(test::hdf5_link("a", dataset) + test::hdf5_link("b", dataset)), ErrorCode::Unsupported,
        "\"b\" is a second name of an object, expected one name"}});
}

TEST(Hdf5Hostile, ReadsGroupsUpToADepth) {
  const auto nested = [](int groups) {
    Hdf5File file;
    std::uint64_t object = file.object(single_row + float_type + single_float);
    for (int i = 0; i < groups; ++i) object = file.object(test::hdf5_link("g", object));
    return file.file(object);
  };
  EXPECT_EQ(test::open_hdf5(nested(65)).tensors().size(), 1u);
  EXPECT_EQ(hdf5_complaint(ErrorCode::Unsupported, nested(66)), "has groups nested deeper than 64");
}

const std::string fixed_text = octet(0x13) + octet(0) + le16(0) + le32(12);
const std::string variable_text = octet(0x19) + octet(1) + le16(0) + le32(16);

std::string text_attribute(const std::string& name, const std::string& type, const std::string& data,
                           unsigned version = 3, unsigned flags = 0) {
  return hdf5_message(MessageKind::attribute, octet(version) + octet(flags) + le16(name.size() + 1) +
                                                  le16(type.size()) + le16(4) + octet(0) + name + "\0"s +
                                                  type + "\2\0\0\0"s + data);
}

/// A file without datasets whose root has these messages; a global heap is its first structure.
std::string file_of_root(const std::string& messages, const std::string& heap = "") {
  Hdf5File file;
  file.add(heap);
  return file.file(file.object(messages));
}

/// A global heap with one object, whose number is 1.
std::string global_heap(const std::string& object, const std::string& magic = "GCOL") {
  std::string body = le16(1) + le16(1) + le32(0) + le64(object.size()) + object;
  body.resize((body.size() + 7) / 8 * 8, '\0');
  return magic + le32(1) + le64(16 + body.size() + 16) + body + std::string(16, '\0');
}

TEST(Hdf5Hostile, KeepsTextAttributesOfTheRoot) {
  const std::string in_heap = le32(5) + le64(Hdf5File::begin) + le32(1);
  const std::string messages =
      text_attribute("model_config", variable_text, le32(0) + le64(hdf5_nowhere) + le32(0)) +
      text_attribute("keras_version", octet(0x10) + std::string(11, '\0'), le32(3)) +
      text_attribute("keras_version", variable_text, in_heap) +
      text_attribute("backend", fixed_text, "x", 3, 1) +  // its type is elsewhere
      text_attribute("backend", fixed_text, "tensorflow\0\0"s);
  const std::map<std::string, std::string, std::less<>> expected = {{"keras_version", "3.5.0"},
                                                                    {"backend", "tensorflow"}};
  EXPECT_EQ(test::open_hdf5(file_of_root(messages, global_heap("3.5.0"))).metadata(), expected);
}

TEST(Hdf5Hostile, KeepsTextAttributesOfTheGroupsOfKeras) {
  Hdf5File file;
  const std::string name = text_attribute("name", fixed_text, "dense_1\0\0\0\0\0"s);
  const std::uint64_t vars = file.object(name);
  const std::uint64_t layer = file.object(test::hdf5_link("vars", vars));
  const std::uint64_t own_vars = file.object(name);
  const std::uint64_t other = file.object(name);
  const std::uint64_t weights = file.object(text_attribute("backend", fixed_text, "jax\0\0\0\0\0\0\0\0\0"s));
  const std::string bytes =
      file.file(file.object(test::hdf5_link("dense", layer) + test::hdf5_link("vars", own_vars) +
                            test::hdf5_link("other", other) + test::hdf5_link("model_weights", weights)));
  const std::map<std::string, std::string, std::less<>> expected = {
      {"backend", "jax"}, {"dense/vars@name", "dense_1"}, {"vars@name", "dense_1"}};
  EXPECT_EQ(test::open_hdf5(bytes).metadata(), expected);
}

TEST(Hdf5Hostile, RefusesAttributesThatAreNotSound) {
  const auto in_heap = [](std::uint64_t length, std::uint64_t heap, std::uint64_t object) {
    return text_attribute("backend", variable_text, le32(length) + le64(heap) + le32(object));
  };
  const std::uint64_t at = Hdf5File::begin;
  const std::string heap = global_heap("jax");
  std::string small = heap;
  small[8] = '\17';
  expect_hdf5_refusals(
      {{file_of_root(text_attribute("backend", fixed_text, "", 0)), ErrorCode::Unsupported,
        "has an attribute of version 0, expected 1 to 3"},
       {file_of_root(text_attribute("backend", fixed_text, "", 4)), ErrorCode::Unsupported,
        "has an attribute of version 4, expected 1 to 3"},
       {file_of_root(text_attribute("backend", fixed_text, "short")), ErrorCode::Format,
        "an attribute's value is truncated: 12 bytes are needed, 5 are left"},
       {file_of_root(in_heap(3, at, 1), global_heap("jax", "gcol")), ErrorCode::Format,
        "has no global heap at byte 96"},
       {file_of_root(in_heap(3, at, 1), small), ErrorCode::Format, "has no global heap at byte 96"},
       {file_of_root(in_heap(3, at, 2), heap), ErrorCode::Format,
        "has no object 2 in the global heap at byte 96"},
       {file_of_root(in_heap(4, at, 1), heap), ErrorCode::Format,
        "has an attribute that is longer than its heap's object"},
       {file_of_root(in_heap(3, std::uint64_t{1} << 40U, 1)), ErrorCode::Format,
        "a global heap at byte 1099511627776 extends beyond the file, which has " +
            std::to_string(file_of_root(in_heap(3, at, 1)).size())}});
}

}  // namespace
}  // namespace normscope::checkpoint
