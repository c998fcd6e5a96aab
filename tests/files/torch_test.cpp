#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>

#include "files/test_files.hpp"
#include "files/torch_files.hpp"
#include "support/data.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

using namespace std::string_literals;
using test::counting;
using test::Pickle;
using test::torch_members;
using test::zip;
using test::ZipEntry;
using Values = std::vector<double>;

Checkpoint open(const std::vector<ZipEntry>& members) {
  const test::Scratch scratch;
  test::put(scratch / "m.pt", zip(members));
  return Checkpoint(scratch / "m.pt");  // the mapping outlives the file's name
}
/// A file of that pickle and one storage of six floats.
Checkpoint open(const Pickle& pickle) { return open(torch_members(pickle.stop(), {counting(6)})); }

/// The error message about a file, without the file's name at its start.
template <typename File>
std::string complaint(ErrorCode code, const File& file) {
  const std::string message = test::error_of(code, [&file] { (void)open(file); });
  const std::size_t name = message.find("m.pt: ");
  return message.rfind("pytorch: ", 0) == 0 && name != std::string::npos ? message.substr(name + 6) : message;
}

/// {"a": tensor} of the storage of six floats.
Pickle one_tensor(std::int32_t offset, const std::vector<std::int32_t>& shape,
                  const std::vector<std::int32_t>& strides) {
  return Pickle().op("}").text("a").tensor("0", 6, offset, shape, strides).op("s");
}
Values values_of(const Pickle& pickle) { return read(*open(pickle).find("a")); }

TEST(Torch, ReadsAStateDict) {
  const Pickle pickle = Pickle()
                            .ordered_dict()
                            .op("(")
                            .text("b")
                            .tensor("0", 6, 2, {2, 2}, {2, 1})
                            .text("a")
                            .global("torch._utils", "_rebuild_parameter")
                            .op("(")
                            .tensor("0", 6, 5, {}, {})
                            .op("\x88")
                            .ordered_dict()
                            .op("tRu}")
                            .text("_metadata")
                            .ordered_dict()
                            .op("sb");
  const Checkpoint checkpoint = open(pickle);
  EXPECT_EQ(checkpoint.format(), "pytorch");
  EXPECT_EQ(checkpoint.graph(), nullptr);
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  EXPECT_EQ(read(checkpoint.tensors()[0]), Values{6});
  EXPECT_EQ(read(checkpoint.tensors()[1]), (Values{3, 4, 5, 6}));
  const std::span<const std::uint64_t> shape = checkpoint.tensors()[1].shape;
  EXPECT_EQ(std::vector<std::uint64_t>(shape.begin(), shape.end()), (std::vector<std::uint64_t>{2, 2}));
}

TEST(Torch, ReadsEveryLayout) {
  EXPECT_EQ(values_of(one_tensor(0, {2, 3}, {3, 1})), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(one_tensor(0, {3, 2}, {1, 3})), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values_of(one_tensor(1, {2}, {3})), (Values{2, 5}));
  EXPECT_EQ(values_of(one_tensor(5, {2, 2}, {0, 0})), (Values{6, 6, 6, 6}));
  EXPECT_EQ(values_of(one_tensor(0, {1, 6, 1}, {99, 1, 77})), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(one_tensor(6, {0, 2}, {2, 1})), Values{});
}

TEST(Torch, ViewsRowMajorTensorsInPlace) {
  const Pickle pickle = Pickle()
                            .op("}(")
                            .text("a")
                            .tensor("0", 6, 0, {1, 6, 1}, {99, 1, 77})
                            .text("b")
                            .tensor("0", 6, 2, {4}, {1})
                            .op("u");
  const Checkpoint checkpoint = open(pickle);
  const auto at = [&](const char* name) { return checkpoint.find(name)->bytes.memory().data(); };
  EXPECT_EQ(at("a") + 2 * sizeof(float), at("b"));
}

TEST(Torch, ReadsUntypedStorages) {
  const Pickle pickle = Pickle()
                            .op("}")
                            .text("a")
                            .global("torch._utils", "_rebuild_tensor_v3")
                            .op("((")
                            .text("storage")
                            .global("torch.storage", "UntypedStorage")
                            .text("0")
                            .text("cpu")
                            .integer(24)
                            .op("tQ")
                            .integer(4)
                            .integers({2})
                            .integers({1})
                            .op("\x89}")
                            .global("torch", "float32")
                            .op("tRs");
  EXPECT_EQ(values_of(pickle), (Values{5, 6}));
}

TEST(Torch, FindsTheStateDictATrainerHasWrapped) {
  for (const char* wrapper : {"state_dict", "model_state_dict", "model"}) {
    const Pickle pickle = Pickle()
                              .op("}(")
                              .text("step")
                              .tensor("0", 6, 0, {}, {})
                              .text("epoch")
                              .integer(3)
                              .text("loss")
                              .op("G\x3f\xf0"s + std::string(6, '\0'))
                              .text(wrapper)
                              .op("}")
                              .text("a")
                              .tensor("0", 6, 0, {1}, {1})
                              .op("su");
    const Checkpoint checkpoint = open(pickle);
    ASSERT_EQ(checkpoint.tensors().size(), 1u) << wrapper;
    EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  }
  EXPECT_EQ(open(Pickle().op("}")).tensors().size(), 0u);
}

