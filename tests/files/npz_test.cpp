#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>
#include <normscope/files/zip.hpp>

#include "files/zip_files.hpp"
#include "support/data.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

using namespace std::string_literals;
using Shape = std::vector<std::uint64_t>;
using Values = std::vector<double>;
using test::le;
using test::zip;
using test::ZipEntry;

// numpy.savez_compressed(f, a=numpy.array([[1, 2], [3, 4.5]], 'f4'), b=numpy.arange(3))
constexpr const char* compressed_by_numpy =
    "504b0304140000000800000021001fe9e23f530000009000000005001400612e6e7079010010009000000000000000530000"
    "00000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc"
    "294e058a17672416a402f91a463a0a469a3a0ab50a64032e0686067b060606072002e2090e00504b03041400000008000000"
    "2100f74012ea4c0000009800000005001400622e6e70790100100098000000000000004c000000000000009bec17ea1b10c9"
    "c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a"
    "c63a9a3a0ab50a14002e06286084d24c501a00504b01021403140000000800000021001fe9e23f5300000090000000050000"
    "000000000000000000800100000000612e6e7079504b0102140314000000080000002100f74012ea4c000000980000000500"
    "0000000000000000000080018a000000622e6e7079504b05060000000002000200660000000d0100000000";

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string npy_of_bytes(const std::string& data, std::uint64_t claimed) {
  const std::string header =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(claimed) + ",), }\n";
  return "\x93NUMPY\1\0"s + static_cast<char>(header.size()) + '\0' + header + data;
}

std::string npy_of_bytes(const std::string& data) { return npy_of_bytes(data, data.size()); }

class Npz : public testing::Test {
 protected:
  Array read(const std::string& file, const std::string& name = "a") const {
    test::put(path_, file);
    const auto mapped = std::make_shared<const MappedFile>(path_);
    const std::string where = "npz: " + path_.string();
    const std::vector<ZipMember> members = read_zip_directory(mapped->bytes(), where);
    const ZipMember* member = find_npz_member(members, name);
    if (member == nullptr) throw Error(ErrorCode::Argument, where + ": no member " + name);
    return files::read(open_npz_member(mapped, *member, where));
  }
  std::string complaint(const std::string& file, ErrorCode code = ErrorCode::Format) const {
    const std::string message = test::error_of(code, [&] { (void)read(file); });
    const std::string prefix = "npz: " + path_.string() + ": ";
    return message.rfind(prefix, 0) == 0 ? message.substr(prefix.size()) : message;
  }

  test::Scratch scratch_;
  std::filesystem::path path_ = scratch_ / "x.npz";
};

TEST_F(Npz, ReadsWhatNumPyCompresses) {
  const Array a = read(from_hex(compressed_by_numpy), "a");
  EXPECT_EQ(a.shape, (Shape{2, 2}));
  EXPECT_EQ(a.dtype, Dtype::F32);
  EXPECT_EQ(a.values, (Values{1, 2, 3, 4.5}));
  EXPECT_EQ(read(from_hex(compressed_by_numpy), "b.npy").values, (Values{0, 1, 2}));
}

TEST_F(Npz, ReadsStoredAndDeflatedMembers) {
  const std::string npy = npy_of_bytes("\1\2\3");
  EXPECT_EQ(read(zip({ZipEntry(npy)})).values, (Values{1, 2, 3}));
  EXPECT_EQ(read(zip({ZipEntry(npy).deflated()}, "a comment PK\5\6")).values, (Values{1, 2, 3}));
  EXPECT_EQ(read(zip({ZipEntry(npy_of_bytes(""))})).values, Values{});
}

TEST_F(Npz, PrefersTheExactName) {
  const std::string file = zip({ZipEntry(npy_of_bytes("\1"), "a.npy"), ZipEntry(npy_of_bytes("\2"), "a")});
  EXPECT_EQ(read(file, "a").values, Values{2});
  EXPECT_EQ(read(file, "a.npy").values, Values{1});
}

TEST_F(Npz, ReadsZip64Sizes) {
  ZipEntry member(npy_of_bytes("\7"));
  member.extra =
      "\x99\0\1\0x\1\0\x10\0"s + le(std::uint64_t{member.size}) + le(std::uint64_t{member.packed_size});
  member.size = member.packed_size = 0xffffffff;
  EXPECT_EQ(read(zip({member})).values, Values{7});
  member.extra.resize(member.extra.size() - 8);
  member.extra[7] = 8;
  EXPECT_EQ(complaint(zip({member})), "zip: zip64 field is truncated");
}

