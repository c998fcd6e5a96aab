#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

#include "files/test_files.hpp"
#include "files/zip_files.hpp"
#include "support/data.hpp"
#include "support/environment.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using test::error_of;
using test::one_tensor_file;
using test::put;
using test::Scratch;

/// The error message about `path`, without the path's name at its start.
std::string complaint(ErrorCode code, const fs::path& path) {
  const std::string message = error_of(code, [&path] { const Checkpoint checkpoint(path); });
  const std::string prefix = "checkpoint: " + path.string() + ": ";
  return message.rfind(prefix, 0) == 0 ? message.substr(prefix.size()) : message;
}

TEST(Checkpoint, OpensOneFile) {
  const Scratch scratch;
  put(scratch / "x.safetensors", one_tensor_file("a"));
  const Checkpoint checkpoint(scratch / "x.safetensors");
  EXPECT_EQ(checkpoint.format(), "safetensors");
  EXPECT_EQ(checkpoint.path(), scratch / "x.safetensors");
  EXPECT_EQ(checkpoint.files(), std::vector<fs::path>{scratch / "x.safetensors"});
  ASSERT_NE(checkpoint.find("a"), nullptr);
  EXPECT_EQ(checkpoint.find("b"), nullptr);
  EXPECT_EQ(checkpoint.file_of(*checkpoint.find("a")), scratch / "x.safetensors");
}

TEST(Checkpoint, KeepsItsViewsThroughAMove) {
  const Scratch scratch;
  put(scratch / "x.safetensors", one_tensor_file("a"));
  Checkpoint checkpoint(scratch / "x.safetensors");
  const Tensor* tensor = checkpoint.find("a");
  const Checkpoint moved = std::move(checkpoint);
  EXPECT_EQ(moved.find("a"), tensor);
  EXPECT_EQ(read(*tensor), (std::vector<double>{0, 0}));
  put(scratch / "y.safetensors", one_tensor_file("b"));
  Checkpoint other(scratch / "y.safetensors");
  other = Checkpoint(scratch / "x.safetensors");
  EXPECT_NE(other.find("a"), nullptr);
  EXPECT_EQ(other.find("b"), nullptr);
}

TEST(Checkpoint, ReadsElementsAsDoubles) {
  const Scratch scratch;
  const float values[] = {1.5f, -2.0f, 0.25f, 8.0f};
  std::string data(sizeof values, '\0');
  std::memcpy(data.data(), values, sizeof values);
  put(scratch / "x.safetensors",
      test::safetensors_file(R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", data));
  const Checkpoint checkpoint(scratch / "x.safetensors");
  const Tensor& tensor = *checkpoint.find("a");
  EXPECT_EQ(read(tensor), (std::vector<double>{1.5, -2.0, 0.25, 8.0}));
  EXPECT_EQ(read(tensor, 1, 2), (std::vector<double>{-2.0, 0.25}));
  EXPECT_EQ(read(tensor, 4, 0), std::vector<double>{});
  EXPECT_EQ(error_of(ErrorCode::Shape, [&] { (void)read(tensor, 3, 2); }),
            "read: 2 elements from element 3 on requested, but tensor \"a\" has 4");
  EXPECT_EQ(error_of(ErrorCode::Shape, [&] { (void)read(tensor, 5, 0); }),
            "read: 0 elements from element 5 on requested, but tensor \"a\" has 4");
  EXPECT_EQ(error_of(ErrorCode::Shape, [&] { (void)read(tensor, 2, ~std::uint64_t{0}); }),
            "read: 18446744073709551615 elements from element 2 on requested, but tensor \"a\" has 4");
}

/// A file that is not in memory: its bytes are `begin`, and zeros up to `size`.
class SparseFile : public files::Source {
 public:
  SparseFile(std::string begin, std::uint64_t size) : begin_(std::move(begin)), size_(size) {}
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::byte& byte : out) {
      byte = offset < begin_.size() ? static_cast<std::byte>(begin_[offset]) : std::byte{0};
      ++offset;
    }
  }

 private:
  std::string begin_;
  std::uint64_t size_;
};