/// {"model": {"a": ...}, "ema": {"decay": 1, "module": {"a": ...}}, "optimizer": {0: {"step": ...}}}
Pickle two_models() {
  Pickle pickle;
  pickle.op("}(").text("model").op("}").text("a").tensor("0", 6, 0, {1}, {1}).op("s");
  pickle.text("ema").op("}(").text("decay").integer(1).text("module");
  pickle.op("}").text("a").tensor("0", 6, 1, {1}, {1}).op("su");
  pickle.text("optimizer").op("}").integer(0).op("}").text("step").tensor("0", 6, 2, {1}, {1}).op("ss");
  return pickle.op("u");
}

TEST(Torch, FindsTheStateDictThatIsNamed) {
  const test::Scratch scratch;
  const std::string path = (scratch / "m.pt").string();
  test::put(path, zip(torch_members(two_models().stop(), {counting(6)})));
  EXPECT_EQ(read(*Checkpoint(path + ":model").find("a")), Values{1});
  EXPECT_EQ(read(*Checkpoint(path + ":ema/module").find("a")), Values{2});
  EXPECT_EQ(Checkpoint(path + ":ema/module").path(), path + ":ema/module");
  EXPECT_EQ(read_array(path + ":ema/module:a").values, Values{2});
  const std::string members = "2 members with tensors (\"model\", \"ema/module\")";
  EXPECT_EQ(complaint(ErrorCode::Argument, two_models()),
            "has " + members + ", expected one; name it as FILE:MEMBER");
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)Checkpoint(path + ":ema"); }),
            "pytorch: " + path + ": has no member \"ema\" with tensors; it has " + members);
  test::put(scratch / "m.safetensors", test::one_tensor_file("a"));
  EXPECT_EQ(test::error_of(ErrorCode::Argument,
                           [&] { (void)Checkpoint((scratch / "m.safetensors").string() + ":model"); }),
            "checkpoint: " + (scratch / "m.safetensors").string() +
                ": is safetensors, expected a PyTorch file, whose members have names; found \"model\"");
}

TEST(Torch, SaysThatAFileHasNoMemberOfThatName) {
  const test::Scratch scratch;
  const std::string path = (scratch / "m.pt").string();
  test::put(path, zip(torch_members(one_tensor(0, {1}, {1}).stop(), {counting(6)})));
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)Checkpoint(path + ":ema"); }),
            "pytorch: " + path + ": has no member \"ema\" with tensors");
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)read_array(path); }),
            "array: " + path + ": holds named arrays, expected FILE:NAME; it has 1 tensors: \"a\"");
  test::put(path, zip(torch_members(Pickle().global("__torch__", "Net").op(")\x81").stop(), {})));
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)Checkpoint(path + ":ema"); }),
            "pytorch: " + path + ": is of TorchScript, which has no member \"ema\"");
}

TEST(Torch, ListsTheFirstOfManyMembers) {
  Pickle pickle = Pickle().op("}(");
  for (int i = 0; i < 1001; ++i) {
    pickle.text("m" + std::to_string(i)).op("}").text("a").tensor("0", 6, 0, {1}, {1}).op("s");
  }
  EXPECT_EQ(
      complaint(ErrorCode::Argument, pickle.op("u")),
      "has 1000 members with tensors (\"m0\", \"m1\", \"m2\", \"m3\", \"m4\", \"m5\", ...), expected one; "
      "name it as FILE:MEMBER");
}

TEST(Torch, SearchesMembersUpToADepth) {
  const auto nested = [](int depth) {
    Pickle pickle;
    for (int i = 0; i < depth; ++i) pickle.op("}").text("m");
    pickle.op("}").text("a").tensor("0", 6, 3, {1}, {1}).op("s");
    for (int i = 0; i < depth; ++i) pickle.op("s");
    return pickle;
  };
  EXPECT_EQ(values_of(nested(3)), Values{4});
  EXPECT_EQ(complaint(ErrorCode::Unsupported, nested(4)),
            "its dict holds no tensors, expected a state dict, or one as a member");
}

TEST(Torch, PassesOverOtherEntriesOfAStateDict) {
  const Pickle pickle = Pickle()
                            .op("}(")
                            .text("a")
                            .tensor("0", 6, 0, {1}, {1})
                            .integer(1)
                            .tensor("0", 6, 1, {1}, {1})
                            .text("step")
                            .integer(7)
                            .op("u");
  EXPECT_EQ(open(pickle).tensors().size(), 1u);
}

TEST(Torch, TakesTheOnlyMemberThatHoldsTensors) {
  const Pickle pickle = Pickle()
                            .op("}(")
                            .text("epoch")
                            .integer(3)
                            .text("network")
                            .op("}")
                            .text("weights")
                            .op("}")
                            .text("a")
                            .tensor("0", 6, 4, {1}, {1})
                            .op("ssu");
  EXPECT_EQ(values_of(pickle), Values{5});
}

TEST(Torch, SaysThatAFileHoldsNoStateDict) {
  EXPECT_EQ(complaint(ErrorCode::Unsupported, Pickle().op("]")),
            "does not hold a dict, expected a state dict");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, Pickle().op("}").text("a").integer(1).op("s")),
            "its dict holds no tensors, expected a state dict, or one as a member");
}

