#include <span>
#include <vector>

#include <normscope/core/error.hpp>
#include <normscope/files/zip.hpp>

#include "files/npy.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    for (const files::ZipMember& member : files::read_zip_directory(bytes, "fuzz")) {
      try {
        const files::NpyHeader header = files::read_npz_header(bytes, member, "fuzz");
        const std::vector<std::byte> elements = files::read_npz_data(bytes, member, "fuzz");
        std::vector<std::byte> buffer;
        fuzz_require(files::npy_elements(header, elements, buffer).size() == header.data_bytes());
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string npy =
      "\x93NUMPY\1\0\x3b\0{'descr': '|u1', 'fortran_order': False, 'shape': (2,), } \n\1\2"s;
  const std::string name = "a.npy";
  const std::string sizes = "\x47\0\0\0\x47\0\0\0\5\0"s;
  const std::string crc = "\xcd\xff\x35\x3f"s;
  const std::string local = "PK\3\4\x14\0\0\0\0\0\0\0\0\0"s + crc + sizes + "\0\0"s + name + npy;
  const std::string entry =
      "PK\1\2\x14\0\x14\0\0\0\0\0\0\0\0\0"s + crc + sizes + std::string(16, '\0') + name;
  const std::string stored = local + entry + "PK\5\6\0\0\0\0\1\0\1\0\x33\0\0\0\x6a\0\0\0\0\0"s;
  // numpy.savez_compressed(f, b=numpy.arange(3)), without the member's other fields
  const std::string deflated =
      "PK\3\4\x14\0\0\0\x08\0\0\0\x21\0\xf7\x40\x12\xea\x4c\0\0\0\x98\0\0\0\5\0\0\0b.npy"
      "\x9b\xec\x17\xea\x1b\x10\xc9\xc8\x50\xc6\x50\xad\x9e\x92\x5a\x9c\x5c\xa4\x6e\xa5\xa0\x6e\x93\x69\xa1"
      "\xae"
      "\xa3\xa0\x9e\x96\x5f\x54\x52\x94\x98\x17\x9f\x5f\x94\x92\x0a\x12\x77\x4b\xcc\x29\x4e\x05\x8a\x17\x67"
      "\x24"
      "\x16\xa4\x02\xf9\x1a\xc6\x3a\x9a\x3a\x0a\xb5\x0a\x14\x00\x2e\x06\x28\x60\x84\xd2\x4c\x50\x1a\x00"
      "PK\1\2\x14\3\x14\0\0\0\x08\0\0\0\x21\0\xf7\x40\x12\xea\x4c\0\0\0\x98\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\x80"
      "\1"
      "\0\0\0\0b.npyPK\5\6\0\0\0\0\1\0\1\0\x33\0\0\0\x6f\0\0\0\0\0"s;
  return {stored, deflated};
}
