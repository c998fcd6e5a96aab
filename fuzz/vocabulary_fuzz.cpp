#include <normscope/core/error.hpp>

#include "fuzz_target.hpp"
#include "models/token_names_parse.hpp"

using namespace normscope;

namespace {

constexpr std::size_t tokens = 6;

/// Reads the same bytes under each file name that a vocabulary can have.
void read_as(const char* file, std::string_view text) {
  try {
    const std::vector<std::string> names = models::parse_token_names(text, file, tokens);
    fuzz_require(names.size() == tokens);
    std::size_t bytes = 0;
    for (const std::string& name : names) bytes += name.size();
    fuzz_require(bytes <= text.size());
  } catch (const Error& error) {
    fuzz_require(error.code() == ErrorCode::Format);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* file : {"fuzz.json", "fuzz.txt", "fuzz.bin"}) read_as(file, text);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string tokenizer =
      R"({"version":"1.0","added_tokens":[{"id":0,"content":"[UNK]","special":true},{"content":"<s>","id":3}],)"
      R"("model":{"type":"BPE","vocab":{"a":1,"b":2},"merges":[["a","b"]]}})";
  return {
      R"({"a":0,"b\u00e9":1,"c":5,"far":4000000000})",
      tokenizer,
      R"({"added_tokens":[],"model":{"vocab":[["a",-1.5],["b",0.0],["",-2e3]]}})",
      "[PAD]\n\xc3\xa9\r\n\nthe\n##s",
      "\3\0\0\0"s + "\0\0\x80\x3f\3\0\0\0abc"s + "\0\0\0\0\0\0\0\0"s + "\0\0\x80\xbf\1\0\0\0 "s,
  };
}