/// An object of TorchScript with the attributes that `add` pickles.
template <typename Add>
void script_module(Pickle& pickle, const std::string& name, const Add& add) {
  pickle.global("__torch__.nets", name).op(")\x81}(").text("training").op("\x88");
  add();
  pickle.op("ub");
}

TEST(Torch, ReadsTheModulesOfTorchScript) {
  Pickle pickle;
  script_module(pickle, "Net", [&] {
    pickle.text("scale").tensor("0", 6, 0, {1}, {1}).text("axes");
    pickle.global("torch.jit._pickle", "build_intlist").op("]").integer(1).op("a\x85R").text("norm");
    script_module(pickle, "Norm", [&] { pickle.text("weight").tensor("0", 6, 1, {2}, {1}); });
    pickle.text("unused").op("N").integer(1).tensor("0", 6, 0, {1}, {1});
  });
  const Checkpoint checkpoint = open(pickle);
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "norm.weight");
  EXPECT_EQ(read(*checkpoint.find("norm.weight")), (Values{2, 3}));
  EXPECT_EQ(read(*checkpoint.find("scale")), Values{1});
}

TEST(Torch, RejectsModulesThatAreNotTrees) {
  // m = Net(); m.a = m
  Pickle circle = Pickle().global("__torch__", "Net").op(")\x81q\0"s).op("}").text("a").op("h\0sb"s);
  EXPECT_EQ(complaint(ErrorCode::Unsupported, circle), "its modules are nested more than 64 deep");
  // Each of 40 modules holds the one before it twice.
  const std::string empty = "c__torch__\nNet\n)\x81";
  std::string shared = empty;
  for (int i = 0; i < 40; ++i) {
    shared = empty + "}(X\1\0\0\0a"s + shared + "q" + static_cast<char>(i) + "X\1\0\0\0bh"s +
             static_cast<char>(i) + "ub";
  }
  EXPECT_NE(complaint(ErrorCode::Unsupported, Pickle().op(shared)).find("needs more than"),
            std::string::npos);
  complaint(ErrorCode::Format, Pickle().global("__torch__", "Net").op(")\x81]b"));
  complaint(ErrorCode::Unsupported, Pickle().global("__torch__x", "Net"));
}

TEST(Torch, ReadsProtocol4) {
  const auto word = [](const std::string& text) { return "\x8c"s + static_cast<char>(text.size()) + text; };
  Pickle pickle;
  pickle.op("\x80\x04\x95"s + std::string(8, '\0')).op(word("collections") + word("OrderedDict") + "\x93");
  pickle.op(")R\x94").op(word("a")).tensor("0", 6, 0, {1}, {1}).op("s");
  EXPECT_EQ(values_of(pickle), Values{1});
}

TEST(Torch, RunsNoCode) {
  // Each of these would run a command in Python; here it is an object of that name.
  const test::Scratch scratch;
  const std::string made = (scratch / "made").string();
  const std::string command = Pickle().text("touch " + made).body();
  const std::string system = "cposix\nsystem\n";
  for (const std::string& evil :
       {system + command + "\x85R", system + command + "\x85\x81", system + command + "\x85}\x92",
        "(" + command + "iposix\nsystem\n", "(" + system + command + "o",
        Pickle().text("posix").text("system").op("\x93").body() + command + "\x85R"}) {
    EXPECT_EQ(complaint(ErrorCode::Unsupported, Pickle().op(evil)),
              "holds \"posix.system\", expected a state dict");
    const Pickle beside = Pickle().op("}(").text("x").op(evil).text("a").tensor("0", 6, 0, {1}, {1}).op("u");
    const Checkpoint checkpoint = open(beside);
    EXPECT_EQ(read(*checkpoint.find("a")), Values{1});
    EXPECT_EQ(checkpoint.metadata().at("x"), "posix.system, not read");
  }
  EXPECT_FALSE(std::filesystem::exists(made));
}

/// The metadata of {"x": what these opcodes make, "a": a tensor}.
std::string passed_over(const std::string& opcodes) {
  const Checkpoint checkpoint =
      open(Pickle().op("}(").text("x").op(opcodes).text("a").tensor("0", 6, 0, {1}, {1}).op("u"));
  EXPECT_EQ(checkpoint.tensors().size(), 1U);
  const auto found = checkpoint.metadata().find("x");
  return found == checkpoint.metadata().end() ? "" : found->second;
}