TEST_F(Npz, ReadsAZip64Directory) {
  const std::string plain = zip({ZipEntry(npy_of_bytes("\7"))});
  const std::string body = plain.substr(0, plain.size() - 22);
  const std::uint64_t begin = body.find("PK\1\2");
  const std::string end64 = "PK\6\6"s + le(std::uint64_t{44}) + std::string(12, '\0') + le(std::uint64_t{1}) +
                            le(std::uint64_t{1}) + le(std::uint64_t{body.size() - begin}) + le(begin);
  const std::string locator = "PK\6\7\0\0\0\0"s + le(std::uint64_t{body.size()}) + "\1\0\0\0"s;
  const std::string end = "PK\5\6"s + std::string(4, '\0') + std::string(12, '\xff') + "\0\0"s;
  EXPECT_EQ(read(body + end64 + locator + end).values, Values{7});
}

TEST_F(Npz, RejectsBombsBeforeAllocating) {
  ZipEntry lies(npy_of_bytes("\1\2\3", std::uint64_t{1} << 60));
  EXPECT_EQ(complaint(zip({lies.deflated()})),
            "member \"a.npy\": has 3 bytes of data, expected 1152921504606846976 for "
            "1152921504606846976 elements of U8");
  ZipEntry huge(npy_of_bytes("\1\2\3", 4'000'000'000u - 64));
  huge.deflated().size = 4'000'000'000u;
  EXPECT_EQ(complaint(zip({huge})), "zip: member \"a.npy\": states 4000000000 bytes uncompressed from " +
                                        std::to_string(huge.packed_size) +
                                        ", more than deflate can compress");
}

TEST_F(Npz, UnpacksNoMoreThanTheStatedBound) {
  std::string noise(400'000, '\0');
  Random random(1);
  for (char& c : noise) c = static_cast<char>(random.bits());
  ZipEntry bomb(npy_of_bytes(noise, 300'000'000u));
  const std::uint64_t header = bomb.size - noise.size();
  bomb.deflated().size = 300'000'000u + static_cast<std::uint32_t>(header);
  EXPECT_EQ(complaint(zip({bomb}), ErrorCode::Unsupported),
            "member \"a.npy\": unpacks to 300000000 bytes from " + std::to_string(bomb.packed_size) +
                ", more than the 268435456 that are unpacked; store it uncompressed");
}

TEST_F(Npz, RejectsBrokenMembers) {
  const std::string npy = npy_of_bytes("\1\2\3");
  ZipEntry wrong_crc(npy);
  wrong_crc.crc ^= 1;
  EXPECT_NE(complaint(zip({wrong_crc})).find("CRC-32 is"), std::string::npos);
  ZipEntry garbage(npy);
  garbage.deflated().packed[0] = '\7';
  EXPECT_EQ(complaint(zip({garbage})), "zip: member \"a.npy\": compressed data is corrupt or truncated");
  ZipEntry cut(npy);
  cut.deflated().packed_size -= 4;
  EXPECT_EQ(complaint(zip({cut})), "zip: member \"a.npy\": compressed data is corrupt or truncated");
  ZipEntry size(npy);
  size.size += 1;
  EXPECT_EQ(complaint(zip({size})), "zip: member \"a.npy\": is stored in " + std::to_string(npy.size()) +
                                        " bytes, its size is " + std::to_string(npy.size() + 1));
  ZipEntry padded(npy + "x");
  EXPECT_EQ(complaint(zip({padded})),
            "member \"a.npy\": has 4 bytes of data, expected 3 for 3 elements of U8");
  EXPECT_EQ(complaint(zip({ZipEntry("short")})),
            "member \"a.npy\": does not begin with the magic of a .npy file");
  EXPECT_EQ(complaint(zip({ZipEntry("\x93NUMPY\1\0\xff\0{}"s)})),
            "member \"a.npy\": header ends at byte 265, member has 12");
}

TEST_F(Npz, RejectsMembersItCannotUnpack) {
  ZipEntry encrypted(npy_of_bytes("\1"));
  encrypted.flags = 1;
  EXPECT_EQ(complaint(zip({encrypted}), ErrorCode::Unsupported), "zip: member \"a.npy\": is encrypted");
  ZipEntry lzma(npy_of_bytes("\1"));
  lzma.method = 14;
  EXPECT_EQ(complaint(zip({lzma}), ErrorCode::Unsupported),
            "zip: member \"a.npy\": compression method is 14, expected stored (0) or deflated (8)");
}

TEST_F(Npz, RejectsOffsetsOutsideTheFile) {
  ZipEntry member(npy_of_bytes("\1"));
  EXPECT_EQ(complaint(zip({member}, "", 1'000'000)).substr(0, 22), "zip: directory at byte");
  EXPECT_EQ(complaint(zip({member}, "", 1)), "zip: directory has no entry where one was expected");
  member.offset_error = 1;
  EXPECT_EQ(complaint(zip({member})), "zip: member \"a.npy\" has no local header");
  member.offset_error = 0x7fffffff;
  EXPECT_EQ(complaint(zip({member})).substr(0, 36), "zip: local header of \"a.npy\" at byte");
  member.offset_error = 0;
  member.size = member.packed_size = 1'000'000;
  EXPECT_EQ(complaint(zip({member})).substr(0, 12), "zip: data at");
}

TEST_F(Npz, RejectsNamesThatComeTwice) {
  EXPECT_EQ(complaint(zip({ZipEntry(npy_of_bytes("\1")), ZipEntry(npy_of_bytes("\2"))})),
            "zip: member \"a.npy\" appears twice");
}

TEST_F(Npz, RejectsEveryCut) {
  const std::string file = from_hex(compressed_by_numpy);
  for (std::size_t size = 4; size < file.size(); ++size) complaint(file.substr(0, size));
}

// arrays_*.npz are of numpy.savez and savez_compressed; arrays.safetensors has the same arrays, in row-major
// order.
std::filesystem::path fixture_file(const std::string& name) {
  return std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "tests" / "files" / "fixtures" / name;
}

std::string fixture_bytes(const std::string& name) {
  std::ifstream file(fixture_file(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file in memory.
class MemoryFile : public files::Source {
 public:
  explicit MemoryFile(const std::string& bytes) : bytes_(bytes) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] std::optional<std::span<const std::byte>> memory() const override {
    return test::as_bytes(bytes_);
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::string bytes_;
};

/// Expects the tensors of `expected`, bit for bit, also where parts of them are read.
void expect_same_tensors(const Checkpoint& found, const Checkpoint& expected) {
  ASSERT_EQ(found.tensors().size(), expected.tensors().size());
  for (std::size_t i = 0; i < expected.tensors().size(); ++i) {
    const Tensor& tensor = found.tensors()[i];
    const Tensor& same = expected.tensors()[i];
    ASSERT_EQ(tensor.name, same.name);
    SCOPED_TRACE(std::string(tensor.name));
    EXPECT_EQ(to_string(tensor.dtype), to_string(same.dtype));
    EXPECT_EQ(std::vector<std::uint64_t>(tensor.shape.begin(), tensor.shape.end()),
              std::vector<std::uint64_t>(same.shape.begin(), same.shape.end()));
    EXPECT_TRUE(files::equal(tensor.bytes, same.bytes));
    EXPECT_EQ(read(tensor), read(same));
    for (std::uint64_t begin = 0; begin < tensor.elements(); begin += 5) {
      const std::uint64_t count = std::min<std::uint64_t>(7, tensor.elements() - begin);
      EXPECT_EQ(read(tensor, begin, count), read(same, begin, count)) << begin;
    }
  }
}

class NpzFixtures : public testing::TestWithParam<const char*> {};

TEST_P(NpzFixtures, HoldWhatNumpyWrote) {
  const Checkpoint checkpoint(fixture_file(GetParam()));
  EXPECT_EQ(checkpoint.format(), "npz");
  expect_same_tensors(checkpoint, Checkpoint(fixture_file("arrays.safetensors")));
}

TEST_P(NpzFixtures, RefuseEveryTruncation) {
  const std::string good = fixture_bytes(GetParam());
  for (std::size_t size = 4; size < good.size(); ++size) {
    test::error_of(ErrorCode::Format, [&] {
      (void)Checkpoint("m.npz",
                       [&](const auto&) { return std::make_unique<MemoryFile>(good.substr(0, size)); });
    });
  }
}
INSTANTIATE_TEST_SUITE_P(Npz, NpzFixtures, testing::Values("arrays_stored.npz", "arrays_deflated.npz"));

TEST(NpzCheckpoint, RefusesDamageOfCompressedElementsWhenTheyAreRead) {
  std::string bytes = fixture_bytes("arrays_deflated.npz");
  const std::size_t at = bytes.find("fortran.npy") + 200;
  bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
  const Checkpoint checkpoint("m.npz", [&](const auto&) { return std::make_unique<MemoryFile>(bytes); });
  EXPECT_NE(test::error_of(ErrorCode::Format, [&] { (void)read(*checkpoint.find("fortran")); })
                .find("\"fortran.npy\""),
            std::string::npos);
  EXPECT_EQ(read(*checkpoint.find("c")).size(), 35u);
}

TEST(NpzCheckpoint, ReadsSingleBytesThatAreSaidToBeBigEndian) {
  const std::string array =
      "\x93NUMPY\1\0\x3b\0{'descr': '>u1', 'fortran_order': False, 'shape': (2,), } \n\1\2"s;
  const std::string file = test::zip({test::ZipEntry(array, "a.npy")});
  const Checkpoint checkpoint("m.npz", [&](const auto&) { return std::make_unique<MemoryFile>(file); });
  EXPECT_EQ(read(*checkpoint.find("a")), (std::vector<double>{1, 2}));
}

TEST(NpzCheckpoint, HasNoMembersThatAreStateDicts) {
  const test::Scratch scratch;
  test::put(scratch / "m.npz", fixture_bytes("arrays_stored.npz"));
  const std::string path = (scratch / "m.npz").string();
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { const Checkpoint checkpoint(path + ":model"); }),
            "checkpoint: " + path +
                ": is NumPy array, expected a PyTorch file, whose members have names; found \"model\"");
}

}  // namespace

}  // namespace normscope::files