TEST(Checkpoint, ReadsNoMoreElementsAtOnceThanItCanHold) {
  const std::string elements = std::to_string(std::uint64_t{1} << 44U);
  const std::string file = test::safetensors_file(R"({"a":{"dtype":"U8","shape":[)" + elements +
                                                  R"(],"data_offsets":[0,)" + elements + "]}}");
  const Checkpoint checkpoint("m.safetensors", [&file](const fs::path&) {
    return std::make_unique<SparseFile>(file, file.size() + (std::uint64_t{1} << 44U));
  });
  EXPECT_EQ(error_of(ErrorCode::Unsupported, [&] { (void)read(checkpoint.tensors()[0]); }),
            "read: 17592186044416 elements of tensor \"a\" requested at once, expected at most " +
                std::to_string(files::largest_held / 8));
  EXPECT_EQ(read(checkpoint.tensors()[0], 1'000'000'000, 2), (std::vector<double>{0, 0}));
}

TEST(Checkpoint, LoadsNoFileWholeThatItCannotHold) {
  const std::uint64_t size = files::largest_held + 1;
  for (const char* name : {"m.pt", "m.ckpt"}) {
    EXPECT_EQ(error_of(ErrorCode::Unsupported,
                       [&] {
                         const Checkpoint checkpoint(
                             name, [&](const fs::path&) { return std::make_unique<SparseFile>("", size); });
                       }),
              "checkpoint: " + std::string(name) + ": has " + std::to_string(size) +
                  " bytes, expected at most " + std::to_string(files::largest_held) +
                  " for a format that is loaded whole; safetensors, GGUF, PyTorch and ONNX files may have "
                  "any size");
  }
}

TEST(Checkpoint, NamesDtypesItCannotDecode) {
  const Scratch scratch;
  put(scratch / "x.safetensors",
      test::safetensors_file(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "x"));
  const Checkpoint checkpoint(scratch / "x.safetensors");
  EXPECT_EQ(error_of(ErrorCode::Unsupported, [&] { (void)read(checkpoint.tensors()[0]); }),
            "read: tensor \"a\" is F4, which has no decoder");
}

TEST(Checkpoint, ReadsTheConfigOfAFolderOnly) {
  const Scratch scratch;
  put(scratch / "config.json", "{\"a\": 1}");
  put(scratch / "other.safetensors", one_tensor_file("a"));
  EXPECT_EQ(Checkpoint(scratch.folder()).config_text(), "{\"a\": 1}");
  EXPECT_EQ(Checkpoint(scratch / "other.safetensors").config_text(), std::nullopt);
  const auto has_config = [&scratch](const std::string& name) {
    fs::rename(scratch / "other.safetensors", scratch / name);
    const bool found = Checkpoint(scratch / name).config_text().has_value();
    fs::rename(scratch / name, scratch / "other.safetensors");
    return found;
  };
  for (const char* name : {"model.safetensors", "model-00001-of-00002.safetensors", "pytorch_model.bin",
                           "pytorch_model-00001-of-00002.bin"}) {
    EXPECT_TRUE(has_config(name)) << name;
  }
  for (const char* name : {"model-.safetensors", "model-00001.safetensors", "model-00001-of-00002.bin",
                           "pytorch_model-00001.bin", "my_model-00001-of-00002.safetensors"}) {
    EXPECT_FALSE(has_config(name)) << name;
  }
}

TEST(Checkpoint, RejectsAHugeConfig) {
  const Scratch scratch;
  put(scratch / "model.safetensors", one_tensor_file("a"));
  put(scratch / "config.json", "{}");
  fs::resize_file(scratch / "config.json", (16u << 20) + 1);
  EXPECT_EQ(error_of(ErrorCode::Format, [&] { Checkpoint checkpoint(scratch.folder()); }),
            "checkpoint: " + (scratch / "config.json").string() +
                ": has 16777217 bytes, expected at most 16777216");
}

TEST(Checkpoint, ChoosesTheFileOfAFolder) {
  const Scratch scratch;
  EXPECT_EQ(complaint(ErrorCode::Io, scratch.folder()), "has no .safetensors file and no pytorch_model.bin");
  put(scratch / "a.mlmodel", "");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, scratch.folder()),
            "has no .safetensors file and no pytorch_model.bin; \"a.mlmodel\" is Core ML, which is not "
            "read: export the model to ONNX or safetensors");
  put(scratch / "b.onnx", "");
  put(scratch / "c.onnx", "");
  EXPECT_EQ(complaint(ErrorCode::Argument, scratch.folder()),
            "has 2 files of weights (\"b.onnx\", \"c.onnx\"), expected one; name the file to open");
  put(scratch / "d.onnx", "");
  EXPECT_EQ(complaint(ErrorCode::Argument, scratch.folder()),
            "has 3 files of weights (\"b.onnx\", \"c.onnx\", ...), expected one; name the file to open");
  put(scratch / "b.safetensors", one_tensor_file("b"));
  EXPECT_NE(Checkpoint(scratch.folder()).find("b"), nullptr);
  put(scratch / "c.safetensors", one_tensor_file("c"));
  EXPECT_EQ(complaint(ErrorCode::Argument, scratch.folder()),
            "has 2 .safetensors files (\"b.safetensors\", \"c.safetensors\") and no index, expected one");
  put(scratch / "d.safetensors", one_tensor_file("d"));
  EXPECT_EQ(
      complaint(ErrorCode::Argument, scratch.folder()),
      "has 3 .safetensors files (\"b.safetensors\", \"c.safetensors\", ...) and no index, expected one");
  put(scratch / "model.safetensors.index.json", R"({"weight_map":{"c":"c.safetensors"}})");
  EXPECT_NE(Checkpoint(scratch.folder()).find("c"), nullptr);
  put(scratch / "model.safetensors", one_tensor_file("m"));
  EXPECT_EQ(
      complaint(ErrorCode::Argument, scratch.folder()),
      "has model.safetensors and model.safetensors.index.json, expected one of them; name the file to open");
  // An index that lists the file alone, as mlx-lm writes one, says nothing else.
  put(scratch / "model.safetensors.index.json", R"({"weight_map":{"m":"model.safetensors"}})");
  EXPECT_NE(Checkpoint(scratch.folder()).find("m"), nullptr);
  fs::remove(scratch / "model.safetensors.index.json");
  EXPECT_NE(Checkpoint(scratch.folder()).find("m"), nullptr);
}