TEST(Torch, PassesOverObjectsOfOtherClasses) {
  const std::string state = Pickle().op("}").text("lr").op("G").op(std::string(8, '\0')).op("s").body();
  EXPECT_EQ(passed_over("cargparse\nNamespace\n)\x81" + state + "b"), "argparse.Namespace, not read");
  EXPECT_EQ(passed_over("cdatetime\ndatetime\nC\n0123456789\x85R"), "datetime.datetime, not read");
  EXPECT_EQ(passed_over("c__builtin__\nset\n](K\1K\2e\x85R"), "set, not read");
  EXPECT_EQ(passed_over("\x8f(K\1K\2\x90"), "set, not read");
  EXPECT_EQ(passed_over("(K\1\x91"), "frozenset, not read");
  EXPECT_EQ(passed_over("C\3abc"), "bytes, not read");
  EXPECT_EQ(passed_over("c_codecs\nencode\n" + Pickle().text("ab").text("latin1").body() + "\x86R"),
            "bytes, not read");
  EXPECT_EQ(passed_over("ccollections\nCounter\n}\x85R"), "collections.Counter, not read");
  EXPECT_EQ(passed_over("ccopyreg\n_reconstructor\n(cmine\nThing\nc__builtin__\nobject\nNtR"),
            "mine.Thing, not read");
  EXPECT_EQ(passed_over("cnumpy._core.multiarray\nscalar\ncnumpy\ndtype\n" + Pickle().text("f8").body() +
                        "\x89\x88\x87R(K\3tbC\x8" + "01234567" + "\x86R"),
            "numpy._core.multiarray.scalar, not read");
  EXPECT_EQ(passed_over("cmine\nThing\n)}\x92"), "mine.Thing, not read");
  EXPECT_EQ(passed_over("\x82\1"), "copyreg.extension, not read");
  EXPECT_EQ(passed_over("\x83\1\2"), "copyreg.extension, not read");
  EXPECT_EQ(passed_over("K\1Q"), "persistent object, not read");
  EXPECT_EQ(passed_over("ctorch\nfloat32\n"), "");
  // A list and a dict that a class of its own extends.
  EXPECT_EQ(passed_over("cmine\nList\n)\x81(K\1K\2e"), "mine.List, not read");
  EXPECT_EQ(passed_over("cmine\nDict\n)\x81(K\1K\2u"), "mine.Dict, not read");
  // Values of other opcodes.
  EXPECT_EQ(passed_over("K\1"
                        "0N"),
            "");
  EXPECT_EQ(passed_over("K\1(K\2K\3"
                        "1"),
            "");
  EXPECT_EQ(passed_over("K\1"
                        "2\x86"),
            "");
  EXPECT_EQ(passed_over("\x8b\x9" + "\0\0\0"s + "123456789"), "");
  EXPECT_EQ(passed_over("U\3abc"), "");
}

TEST(Torch, NamesObjectsByTheKeysThatLeadToThem) {
  const Pickle pickle = Pickle()
                            .op("}(")
                            .text("runs")
                            .op("](cmine\nRun\n)\x81}K\7c"
                                "mine\nRun\n)\x81se")
                            .text("model")
                            .op("}(")
                            .text("a")
                            .tensor("0", 6, 0, {1}, {1})
                            .text("extra")
                            .op("cmine\nExtra\n)\x81uu");
  const Checkpoint checkpoint = open(pickle);
  using Metadata = std::map<std::string, std::string, std::less<>>;
  EXPECT_EQ(checkpoint.metadata(), (Metadata{{"model/extra", "mine.Extra, not read"},
                                             {"runs/0", "mine.Run, not read"},
                                             {"runs/1/7", "mine.Run, not read"}}));
}

TEST(Torch, ReadsDictsOfOtherKinds) {
  EXPECT_EQ(values_of(Pickle()
                          .global("collections", "defaultdict")
                          .global("builtins", "list")
                          .op("\x85R")
                          .text("a")
                          .tensor("0", 6, 0, {1}, {1})
                          .op("s")),
            Values{1});
  // As Python 2 pickles an OrderedDict.
  EXPECT_EQ(values_of(Pickle()
                          .global("collections", "OrderedDict")
                          .op("](](U\1a")
                          .tensor("0", 6, 0, {1}, {1})
                          .op("ee\x85R")),
            Values{1});
}

