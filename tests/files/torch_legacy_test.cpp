#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>

#include "files/torch_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
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
  for (const files::OpenSource& open :
       {files::OpenSource(files::map_file), files::OpenSource(files::read_file)}) {
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

/// The pickles of a file, and what follows them; those before the state dict are as they should be.
struct LegacyPickles {
  std::string version = Pickle().integer(1001).stop();
  std::string machine = Pickle().op("}").stop();
  std::string object = two_tensors().stop();
  std::string keys = Pickle().op("]").stop();
  std::string rest;

  [[nodiscard]] std::string file() const {
    const std::string magic("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
    return magic + version + machine + object + keys + rest;
  }
};

// torch.save's argument pickle_protocol is that of every pickle in the file.
TEST(LegacyTorch, BeginsWithAnyProtocol) {
  const std::string number("\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);
  LegacyPickles pickles;
  pickles.object = Pickle().op("}").text("a").tensor("0", 1, 0, {1}, {1}).op("s").stop();
  pickles.keys = Pickle().op("]").text("0").op("a").stop();
  pickles.rest = test::le(std::uint64_t{1}) + test::le(2.5F);
  const std::string rest = pickles.file().substr(15);
  const std::string frame = "\x95" + test::le(std::uint64_t{13});
  for (const std::string& begin :
       {"\x80\x03" + number, "\x80\x04" + frame + number, "\x80\x05" + frame + number}) {
    const test::Scratch scratch;
    test::put(scratch / "m.pt", begin + rest);
    EXPECT_EQ(read(*Checkpoint(scratch / "m.pt").find("a")), std::vector<double>{2.5});
  }
}

TEST(LegacyTorch, RejectsOtherPickles) {
  const auto refused = [](ErrorCode code, auto change) {
    LegacyPickles pickles;
    change(pickles);
    return legacy_complaint(code, pickles.file());
  };
  for (const Pickle& other : {Pickle().integer(1002), Pickle().text("1001")}) {
    EXPECT_EQ(refused(ErrorCode::Unsupported, [&](auto& pickles) { pickles.version = other.stop(); }),
              "has another version than 1001");
  }
  EXPECT_EQ(refused(ErrorCode::Format, [](auto& pickles) { pickles.machine = Pickle().op("]").stop(); }),
            "its third pickle is not a dict");
  EXPECT_EQ(refused(ErrorCode::Unsupported,
                    [](auto& pickles) {
                      pickles.machine = Pickle().op("}").text("little_endian").integer(1).op("s").stop();
                    }),
            "was written by a big-endian machine, expected little-endian");
  EXPECT_EQ(refused(ErrorCode::Format, [](auto& pickles) { pickles.keys = Pickle().op("}").stop(); }),
            "its fifth pickle is not a list");
  EXPECT_EQ(refused(ErrorCode::Format,
                    [](auto& pickles) { pickles.keys = Pickle().op("]").integer(0).op("a").stop(); }),
            "lists storage \"\", which no tensor has");
  EXPECT_EQ(refused(ErrorCode::Format,
                    [](auto& pickles) {
                      pickles.keys = Pickle().op("]").text("0").op("a").text("0").op("a").stop();
                      pickles.rest =
                          test::le(std::uint64_t{2}) + counting(2) + test::le(std::uint64_t{2}) + counting(2);
                    }),
            "lists storage \"0\" twice");
}

/// {"a": one element of a storage of that type and length}, whose id ends with `rest`.
Pickle of_storage(const std::string& module, const std::string& type, const std::string& length,
                  const std::string& rest = "") {
  Pickle pickle = Pickle().op("}").text("a").global("torch._utils", "_rebuild_tensor_v3").op("((");
  pickle.text("storage").global(module, type).text("0").text("cpu").op(length).op(rest).op("tQ");
  pickle.integer(0).integers({1}).integers({1}).op("\x89}").global("torch", "float32");
  return pickle.op("tRs");
}

TEST(LegacyTorch, ReadsTheSizesOfStorages) {
  LegacyPickles pickles;
  pickles.keys = Pickle().op("]").text("0").op("a").stop();
  pickles.machine = Pickle().op("}").text("protocol_version").integer(1).op("s").stop();
  // Elements of an untyped storage are bytes.
  pickles.object = of_storage("torch.storage", "UntypedStorage", "K\4", "N").stop();
  pickles.rest = test::le(std::uint64_t{4}) + test::le(2.5F);
  const test::Scratch scratch;
  test::put(scratch / "m.pt", pickles.file());
  EXPECT_EQ(read(*Checkpoint(scratch / "m.pt").find("a")), std::vector<double>{2.5});

  const std::uint64_t huge = std::uint64_t{1} << 62U;
  pickles.object = of_storage("torch", "FloatStorage", "\x8a\x08" + test::le(huge)).stop();
  pickles.rest = test::le(huge);
  EXPECT_EQ(legacy_complaint(ErrorCode::Format, pickles.file()),
            "storage \"0\" needs 18446744073709551615 bytes, 0 are left");
  // An id that ends with the part of another storage, as before PyTorch 0.4.
  pickles.object = of_storage("torch", "FloatStorage", "K\1", ")").stop();
  EXPECT_EQ(legacy_complaint(ErrorCode::Unsupported, pickles.file()),
            "storage \"0\" is a part of another, as before PyTorch 0.4");
}

TEST(LegacyTorch, RunsNoCode) {
  const Pickle evil = Pickle().global("posix", "system").text("echo").op("\x85R");
  EXPECT_EQ(legacy_complaint(ErrorCode::Unsupported, legacy_torch_file(evil.stop(), {})),
            "holds \"posix.system\", expected a state dict");
}

// Elements of types that are not read lie between those that are.
TEST(LegacyTorch, PassesOverStoragesOfOtherTypes) {
  LegacyPickles pickles;
  Pickle object = Pickle().op("}(").text("c").global("torch._utils", "_rebuild_tensor_v2").op("(");
  object.storage("ComplexDoubleStorage", "0", 1).integer(0).integers({1}).integers({1}).op("\x89}tR");
  pickles.object = object.text("a").tensor("1", 1, 0, {1}, {1}).op("u").stop();
  pickles.keys = Pickle().op("](").text("0").text("1").op("e").stop();
  pickles.rest =
      test::le(std::uint64_t{1}) + std::string(16, 'z') + test::le(std::uint64_t{1}) + test::le(2.5F);
  const test::Scratch scratch;
  test::put(scratch / "m.pt", pickles.file());
  const Checkpoint checkpoint(scratch / "m.pt");
  EXPECT_EQ(read(*checkpoint.find("a")), std::vector<double>{2.5});
  EXPECT_EQ(checkpoint.find("c")->stored_type(), "C128");
}

}  // namespace
}  // namespace normscope::files