// transformers adds an adapter beside the weights to them, so the file alone is another model.
TEST(Checkpoint, RefusesAFolderWithAnAdapter) {
  const Scratch scratch;
  for (const char* const weights : {"adapter_model.safetensors", "model.safetensors"}) {
    put(scratch / weights, one_tensor_file("m"));
    EXPECT_NE(Checkpoint(scratch.folder()).find("m"), nullptr);
    put(scratch / "adapter_config.json", R"({"peft_type": "LORA"})");
    EXPECT_EQ(
        complaint(ErrorCode::Unsupported, scratch.folder()),
        fmt::format("has adapter_config.json, an adapter that changes what the model computes; merge it "
                    "into the weights, or name \"{}\" to open that file alone",
                    weights));
    EXPECT_NE(Checkpoint(scratch / weights).find("m"), nullptr);
    fs::remove(scratch / "adapter_config.json");
  }
}

// Keras's archive is a zip, its weights in it are HDF5.
TEST(Checkpoint, SaysHowToConvertFormatsThatThePythonPackageReads) {
  const Scratch scratch;
  const std::string archive = test::zip({test::ZipEntry("", "model.weights.h5")});
  const std::tuple<const char*, std::string, const char*, const char*> files[] = {
      {"m.h5", "", "HDF5 or Keras", "keras"},
      {"m.bin", "\x89HDF\r\n\x1a\n", "HDF5 or Keras", "keras"},
      {"m.keras", archive, "HDF5 or Keras", "keras"},
      {"m.msgpack", "", "Flax msgpack", "flax"},
      {"m.index", "", "TensorFlow checkpoint", "tensorflow"},
      {"m.tflite", "", "TensorFlow Lite", "tflite"},
      {"n.bin", "abcdTFL3", "TensorFlow Lite", "tflite"}};
  for (const auto& [name, content, format, extra] : files) {
    SCOPED_TRACE(name);
    put(scratch / name, content);
    const std::string path = (scratch / name).string();
    const std::string expected = "checkpoint: " + path + ": format is " + format +
                                 ", expected safetensors, GGUF, ONNX, PyTorch or NumPy .npz; the Python "
                                 "package, normscope[" +
                                 extra + "], converts it with normscope.convert";
    EXPECT_EQ(error_of(ErrorCode::Unsupported, [&] { const Checkpoint checkpoint(path); }), expected);
    EXPECT_EQ(error_of(ErrorCode::Unsupported, [&] { (void)read_array(path + ":gamma"); }), expected);
    EXPECT_EQ(error_of(ErrorCode::Unsupported, [&] { const Checkpoint checkpoint(path + ":member"); }),
              expected);
  }
  // TensorFlow names a checkpoint by what its files begin with.
  EXPECT_NE(complaint(ErrorCode::Unsupported, scratch / "m").find("TensorFlow checkpoint"),
            std::string::npos);
}