/// {"b": what these opcodes make, "a": a tensor}, of which the type of "b" is given.
std::string unread(const Pickle& made) {
  const Checkpoint checkpoint =
      open(Pickle().op("}(").text("b").op(made.body()).text("a").tensor("0", 6, 0, {1}, {1}).op("u"));
  EXPECT_EQ(checkpoint.tensors().size(), 2U);
  const Tensor* const tensor = checkpoint.find("b");
  if (tensor == nullptr) return "not listed";
  EXPECT_EQ(std::vector<std::uint64_t>(tensor->shape.begin(), tensor->shape.end()),
            (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(tensor->stored_bytes(), 0U);
  EXPECT_FALSE(tensor->is_decodable());
  EXPECT_NE(test::error_of(ErrorCode::Unsupported, [&] { (void)read(*tensor); }).find("has no decoder"),
            std::string::npos);
  return std::string(tensor->stored_type()) + ": " + checkpoint.metadata().at("b");
}

TEST(Torch, ListsTensorsThatItDoesNotRead) {
  const std::string shape = Pickle().integers({2, 3}).body();
  const std::string strides = Pickle().integers({3, 1}).body();
  const std::string values = Pickle().tensor("0", 6, 0, {6}, {1}).body();
  const auto tensor = [&](const std::string& rest) {
    Pickle made = Pickle().global("torch._utils", "_rebuild_tensor_v2").op("(");
    return made.storage("FloatStorage", "0", 6).integer(0).op(shape + strides + "\x89}" + rest + "tR");
  };
  // A negative bit, as z.conj().imag has: the elements are those of the storage, negated.
  const std::string neg = Pickle().op("}").text("neg").op("\x88s").body();
  EXPECT_EQ(unread(tensor(neg)), "MARKED: torch.Tensor with a negative or conjugate bit, not read");
  for (const char* none : {"", "N", "}"}) {
    EXPECT_EQ(open(Pickle().op("}").text("b").op(tensor(none).body()).op("s")).tensors()[0].dtype,
              Dtype::F32);
  }
  EXPECT_EQ(unread(Pickle()
                       .global("torch._utils", "_rebuild_qtensor")
                       .op("(")
                       .storage("QInt8Storage", "0", 24)
                       .integer(0)
                       .op(shape + strides)
                       .op("(ctorch\nper_tensor_affine\nG" + std::string(8, '\0') + "K\0t\x89}tR"s)),
            "QUANTIZED: torch._utils._rebuild_qtensor, not read");
  EXPECT_EQ(unread(Pickle()
                       .global("torch._utils", "_rebuild_sparse_tensor")
                       .op("(ctorch.serialization\n_get_layout\n" + Pickle().text("sparse_coo").body() +
                           "\x85R(" + values + values + shape + "\x88ttR")),
            "SPARSE: torch._utils._rebuild_sparse_tensor, not read");
  EXPECT_EQ(unread(Pickle()
                       .global("torch._utils", "_rebuild_wrapper_subclass")
                       .op("(cao\nInt4\nctorch\nfloat32\n" + shape + strides + "tR}b")),
            "SUBCLASS: ao.Int4, not read");
  EXPECT_EQ(unread(Pickle()
                       .global("torch._utils", "_rebuild_meta_tensor_no_storage")
                       .op("(ctorch\nfloat32\n" + shape + strides + "\x89tR")),
            "META: torch._utils._rebuild_meta_tensor_no_storage, not read");
  Pickle complex = Pickle().global("torch._utils", "_rebuild_tensor_v2").op("(");
  complex.storage("ComplexDoubleStorage", "0", 6).integer(0).op(shape + strides + "\x89}tR");
  EXPECT_EQ(unread(complex), "C128: torch.C128, not read");
  Pickle future = Pickle().global("torch._utils", "_rebuild_tensor_v2").op("(");
  future.storage("FutureStorage", "0", 6).integer(0).op(shape + strides + "\x89}tR");
  EXPECT_EQ(unread(future), "FutureStorage: torch.FutureStorage, not read");
  // A tensor with attributes is a plain one; one of another class may mean something else.
  const auto typed = [&](const std::string& type) {
    return Pickle()
        .global("torch._tensor", "_rebuild_from_type_v2")
        .op("(ctorch._utils\n_rebuild_tensor_v2\n" + type + "(")
        .storage("FloatStorage", "0", 6)
        .integer(0)
        .op(shape + strides + "\x89}t}tR");
  };
  EXPECT_EQ(unread(typed("cmine\nTensor\n")), "SUBCLASS: mine.Tensor, not read");
  EXPECT_EQ(values_of(Pickle().op("}").text("a").op(typed("ctorch\nTensor\n").body()).op("s")),
            (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(
      values_of(Pickle().op("}").text("a").op(typed("ctorch.nn.parameter\nParameter\n").body()).op("s")),
      (Values{1, 2, 3, 4, 5, 6}));
  Pickle set = Pickle().op("}").text("a").tensor("0", 6, 0, {6}, {1}).op("}bs");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, set).substr(0, 9), "data.pkl:");
}

/// Expects that a pickle is refused, for that fact alone.
void expect_fact(ErrorCode code, const Pickle& pickle, const std::string& fact) {
  const std::string message = complaint(code, pickle);
  EXPECT_EQ(message.substr(message.rfind(": ") + 2), fact);
}

TEST(Torch, RejectsCallsThatMakeNoSense) {
  const auto expect = [](const Pickle& pickle, const std::string& fact) {
    expect_fact(ErrorCode::Format, pickle, fact);
  };
  expect(Pickle().integer(1).op(")R"), "calls something that is not a global");
  expect(Pickle().global("torch", "Size").integer(1).op("R"), "calls something that is not a global");
  expect(Pickle().global("__torch__", "Net").op(")R"), "a call of a class of TorchScript");
  expect(Pickle().integer(1).op(")\x81"), "calls something that is not a global");
  expect(Pickle().global("__torch__", "Net").op("N\x81"), "calls something that is not a global");
  expect(Pickle().op("(o"), "the stack is empty");
  expect(Pickle().global("torch._tensor", "_rebuild_from_type_v2").op("(NK\1)tR"),
         "the class of a tensor is not a global");
  expect(Pickle().global("torch._utils", "_rebuild_tensor_v2").op(")R"), "a call has too few arguments");
  expect(Pickle().global("torch._utils", "_rebuild_parameter").integer(1).op("\x85R"),
         "a parameter is built from something that is not a tensor");
  expect(Pickle().global("collections", "OrderedDict").integer(1).op("\x85R"),
         "an OrderedDict is built from something that is not a list of pairs");
  expect(Pickle().global("collections", "OrderedDict").op("]](K\1ea\x85R"),
         "an OrderedDict is built from something that is not a list of pairs");
  expect(Pickle().text("torch").integer(1).op("\x93"), "the name of a global is not made of strings");
  expect(Pickle().integer(1).text("Size").op("\x93"), "the name of a global is not made of strings");
  expect(one_tensor(-1, {1}, {1}), "a size is not an integer >= 0");
  expect(one_tensor(0, {1, 1}, {1}), "a tensor has 2 dimensions and 1 strides");
  expect(Pickle().op("]").integer(1).integer(1).op("s"), "an item is added to something that is not a dict");
  expect(Pickle().op("}").integer(1).op("a"), "an item is added to something that is not a list");
  expect(Pickle().op("}(").integer(1).op("u"), "a key has no value");
}

TEST(Torch, RejectsStoragesThatMakeNoSense) {
  const Pickle key = Pickle().text("0");
  const Pickle floats = Pickle().global("torch", "FloatStorage");
  const auto id = [](const std::string& kind, const Pickle& type, const Pickle& name) {
    return Pickle().op("(").text(kind).op(type.body()).op(name.body()).text("cpu").integer(6).op("tQ");
  };
  const Pickle shorter = Pickle().op("(").text("storage").op(floats.body()).text("0").text("cpu").op("tQ");
  for (const Pickle& pickle :
       {shorter, id("storage", Pickle().text("x"), key), id("storage", floats, Pickle().integer(0)),
        id("storage", Pickle().global("torch", "float32"), key)}) {
    expect_fact(ErrorCode::Format, pickle, "a persistent id is not that of a storage");
  }
}

TEST(Torch, RejectsTensorsThatMakeNoSense) {
  const auto expect = [](const Pickle& storage, const Pickle& shape, const std::string& fact) {
    Pickle pickle = Pickle().global("torch._utils", "_rebuild_tensor_v2").op("(");
    pickle.op(storage.body()).integer(0).op(shape.body()).integers({1}).op("\x89}tR");
    expect_fact(ErrorCode::Format, pickle, fact);
  };
  const Pickle six = Pickle().storage("FloatStorage", "0", 6);
  const Pickle one = Pickle().integers({1});
  expect(Pickle().integer(1), one, "a tensor is built from something that is not a storage");
  expect(six, Pickle().integer(1), "a shape is not a tuple");
  expect(six, Pickle().text("x").op("\x85"), "a size is not an integer >= 0");
  Pickle untyped = Pickle().op("(").text("storage").global("torch.storage", "UntypedStorage").text("0");
  expect(untyped.text("cpu").integer(24).op("tQ"), one, "a tensor of an untyped storage has no dtype");
  for (const Pickle& dtype : {Pickle().text("float32"), Pickle().global("torch", "FloatStorage")}) {
    Pickle typed = Pickle().global("torch._utils", "_rebuild_tensor_v3").op("(").op(six.body());
    typed.integer(0).integers({1}).integers({1}).op("\x89}").op(dtype.body()).op("tR");
    expect_fact(ErrorCode::Format, typed, "the dtype argument of a tensor is not a dtype");
  }
}

TEST(Torch, RejectsBrokenPickles) {
  const auto expect = [](const std::string& pickle, const std::string& fact) {
    EXPECT_EQ(complaint(ErrorCode::Format, torch_members(pickle, {})), "data.pkl: at byte " + fact);
  };
  expect("", "0: 1 bytes are needed, 0 are left");
  expect("\x80\x02", "2: 1 bytes are needed, 0 are left");
  expect("\x80\x02X\xff\xff\xff\xff", "2: 4294967295 bytes are needed, 0 are left");
  expect("\x80\x02.", "2: the stack is empty");
  expect("\x80\x02(s.", "3: the stack is empty");
  expect("\x80\x02}(\x94.", "4: the stack is empty");
  expect("\x80\x02t.", "2: there is no mark on the stack");
  expect("\x80\x02h\x07.", "2: the memo has no entry 7");
  expect("\x80\x02}q\x07.", "3: memo entry 7 comes after 0");
  expect("\x80\x02}.x", "3: 1 bytes follow the end of the pickle");
  expect(
      "\x80\x02"
      "ctorch",
      "2: ends within a name");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, torch_members("\x80\x09}.", {})),
            "data.pkl: at byte 0: pickle protocol 9, expected 2 to 5");
}

