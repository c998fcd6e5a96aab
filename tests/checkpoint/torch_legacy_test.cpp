#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/checkpoint/opened_array.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/torch_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::checkpoint {
namespace {

using test::counting;
using test::legacy_torch_file;
using test::Pickle;

/// {"a": the first two of storage 0, "b": a column of storage 1}
Pickle two_tensors() {
  Pickle pickle;
  pickle.op("}(").text("a").tensor("0", 2, 0, {2}, {1});
  return pickle.text("b").tensor("1", 6, 1, {2}, {3}).op("u");
}

std::string legacy_complaint(ErrorCode code, const std::string& file) {
  const test::Scratch scratch;
  test::put(scratch / "m.pt", file);
  const std::string message = test::error_of(code, [&] { const Checkpoint checkpoint(scratch / "m.pt"); });
  const std::string prefix = "pytorch: " + (scratch / "m.pt").string() + ": ";
  return message.rfind(prefix, 0) == 0 ? message.substr(prefix.size()) : message;
}

TEST(LegacyTorch, ReadsAStateDict) {
  const test::Scratch scratch;
  test::put(scratch / "pytorch_model.bin",
            legacy_torch_file(two_tensors().stop(), {counting(2), counting(6)}));
  test::put(scratch / "config.json", "{}");
  for (const bytes::OpenSource& open :
       {bytes::OpenSource(bytes::map_file), bytes::OpenSource(bytes::read_file)}) {
    const Checkpoint checkpoint(scratch.folder(), open);
    EXPECT_EQ(checkpoint.format(), "pytorch");
    EXPECT_EQ(checkpoint.config_text(), "{}");
    EXPECT_EQ(read(*checkpoint.find("a")), (std::vector<double>{1, 2}));
    EXPECT_EQ(read(*checkpoint.find("b")), (std::vector<double>{2, 5}));
  }
  EXPECT_EQ(read_array((scratch / "pytorch_model.bin").string() + ":b").values, (std::vector<double>{2, 5}));
}

TEST(LegacyTorch, ReadsTheMemberThatIsNamed) {
  const test::Scratch scratch;
  Pickle pickle;
  for (const char* name : {"model", "ema"}) {
    if (std::string(name) == "model") pickle.op("}(");
    pickle.text(name).op("}").text("a").tensor(name[0] == 'm' ? "0" : "1", 1, 0, {1}, {1}).op("s");
  }
  test::put(scratch / "m.pth", legacy_torch_file(pickle.op("u").stop(), {counting(1), test::le(7.0F)}));
  const std::string path = (scratch / "m.pth").string();
  EXPECT_EQ(read(*Checkpoint(path + ":ema").find("a")), std::vector<double>{7});
  EXPECT_EQ(read_array(path + ":ema:a").values, std::vector<double>{7});
}

TEST(LegacyTorch, RejectsBrokenFiles) {
  const std::string whole = legacy_torch_file(two_tensors().stop(), {counting(2), counting(6)});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const test::Scratch scratch;
    test::put(scratch / "m.pt", whole.substr(0, size));
    EXPECT_THROW(Checkpoint(scratch / "m.pt"), Error) << size;
  }
  EXPECT_EQ(legacy_complaint(ErrorCode::Unsupported, "\x80\x02}."),
            "does not begin as the files of torch.save do");
  EXPECT_EQ(legacy_complaint(ErrorCode::Unsupported, ""), "does not begin as the files of torch.save do");
  EXPECT_EQ(legacy_complaint(ErrorCode::Unsupported,
                             legacy_torch_file(two_tensors().stop(), {counting(2), counting(6)}, false)),
            "was written by a big-endian machine, expected little-endian");
  EXPECT_EQ(legacy_complaint(ErrorCode::Format, legacy_torch_file(two_tensors().stop(), {counting(3)})),
            "storage \"0\" has 3 elements, expected 2");
  EXPECT_EQ(legacy_complaint(ErrorCode::Format, legacy_torch_file(two_tensors().stop(), {counting(2)})),
            "tensor \"b\" is in storage \"1\", which is missing");
  EXPECT_EQ(legacy_complaint(ErrorCode::Format, whole.substr(0, whole.size() - 4)),
            "storage \"1\" needs 24 bytes, 20 are left");
  EXPECT_EQ(legacy_complaint(ErrorCode::Format, legacy_torch_file(two_tensors().stop(),
                                                                  {counting(2), counting(6), counting(1)})),
            "lists storage \"2\", which no tensor has");
}

TEST(LegacyTorch, RunsNoCode) {
  const Pickle evil = Pickle().global("posix", "system").text("echo").op("\x85R");
  EXPECT_NE(legacy_complaint(ErrorCode::Unsupported, legacy_torch_file(evil.stop(), {}))
                .find("refused: names \"posix.system\""),
            std::string::npos);
}

}  // namespace
}  // namespace normscope::checkpoint