TEST(Checkpoint, CannotListAFolderOfAnotherUser) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser lists every folder";
  const Scratch scratch;
  fs::create_directory(scratch / "closed");
  fs::permissions(scratch / "closed", fs::perms::owner_exec);
  EXPECT_EQ(complaint(ErrorCode::Io, scratch / "closed"), "cannot be listed: Permission denied");
}

TEST(Checkpoint, NamesFormatsItDoesNotRead) {
  const Scratch scratch;
  const auto expect = [&scratch](const std::string& name, const std::string& content,
                                 const std::string& format, const std::string& advice) {
    put(scratch / name, content);
    EXPECT_EQ(complaint(ErrorCode::Unsupported, scratch / name),
              "format is " + format + ", expected safetensors, GGUF, ONNX, PyTorch or NumPy .npz" + advice);
  };
  const std::string convert_model = "; export the model to ONNX or safetensors";
  expect("saved_model.pb", "\x0a\x10", "TensorFlow SavedModel",
         "; convert its weights, variables/variables.index, or export the model to ONNX or safetensors");
  expect("model.ckpt.data-00000-of-00001", "abc", "data file of a TensorFlow checkpoint",
         "; convert the .index file beside it");
  expect("a.mlmodel", "", "Core ML", convert_model);
  expect("a.mlpackage", "", "Core ML", convert_model);
  expect("a.engine", "", "TensorRT engine", convert_model);
  expect("a.plan", "", "TensorRT engine", convert_model);
  expect("page.safetensors", "\n<!DOCTYPE HTML>", "HTML page", "; download the file itself, not its page");
  expect("a.safetensors.gz", "\x1f\x8b\x08", "compressed or tar archive", "; unpack it first");
  expect("pulled_without_lfs.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
         "Git LFS pointer", "; fetch the file with `git lfs pull`");
  expect("a.npy", "\x93NUMPY\1", "NumPy array", "");
  expect("train-images-idx3-ubyte", "", "IDX array", "");
  expect("train-images-idx3-ubyte.gz", "\x1f\x8b\x08", "IDX array", "");
  for (const char* begin : {"\x28\xb5\x2f\xfd", "7z\xbc\xaf\x27\x1c", "BZh9",
                            "\xfd"
                            "7zXZ"}) {
    expect("packed", begin, "compressed or tar archive", "; unpack it first");
  }
  expect("packed", std::string(257, 'x') + "ustar\0"s, "compressed or tar archive", "; unpack it first");
  // Bytes that begin as those of a pickle, an ONNX model and a tar archive do.
  for (const std::string& begin :
       {"\x80\1"s, "\x80\6"s, "\x80"s, "\x08\0\x12"s, "\x08\x20\x12"s, "\x08\7\x13"s, "\x08\7"s,
        std::string(257, 'x') + "ustar", std::string(300, 'x'), " "s, ""s, "{\"a\":1}"s}) {
    expect("model", begin, "not known", "");
  }
}

TEST(Checkpoint, OpensTheSnapshotOfAHubCache) {
  const Scratch scratch;
  const fs::path folder = scratch / "models--org--small.model";
  for (const char* revision : {"abc1", "abc2"}) {
    fs::create_directories(folder / "snapshots" / revision);
    put(folder / "snapshots" / revision / "model.safetensors", one_tensor_file(revision));
    put(folder / "snapshots" / revision / "config.json", "{}");
  }
  EXPECT_EQ(complaint(ErrorCode::Argument, folder),
            "has 2 snapshots and no refs/main that names one, expected one; name the snapshot to open");
  fs::create_directories(folder / "refs");
  for (const char* hostile : {"../../..", "", "abc3"}) {
    put(folder / "refs/main", hostile);
    EXPECT_THROW(Checkpoint{folder}, Error) << hostile;
  }
  put(folder / "refs/main", "abc2\n");
  EXPECT_NE(Checkpoint(folder).find("abc2"), nullptr);
  EXPECT_EQ(Checkpoint(folder).config_text(), "{}");

  const test::Environment hub("HF_HUB_CACHE", scratch.folder().string());
  EXPECT_NE(Checkpoint("org/small.model").find("abc2"), nullptr);
  for (const char* name : {"org/../org", "small.model"}) {
    EXPECT_EQ(error_of(ErrorCode::Io, [&] { Checkpoint checkpoint{name}; }).find("checkpoint: "),
              std::string::npos);
  }
  for (const std::string name : {"other", "org/other-1.5B"}) {
    const std::string entry = "models--" + (name == "other" ? name : "org--other-1.5B");
    EXPECT_EQ(error_of(ErrorCode::Io, [&] { Checkpoint checkpoint{name}; }),
              "checkpoint: " + name +
                  ": no such file or folder, and no model of that name in the hub's cache (" +
                  (scratch / entry).string() + ")");
  }
}