TEST(Torch, RejectsOtherProtocols) {
  EXPECT_EQ(complaint(ErrorCode::Unsupported, torch_members("\x80\x01}.", {})),
            "data.pkl: at byte 0: pickle protocol 1, expected 2 to 5");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, torch_members("\x80\x06}.", {})),
            "data.pkl: at byte 0: pickle protocol 6, expected 2 to 5");
}

TEST(Torch, ReadsOtherSpellingsOfTheSameValues) {
  // The shape and the stride from the memo, by numbers of 4 bytes; tuples of two and three; a list of several
  // values.
  const auto spelled = [](const std::string& shape, const std::string& stride, const std::string& offset) {
    Pickle pickle = Pickle().op("}").text("a").global("torch._utils", "_rebuild_tensor_v2").op("(");
    return pickle.storage("FloatStorage", "0", 6).op(offset + shape + stride + "\x89}tRs");
  };
  EXPECT_EQ(values_of(spelled("K\2K\2\x86r\0\0\0\0"s, "K\2K\1\x86", "M\1\0"s)), (Values{2, 3, 4, 5}));
  EXPECT_EQ(values_of(spelled("K\1K\1K\1\x87r\0\0\0\0"s, "j\0\0\0\0"s, "K\5")), Values{6});
  Pickle listed = Pickle().op("}(").text("sizes").op("](K\1K\2e").text("a");
  EXPECT_EQ(values_of(listed.tensor("0", 6, 2, {1}, {1}).op("u")), Values{3});
}

