#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include <normscope/core/error.hpp>

#include "files/readers.hpp"
#include "fuzz_target.hpp"

using namespace normscope;

namespace {

template <typename Number>
std::string le(std::size_t value) {
  const auto number = static_cast<Number>(value);
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

/// The archive of a pickle and one storage of two floats.
std::string archive(const std::string& pickle) {
  using namespace std::string_literals;
  std::string file;
  std::string directory;
  for (const auto& [name, content] :
       {std::pair("m/data.pkl"s, pickle), std::pair("m/data/0"s, "12345678"s)}) {
    const std::string sizes = le<std::uint32_t>(crc32(content)) + le<std::uint32_t>(content.size()) +
                              le<std::uint32_t>(content.size()) +
                              le<std::uint32_t>(name.size());  // and no extra field
    const std::string fields = std::string(8, '\0') + sizes;
    directory += "PK\1\2\0\0\0\0"s + fields + std::string(10, '\0') + le<std::uint32_t>(file.size()) + name;
    file += "PK\3\4\0\0"s + fields + name + content;
  }
  return file + directory + "PK\5\6\0\0\0\0\2\0\2\0"s + le<std::uint32_t>(directory.size()) +
         le<std::uint32_t>(file.size()) + "\0\0"s;
}

template <typename Stored>
using ParseTorch = files::ParsedFile (*)(Stored, const std::string&, std::string_view);

/// Whether the bytes are a valid archive or a valid file of another format.
template <typename Stored = const files::StoredBytes&>
bool check_archive(std::span<const std::byte> bytes, ParseTorch<Stored> parse = files::parse_torch_zip) {
  try {
    const files::ParsedFile file = parse(bytes, "fuzz", {});
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const files::Tensor& tensor = file.tensors[i];
      fuzz_require(i == 0 || file.tensors[i - 1].name < tensor.name);
      if (tensor.blocks != nullptr) continue;  // of a kind that is not read
      fuzz_require(tensor.elements() * bits(tensor.dtype) == tensor.bytes.size() * 8);
      if (is_decodable(tensor.dtype)) fuzz_require(read(tensor).size() == tensor.elements());
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_archive(std::as_bytes(std::span(data, size)));
  check_archive(std::as_bytes(std::span(data, size)), files::parse_torch_legacy);
  // An archive around the bytes lets changed pickles pass their CRC.
  const std::string around = archive({reinterpret_cast<const char*>(data), size});
  check_archive(std::as_bytes(std::span(around)));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string id = "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\2tQ"s;
  const std::string rebuild = "ctorch._utils\n_rebuild_tensor_v2\n(" + id;
  const std::string vector = rebuild + "K\0K\2\x85K\1\x85\x89}tR"s;
  const std::string transposed = rebuild + "K\0K\1K\2\x86K\1K\1\x86\x89}tR"s;
  const std::string repeated = rebuild + "K\1K\3\x85K\0\x85\x89}tR"s;
  const std::string plain = "\x80\2ccollections\nOrderedDict\n)Rq\0(X\1\0\0\0a"s + vector + "X\1\0\0\0b"s +
                            transposed + "h\0X\1\0\0\0cu}X\1\0\0\0_Nsb."s;
  const std::string wrapped = "\x80\4\x95\0\0\0\0\0\0\0\0}\x94\x8c\5model}(\x8c\1x"s + repeated +
                              "\x8c\1y](J\1\2\3\4M\1\2\x8a\2\1\2e\x8c\1zNus."s;
  for (const std::string& pickle : {plain, wrapped}) {
    const std::string sound = archive(pickle);
    fuzz_require(check_archive(std::as_bytes(std::span(sound))));
  }
  const std::string legacy = "\x80\2\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\2M\xe9\3.\x80\2}."s +
                             plain + "\x80\2]X\1\0\0\0000a."s + le<std::uint64_t>(2) + "12345678"s;
  fuzz_require(check_archive(std::as_bytes(std::span(legacy)), files::parse_torch_legacy));
  const std::string script = "\x80\2c__torch__.n\nNet\n)\x81}(X\1\0\0\0ac__torch__\nN\n)\x81}X\1\0\0\0b"s +
                             vector + "sbX\1\0\0\0c"s + repeated + "ub."s;
  const std::string scripted = archive(script);
  fuzz_require(check_archive(std::as_bytes(std::span(scripted))));
  const std::string key = "X\1\0\0\0"s;
  const std::string objects =
      "\x80\4}("s + key + "acargparse\nNamespace\n)\x81}"s + key + "bC\1xsb"s + key + "b\x8f(K\1\x90"s + key +
      "cctorch._utils\n_rebuild_qtensor\n("s + id + "K\0K\1\x85K\1\x85N\x89}tR"s + key +
      "dctorch._utils\n_rebuild_sparse_tensor\n(N(NNK\1\x85ttR"s + key +
      "ectorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\ncmine\nT\n("s + id +
      "K\0K\2\x85K\1\x85\x89}t}tR"s + key + "fccollections\nOrderedDict\n](](K\1K\2ee\x85R"s + key +
      "g(K\1imine\nU\n"s + key + "hcmine\nV\n)}\x92"s + key + "i"s + vector + "u."s;
  const std::string passed = archive(objects);
  fuzz_require(check_archive(std::as_bytes(std::span(passed))));
  return {plain, wrapped, archive(plain), legacy, script, objects};
}