TEST(Checkpoint, TakesARevisionOfAHubCacheByItsName) {
  const Scratch scratch;
  const fs::path folder = scratch / "models--m";
  const std::string revision = "Az09._-";
  for (const std::string& name :
       {revision, std::string(64, 'a'), std::string(65, 'a'), std::string("a b"), std::string("a@b"),
        std::string("a[b"), std::string("a~b"), std::string("a+b")}) {
    fs::create_directories(folder / "snapshots" / name);
    put(folder / "snapshots" / name / "model.safetensors", one_tensor_file(name));
  }
  fs::create_directories(folder / "refs");
  for (const char* name : {".", "..", "a b", "a@b", "a[b", "a~b", "a+b"}) {
    put(folder / "refs/main", name);
    EXPECT_EQ(complaint(ErrorCode::Argument, folder).rfind("has 8 snapshots and no refs/main", 0), 0U)
        << name;
  }
  put(folder / "refs/main", std::string(65, 'a'));
  EXPECT_EQ(complaint(ErrorCode::Argument, folder).rfind("has 8 snapshots and no refs/main", 0), 0U);
  for (const std::string& name : {revision, std::string(64, 'a')}) {
    put(folder / "refs/main", name == revision ? name + "\r\n" : name);
    EXPECT_NE(Checkpoint(folder / "").find(name), nullptr) << name;
  }
}

TEST(Checkpoint, TakesTheOnlySnapshotOfAHubCache) {
  const Scratch scratch;
  const fs::path folder = scratch / "models--m";
  fs::create_directories(folder / "snapshots" / "1");
  put(folder / "snapshots" / "1" / "model.safetensors", one_tensor_file("a"));
  EXPECT_NE(Checkpoint(folder).find("a"), nullptr);
  // A folder of that name need not be a hub's cache.
  fs::create_directories(scratch / "models--own");
  put(scratch / "models--own" / "model.safetensors", one_tensor_file("b"));
  EXPECT_NE(Checkpoint(scratch / "models--own").find("b"), nullptr);
}

TEST(Checkpoint, FindsTheHubsCacheByTheEnvironment) {
  const Scratch scratch;
  const auto put_model = [&scratch](const std::string& cache) {
    const fs::path snapshot = scratch.folder() / cache / "models--org--m" / "snapshots" / "1";
    fs::create_directories(snapshot);
    put(snapshot / "model.safetensors", one_tensor_file(cache));
  };
  for (const char* cache :
       {"hub_cache", "hf_home/hub", "xdg/huggingface/hub", "home/.cache/huggingface/hub"}) {
    put_model(cache);
  }
  const auto path = [&scratch](const char* name) { return (scratch / name).string(); };
  // From the last that is asked to the first.
  const test::Environment no_hub("HF_HUB_CACHE", std::nullopt);
  const test::Environment no_hf("HF_HOME", "");
  const test::Environment no_xdg("XDG_CACHE_HOME", std::nullopt);
  const test::Environment no_home("HOME", std::nullopt);
  EXPECT_EQ(complaint(ErrorCode::Io, "org/m"), "file: org/m: cannot be opened: No such file or directory");
  const test::Environment home("HOME", path("home"));
  EXPECT_NE(Checkpoint("org/m").find("home/.cache/huggingface/hub"), nullptr);
  const test::Environment xdg("XDG_CACHE_HOME", path("xdg"));
  EXPECT_NE(Checkpoint("org/m").find("xdg/huggingface/hub"), nullptr);
  const test::Environment hf("HF_HOME", path("hf_home"));
  EXPECT_NE(Checkpoint("org/m").find("hf_home/hub"), nullptr);
  const test::Environment hub("HF_HUB_CACHE", path("hub_cache"));
  EXPECT_NE(Checkpoint("org/m").find("hub_cache"), nullptr);
}

TEST(Checkpoint, HasMembersOnlyInFilesOfPyTorch) {
  const Scratch scratch;
  put(scratch / "m.onnx", "");
  const std::string path = (scratch / "m.onnx").string();
  EXPECT_EQ(error_of(ErrorCode::Argument, [&] { const Checkpoint checkpoint(path + ":model"); }),
            "checkpoint: " + path +
                ": is ONNX, expected a PyTorch file, whose members have names; found \"model\"");
}