TEST(Torch, BoundsItsStack) {
  const std::size_t most = std::size_t{1} << 20U;
  EXPECT_EQ(complaint(ErrorCode::Unsupported, torch_members(std::string(most + 1, 'N'), {})),
            "data.pkl: at byte 1048576: more than 1048576 values on the stack");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, torch_members(std::string(most + 1, '('), {})),
            "data.pkl: at byte 1048576: more than 1048576 marks");
}

TEST(Torch, ReadsLongIntegers) {
  const auto of_offset = [](const std::string& number) {
    Pickle pickle = Pickle().op("}").text("a").global("torch._utils", "_rebuild_tensor_v2").op("(");
    pickle.storage("FloatStorage", "0", 6).op(number).integers({1}).integers({1}).op("\x89}tRs");
    return pickle;
  };
  EXPECT_EQ(values_of(of_offset("\x8a\0"s)), Values{1});
  EXPECT_EQ(values_of(of_offset("\x8a\1\2")), Values{3});
  EXPECT_EQ(values_of(of_offset("\x8a\2\3\0"s)), Values{4});
  for (const std::string& number : {"\x8a\1\xff"s, "\x8a\x09" + std::string(9, '\1')}) {
    expect_fact(ErrorCode::Format, of_offset(number), "a size is not an integer >= 0");
  }
}

TEST(Torch, IsNotFooledByValuesThatHoldThemselves) {
  // d = {}; d["state_dict"] = d; l = [l, d]
  const Pickle pickle =
      Pickle().op("}q").op("\0"s).text("state_dict").op("h\0s"s).text("l").op("]q\1h\1a"s).op("h\0as"s);
  EXPECT_EQ(complaint(ErrorCode::Unsupported, pickle),
            "its dict holds no tensors, expected a state dict, or one as a member");
}

TEST(Torch, RejectsTensorsThatLeaveTheirStorage) {
  const std::string leaves = "tensor \"a\" extends beyond its storage of 6 elements";
  EXPECT_EQ(complaint(ErrorCode::Format, one_tensor(0, {7}, {1})), leaves);
  EXPECT_EQ(complaint(ErrorCode::Format, one_tensor(6, {}, {})), leaves);
  EXPECT_EQ(complaint(ErrorCode::Format, one_tensor(0, {2}, {0x7fffffff})), leaves);
  const std::int32_t huge = 0x7fffffff;
  EXPECT_EQ(complaint(ErrorCode::Format, one_tensor(0, {huge, huge}, {huge, huge})), leaves);
  EXPECT_EQ(complaint(ErrorCode::Shape, one_tensor(0, {huge, huge, huge}, {0, 0, 0})),
            "size of tensor \"a\" overflows 64 bits");
  // 4 steps of 2^62 elements come back to the first.
  Pickle wrapping = Pickle().op("}").text("a").global("torch._utils", "_rebuild_tensor_v2").op("(");
  wrapping.storage("FloatStorage", "0", 6).integer(0).integers({5});
  wrapping.op("\x8a\x08" + test::le(std::uint64_t{1} << 62)).op("\x85\x89}tRs");
  EXPECT_EQ(complaint(ErrorCode::Format, wrapping), leaves);
  // Each element is in the storage, but there are more than a file of this size may have.
  const std::string message = complaint(ErrorCode::Unsupported, one_tensor(0, {huge, 3}, {0, 0}));
  EXPECT_NE(message.find("the list of its tensors needs more than"), std::string::npos) << message;
  // A storage of more bytes than 64 bits count.
  Pickle repeated = Pickle().op("}").text("a").global("torch._utils", "_rebuild_tensor_v2").op("(");
  repeated.storage("FloatStorage", "0", 6).integer(0);
  repeated.op("\x8a\x08" + test::le(std::uint64_t{1} << 62)).op("\x85").integers({0}).op("\x89}tRs");
  EXPECT_NE(complaint(ErrorCode::Unsupported, repeated).find("the list of its tensors needs more than"),
            std::string::npos);
}

TEST(Torch, RejectsStoragesOfAnotherSize) {
  EXPECT_EQ(complaint(ErrorCode::Shape, torch_members(one_tensor(0, {1}, {1}).stop(), {counting(5)})),
            "member \"data/0\" has 20 bytes, expected 6 elements of F32");
  EXPECT_EQ(complaint(ErrorCode::Shape, torch_members(one_tensor(0, {1}, {1}).stop(), {counting(6) + "x"})),
            "member \"data/0\" has 25 bytes, expected 6 elements of F32");
  EXPECT_EQ(complaint(ErrorCode::Format, torch_members(one_tensor(0, {1}, {1}).stop(), {})),
            "tensor \"a\" is in member \"data/0\", which is missing");
}