TEST(Checkpoint, HasNoFileWithAColonInItsName) {
  for (const char* name : {":m.safetensors", "a:b:m.safetensors"}) {
    EXPECT_EQ(complaint(ErrorCode::Io, name),
              "file: " + std::string(name) + ": cannot be opened: No such file or directory");
  }
}

TEST(Checkpoint, TrustsContentBeforeNames) {
  const Scratch scratch;
  put(scratch / "model.bin", one_tensor_file("a"));
  EXPECT_NE(Checkpoint(scratch / "model.bin").find("a"), nullptr);
}

TEST(Checkpoint, IsNotFooledByAHeaderLengthThatLooksLikeAnotherFormat) {
  const Scratch scratch;
  // 0x0280 begins like a pickle, 0x120708 like an ONNX model.
  for (const std::size_t length : {0x0280u, 0x120708u}) {
    std::string header = R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})";
    header.resize(length, ' ');
    put(scratch / "x.bin", test::safetensors_file(header));
    EXPECT_NE(Checkpoint(scratch / "x.bin").find("a"), nullptr) << length;
  }
}

TEST(Checkpoint, NamesTheFileInEveryComplaint) {
  const Scratch scratch;
  put(scratch / "x.safetensors", "not a checkpoint");
  EXPECT_EQ(complaint(ErrorCode::Format, scratch / "x.safetensors"),
            "safetensors: " + (scratch / "x.safetensors").string() +
                ": header length is 7521891404167278446, expected at most 100000000");
  EXPECT_EQ(complaint(ErrorCode::Io, scratch / "none"),
            "file: " + (scratch / "none").string() + ": cannot be opened: No such file or directory");
}

TEST(Checkpoint, DoesNotWaitForAPipe) {
  const Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "model.safetensors").c_str(), 0600), 0);
  complaint(ErrorCode::Io, scratch / "model.safetensors");
  complaint(ErrorCode::Io, scratch.folder());
}

TEST(Checkpoint, OpensEveryRealCheckpoint) {
  NORMSCOPE_NEED_DATA(folder, "checkpoints");
  std::size_t opened = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const Checkpoint checkpoint(entry.path());
    EXPECT_FALSE(checkpoint.tensors().empty()) << entry.path();
    ++opened;
  }
  EXPECT_GT(opened, 0u);
}

TEST(Checkpoint, DecodesRealWeights) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/gpt2_small_without_mlp");
  const Checkpoint checkpoint(path);
  const std::vector<double> gain = read(*checkpoint.find("ln_f.weight"));
  ASSERT_EQ(gain.size(), 768u);
  EXPECT_FLOAT_EQ(static_cast<float>(*std::max_element(gain.begin(), gain.end())), 17.419317f);
  EXPECT_TRUE(checkpoint.config_text().has_value());
}

TEST(Checkpoint, OpensAHugeSparseFileWithoutReadingIt) {
  const Scratch scratch;
  const std::uint64_t size = (std::uint64_t{1} << 32) + 5;
  const fs::path path = scratch / "huge.safetensors";
  const std::string header = R"({"a":{"dtype":"U8","shape":[)" + std::to_string(size) +
                             R"(],"data_offsets":[0,)" + std::to_string(size) + "]}}";
  put(path, test::safetensors_file(header));
  std::error_code error;
  fs::resize_file(path, 8 + header.size() + size, error);
  if (error) GTEST_SKIP() << "no files over 4 GiB here: " << error.message();

  const auto begin = std::chrono::steady_clock::now();
  const Checkpoint checkpoint(path);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  const Tensor& tensor = checkpoint.tensors()[0];
  EXPECT_EQ(tensor.elements(), size);
  EXPECT_EQ(read(tensor, size - 2, 2), (std::vector<double>{0, 0}));
}

TEST(Checkpoint, AConfigThatIsADanglingLinkIsAnError) {
  const test::Scratch scratch;
  const float gain[2] = {1.0F, 2.0F};
  const std::vector<NewTensor> tensors{{"w", Dtype::F32, {2}, std::as_bytes(std::span(gain))}};
  write_safetensors(scratch / "model.safetensors", tensors);
  std::filesystem::create_symlink("gone.json", scratch / "config.json");
  EXPECT_THROW(Checkpoint(scratch.folder()), Error);
}

}  // namespace
}  // namespace normscope::files