TEST(Torch, RejectsNamesThatComeTwice) {
  const Pickle twice =
      Pickle().op("}(").text("a").tensor("0", 6, 0, {1}, {1}).text("a").tensor("0", 6, 1, {1}, {1}).op("u");
  EXPECT_EQ(complaint(ErrorCode::Format, twice), "has tensor \"a\" twice");
}

TEST(Torch, RejectsUnusualZips) {
  const std::string pickle = one_tensor(0, {6}, {1}).stop();
  std::vector<ZipEntry> members = torch_members(pickle, {counting(6)});
  members[1].deflated();
  EXPECT_EQ(complaint(ErrorCode::Unsupported, members),
            "zip: member \"m/data/0\" is compressed or encrypted, expected it stored");
  members = torch_members(pickle, {counting(6)});
  members[1].size += 4;
  EXPECT_EQ(complaint(ErrorCode::Format, members),
            "zip: member \"m/data/0\" is stored in 24 bytes, its size is 28");
  members = torch_members(pickle, {counting(6)});
  members[0].crc ^= 1;
  EXPECT_NE(complaint(ErrorCode::Format, members).find("CRC-32"), std::string::npos);
  members = torch_members(pickle, {counting(6)});
  members[1].offset_error = 1 << 20;
  complaint(ErrorCode::Format, members);
  members = torch_members(pickle, {counting(6)});
  members.push_back(ZipEntry("big", "m/byteorder"));
  EXPECT_EQ(complaint(ErrorCode::Unsupported, members), "byte order is \"big\", expected little");
  members.back() = ZipEntry("little", "m/byteorder");
  EXPECT_EQ(open(members).tensors().size(), 1u);
  members.push_back(ZipEntry(pickle, "n/data.pkl"));
  EXPECT_EQ(complaint(ErrorCode::Format, members), "has two members data.pkl, expected one");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, std::vector<ZipEntry>{ZipEntry("x", "a.txt")}),
            "is a zip without data.pkl, expected what torch.save writes");
}

TEST(Torch, RejectsAZipWithoutMembers) {
  EXPECT_EQ(complaint(ErrorCode::Unsupported, std::vector<ZipEntry>{}),
            "is a zip without data.pkl, expected what torch.save writes");
}

TEST(Torch, HasChecksumsOfItsElements) {
  const test::Scratch scratch;
  std::vector<ZipEntry> members = torch_members(one_tensor(0, {6}, {1}).stop(), {counting(6)});
  test::put(scratch / "sound.pt", zip(members));
  check_sums(Checkpoint(scratch / "sound.pt"));
  members[1].crc ^= 1U;
  test::put(scratch / "m.pt", zip(members));
  const Checkpoint checkpoint(scratch / "m.pt");  // whose elements are not read here
  const std::string message = test::error_of(ErrorCode::Format, [&] { check_sums(checkpoint); });
  EXPECT_EQ(message.rfind("checkpoint: " + (scratch / "m.pt").string() + ": ", 0), 0U) << message;
  EXPECT_NE(message.find("CRC-32"), std::string::npos) << message;
  // Other files have none.
  test::put(scratch / "old.ckpt", test::legacy_torch_file(one_tensor(0, {6}, {1}).stop(), {counting(6)}));
  check_sums(Checkpoint(scratch / "old.ckpt"));
  test::put(scratch / "m.safetensors", test::one_tensor_file("a"));
  check_sums(Checkpoint(scratch / "m.safetensors"));
}

TEST(Torch, GivesArraysByName) {
  const test::Scratch scratch;
  const std::string path = (scratch / "m.pt").string();
  test::put(path, zip(torch_members(one_tensor(0, {2, 3}, {3, 1}).stop(), {counting(6)})));
  EXPECT_EQ(read_array(path + ":a[1]").values, (Values{4, 5, 6}));
}

TEST(Torch, IsReadFromAFolderWithoutSafetensors) {
  const test::Scratch scratch;
  test::put(scratch / "config.json", "{}");
  test::put(scratch / "pytorch_model.bin", zip(torch_members(one_tensor(0, {6}, {1}).stop(), {counting(6)})));
  const Checkpoint checkpoint(scratch.folder());
  EXPECT_EQ(checkpoint.format(), "pytorch");
  EXPECT_EQ(checkpoint.config_text(), "{}");
}

TEST(Torch, PrestoHoldsWhatItsSafetensorsTwinHolds) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/presto.pt");
  NORMSCOPE_NEED_DATA(twin, "checkpoints/presto.safetensors");
  const Checkpoint checkpoint(path);
  const Checkpoint expected(twin);
  ASSERT_EQ(checkpoint.tensors().size(), expected.tensors().size());
  for (std::size_t i = 0; i < expected.tensors().size(); ++i) {
    const Tensor& a = checkpoint.tensors()[i];
    const Tensor& b = expected.tensors()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.dtype, b.dtype);
    EXPECT_TRUE(std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end())) << a.name;
    EXPECT_TRUE(equal(a.bytes, b.bytes)) << a.name;
  }
}

}  // namespace
}  // namespace normscope::files
