#include <unistd.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "../../src/rewrite/output_files.hpp"
#include "rewrite/copy.hpp"
#include "rewrite/stored_parts.hpp"
#include "support/environment.hpp"
#include "support/files.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using test::Copy;
using test::error_of;
using test::fixture;
using test::parts_of;
using test::Rewritten;
using test::Scratch;

const Options gains_folded{.fold_gains = true};
const Options head_separated{.fold_gains = true, .untie = true};

testing::AssertionResult has_text(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" has no \"" << part << "\"";
}

/// Writes the folded fixture to `to`; `meanwhile` runs once, when the first bytes are written.
void write_folded(const files::Checkpoint& source, const fs::path& to,
                  const std::function<void()>& meanwhile = {}) {
  const models::Model model = models::describe(source);
  const Plan plan = make_plan(source, model, gains_folded);
  bool is_done = false;
  const Progress progress([&](auto, auto, auto) {
    if (meanwhile && !is_done) meanwhile();
    return is_done = true;
  });
  static_cast<void>(write(source, model, plan, to, 1, progress));
}

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

TEST(RewriteOutput, NamesThatCannotBeWrittenAreRefused) {
  const Scratch scratch;
  const files::Checkpoint folder = Copy(fixture("llama")).open(scratch / "in");
  const files::Checkpoint file(scratch / "in/model.safetensors");
  const auto refusal = [&](const files::Checkpoint& source, const fs::path& to, ErrorCode code) {
    return error_of(code, [&] { write_folded(source, to); });
  };
  test::put(scratch / "file", "text");
  EXPECT_TRUE(has_text(refusal(folder, scratch / "file", ErrorCode::Argument),
                       "exists, expected the name of a new folder or an empty one"));
  fs::create_directory(scratch / "empty");
  EXPECT_TRUE(has_text(refusal(file, scratch / "empty", ErrorCode::Argument),
                       "is a folder, expected the name of a file"));
  EXPECT_TRUE(has_text(refusal(folder, scratch / "none/out", ErrorCode::Io), "its parent is not a folder"));
  EXPECT_TRUE(has_text(refusal(folder, scratch / std::string(250, 'n'), ErrorCode::Io),
                       "cannot be created: File name too long"));
  fs::create_symlink(scratch / "in/model.safetensors", scratch / "link.safetensors");
  EXPECT_TRUE(has_text(refusal(file, scratch / "link.safetensors", ErrorCode::Argument),
                       "is the input, expected another name"));
  EXPECT_EQ(entries_of(scratch.folder()), 4U) << "nothing else is left";
}

TEST(RewriteOutput, ANameMayEndWithASlash) {
  const Scratch scratch;
  write_folded(Copy(fixture("llama")).open(scratch / "in"), scratch / "out/");
  EXPECT_TRUE(fs::exists(scratch / "out/model.safetensors"));
  EXPECT_EQ(entries_of(scratch.folder()), 2U);
}

TEST(RewriteOutput, IsNotPutIntoWhatAppearedMeanwhile) {
  const Scratch scratch;
  const files::Checkpoint folder = Copy(fixture("llama")).open(scratch / "in");
  const files::Checkpoint file(scratch / "in/model.safetensors");
  EXPECT_TRUE(has_text(error_of(ErrorCode::Io,
                                [&] {
                                  write_folded(folder, scratch / "out", [&] {
                                    fs::create_directory(scratch / "out");
                                    test::put(scratch / "out/mine", "text");
                                  });
                                }),
                       "cannot be created: "));
  EXPECT_EQ(entries_of(scratch / "out"), 1U);
  // The recipe comes before the weights.
  EXPECT_TRUE(has_text(error_of(ErrorCode::Io,
                                [&] {
                                  write_folded(file, scratch / "w.safetensors", [&] {
                                    fs::create_directory(scratch / "w.safetensors.rewrite.undo");
                                  });
                                }),
                       "cannot be created: "));
  EXPECT_FALSE(fs::exists(scratch / "w.safetensors"));
}

TEST(RewriteOutput, FoldersInTheInputAreNotCopied) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("llama")).open(scratch / "in");
  fs::create_directory(scratch / "in/original");
  fs::create_symlink("nowhere", scratch / "in/dangling");
  test::put(scratch / "in/vocab.txt", "a");
  const Rewritten rewritten(source, gains_folded, scratch / "out");
  EXPECT_EQ(rewritten.result.not_copied, (std::vector<std::string>{"dangling", "original"}));
  EXPECT_EQ(test::text_of(scratch / "out/vocab.txt"), "a");
}

TEST(RewriteOutput, SmallFilesThatCannotBeCopiedAreErrors) {
  const Scratch scratch;
  fs::create_directories(scratch / "from");
  fs::create_directories(scratch / "to/vocab.txt");
  test::put(scratch / "from/vocab.txt", "a");
  EXPECT_TRUE(
      has_text(error_of(ErrorCode::Io,
                        [&] { static_cast<void>(copy_small_files(scratch / "from", scratch / "to", {})); }),
               "vocab.txt: cannot be copied: "));
  EXPECT_TRUE(
      has_text(error_of(ErrorCode::Io,
                        [&] { static_cast<void>(copy_small_files(scratch / "none", scratch / "to", {})); }),
               "none: cannot be listed: "));
}

TEST(RewriteOutput, ASingleFileStatesWhatItsConfigurationMustSay) {
  const Scratch scratch;
  static_cast<void>(Copy(fixture("gpt2")).open(scratch / "in"));
  const files::Checkpoint file(scratch / "in/model.safetensors");
  const Rewritten rewritten(file, head_separated, scratch / "out.safetensors");
  ASSERT_EQ(rewritten.result.configuration.size(), 1U);
  EXPECT_TRUE(has_text(rewritten.result.configuration[0], "must set \"tie_word_embeddings\" to false"));
  EXPECT_NE(rewritten.output.find("lm_head.weight"), nullptr);
  const Rewritten tied(file, gains_folded, scratch / "tied.safetensors");
  EXPECT_TRUE(tied.result.configuration.empty());
}

TEST(RewriteOutput, TheIndexListsASeparateHead) {
  for (const char* metadata :
       {"", "\"metadata\": 3, ", "\"metadata\": {}, ", "\"metadata\": {\"total_size\": \"large\"}, ",
        "\"metadata\": {\"total_size\": 1000}, "}) {
    const Scratch scratch;
    static_cast<void>(Copy(fixture("gpt2")).open(scratch / "in", 2));
    const fs::path index = scratch / "in/model.safetensors.index.json";
    std::string text = test::text_of(index);
    const std::string old = "\"metadata\": {\"total_size\": 0}, ";
    text.replace(text.find(old), old.size(), metadata);
    test::put(index, text);
    const Rewritten rewritten(files::Checkpoint(scratch / "in"), head_separated, scratch / "out");
    const auto before = nlohmann::json::parse(text);
    const auto after = nlohmann::json::parse(test::text_of(scratch / "out/model.safetensors.index.json"));
    EXPECT_EQ(after["weight_map"]["lm_head.weight"], before["weight_map"]["transformer.wte.weight"]);
    if (std::string(metadata).find("1000") != std::string::npos) {
      EXPECT_EQ(after["metadata"]["total_size"], 1000 + 29 * 18 * 4);
    } else {
      EXPECT_EQ(after.value("metadata", nlohmann::json()), before.value("metadata", nlohmann::json()));
    }
    if (std::string(metadata).empty()) {
      static_cast<void>(undo(rewritten.output, scratch / "back"));
      EXPECT_EQ(test::text_of(scratch / "back/model.safetensors.index.json"), text);
    }
  }
}

// A head that is stored, equal to the token embedding, is there already.
TEST(RewriteOutput, AStoredCopyOfTheTableBecomesTheHead) {
  const Scratch scratch;
  Copy copy(fixture("gpt2"));
  copy.tensors["lm_head.weight"] = copy.tensors.at("transformer.wte.weight");
  const files::Checkpoint source = copy.open(scratch / "in");
  const Rewritten rewritten(source, head_separated, scratch / "out");
  ASSERT_TRUE(rewritten.plan.untied);
  EXPECT_EQ(rewritten.plan.untied->bytes, 0U);
  EXPECT_EQ(rewritten.output.tensors().size(), source.tensors().size());
  const std::vector<double> gain = read(*source.find("transformer.ln_f.weight"));
  const std::vector<double> table = read(*source.find("transformer.wte.weight"));
  EXPECT_EQ(read(*rewritten.output.find("transformer.wte.weight")), table);
  const std::vector<double> head = read(*rewritten.output.find("lm_head.weight"));
  for (std::size_t at = 0; at < head.size(); ++at) {
    EXPECT_FLOAT_EQ(static_cast<float>(head[at]), static_cast<float>(table[at] * gain[at % gain.size()]));
  }
  static_cast<void>(undo(rewritten.output, scratch / "back"));
  EXPECT_EQ(files::Checkpoint(scratch / "back").tensors().size(), source.tensors().size());
}

TEST(RewriteOutput, AHeadWithoutAnyEditIsAChange) {
  const Scratch scratch;
  const Rewritten rewritten(files::Checkpoint(fixture("gpt2")), {.untie = true}, scratch / "out");
  EXPECT_TRUE(rewritten.plan.edits.empty());
  EXPECT_EQ(rewritten.result.recipe, "rewrite.undo");
  EXPECT_NE(rewritten.output.find("lm_head.weight"), nullptr);
  static_cast<void>(undo(rewritten.output, scratch / "back"));
  EXPECT_EQ(files::Checkpoint(scratch / "back").find("lm_head.weight"), nullptr);
}

TEST(RewriteOutput, AnIndexMayBeNamed) {
  const Scratch scratch;
  static_cast<void>(Copy(fixture("gpt2")).open(scratch / "in", 2));
  const files::Checkpoint source(scratch / "in/model.safetensors.index.json");
  const Rewritten rewritten(source, head_separated, scratch / "out");
  EXPECT_EQ(rewritten.output.files().size(), 2U);
  EXPECT_TRUE(fs::exists(scratch / "out/config.json"));
  EXPECT_TRUE(has_text(error_of(ErrorCode::Argument, [&] { write_folded(source, scratch / "in"); }),
                       "is the input, expected another name"));
}

// A file of any name that holds the JSON of an index.
TEST(RewriteOutput, AnIndexOfAnotherNameListsASeparateHead) {
  for (const char* name : {"weights.index.json", "shards.json"}) {
    const Scratch scratch;
    static_cast<void>(Copy(fixture("gpt2")).open(scratch / "in", 2));
    fs::rename(scratch / "in/model.safetensors.index.json", scratch / "in" / name);
    const files::Checkpoint source(scratch / "in" / name);
    const models::Model model = models::describe(source);
    const Plan plan = make_plan(source, model, head_separated);
    const std::vector<Activations> activations = {{0, 1, std::vector<double>(18, 0.5)}};
    const Result result = write(source, model, plan, scratch / "out", 1, {}, {}, activations);
    EXPECT_EQ(result.on_rows.size(), 1U);
    const files::Checkpoint output(scratch / "out" / name);
    EXPECT_EQ(output.files().size(), 2U);
    EXPECT_EQ(output.tensors().size(), source.tensors().size() + 1);
    EXPECT_NE(output.find("lm_head.weight"), nullptr);
    static_cast<void>(undo(output, scratch / "back"));
    EXPECT_EQ(test::text_of(scratch / "back" / name), test::text_of(scratch / "in" / name));
  }
}

// Named as in the cache of downloads, a model is a folder too.
TEST(RewriteOutput, EveryShardOfAModelInTheCacheIsWritten) {
  const Scratch scratch;
  const test::Environment cache("HF_HUB_CACHE", scratch.folder().string());
  static_cast<void>(Copy(fixture("llama")).open(scratch / "models--org--name/snapshots/1", 3));
  for (const fs::path& name : {fs::path("org/name"), scratch / "models--org--name"}) {
    const fs::path to = scratch / ("out." + std::to_string(entries_of(scratch.folder())));
    const Rewritten rewritten(files::Checkpoint(name), gains_folded, to);
    EXPECT_EQ(rewritten.output.files().size(), 3U) << name;
    EXPECT_TRUE(rewritten.output.config_text()) << name;
    EXPECT_TRUE(fs::exists(to / "rewrite.undo")) << name;
  }
}

TEST(RewriteOutput, AnIndexOfTheCurrentFolderMayBeNamed) {
  const Scratch scratch;
  static_cast<void>(Copy(fixture("llama")).open(scratch / "in", 2));
  struct Back {
    fs::path folder = fs::current_path();
    ~Back() { fs::current_path(folder); }
  } const back;
  fs::current_path(scratch / "in");
  const Rewritten rewritten(files::Checkpoint("model.safetensors.index.json"), gains_folded, "../out");
  EXPECT_EQ(rewritten.output.files().size(), 2U);
  EXPECT_TRUE(fs::exists(scratch / "out/config.json"));
}

TEST(RewriteOutput, TheRowsOfASingleFileAreTried) {
  const Scratch scratch;
  static_cast<void>(Copy(fixture("llama")).open(scratch / "in"));
  for (const char* name : {"in", "in/model.safetensors"}) {
    const files::Checkpoint source(scratch / name);
    const models::Model model = models::describe(source);
    const Plan plan = make_plan(source, model, gains_folded);
    const std::vector<Activations> activations = {{0, 2, std::vector<double>(32, 0.5)}};
    const fs::path to = scratch / (std::string("out.") + std::to_string(entries_of(scratch.folder())));
    const Result result = write(source, model, plan, to, 1, {}, {}, activations);
    ASSERT_EQ(result.on_rows.size(), 1U) << name;
    EXPECT_EQ(result.on_rows[0].tried, 2U);
    EXPECT_LE(result.on_rows[0].readers.at(0).relative, 1e-6);
  }
}

/// The work folder of an output as a killed process leaves it, with one finished file.
void leave_work(const Scratch& scratch, const Digest& run, const Written& written,
                const std::string& name = "a.safetensors") {
  const fs::path work = scratch / ".normscope-rewrite-out";
  {
    WorkFolder folder(scratch / "out", true, run);
    test::put(folder.files() / name, "weights");
    folder.keep(name, fingerprint_of(folder.files() / name), written);
    fs::copy(work, scratch / "aside", fs::copy_options::recursive);
  }
  fs::rename(scratch / "aside", work);
}

TEST(RewriteWorkFolder, FinishedFilesAreTakenOver) {
  const Scratch scratch;
  const Digest run{};
  Written written;
  written.certificates.push_back({.tensor = "w", .change = Change::center, .norm = "n", .bound = 0.5});
  written.parts.push_back({.edit = 3, .means = {1.0, 2.0}, .at = {7}, .roundings = 0.25});
  leave_work(scratch, run, written);
  {
    const WorkFolder folder(scratch / "out", true, run);
    const Written* const found = folder.finished("a.safetensors");
    ASSERT_NE(found, nullptr);
    ASSERT_EQ(found->certificates.size(), 1U);
    EXPECT_EQ(found->certificates[0].tensor, "w");
    EXPECT_EQ(found->certificates[0].change, Change::center);
    EXPECT_EQ(found->certificates[0].bound, 0.5);
    ASSERT_EQ(found->parts.size(), 1U);
    EXPECT_EQ(found->parts[0].means, (std::vector<double>{1.0, 2.0}));
    EXPECT_EQ(found->parts[0].at, std::vector<std::uint64_t>{7});
    EXPECT_EQ(folder.finished("b.safetensors"), nullptr);
  }
  EXPECT_EQ(entries_of(scratch.folder()), 0U);
}

TEST(RewriteWorkFolder, ChangedFilesAreNotTakenOver) {
  for (const char* text : {"weight", "weightS"}) {
    const Scratch scratch;
    leave_work(scratch, {}, {});
    test::put(scratch / ".normscope-rewrite-out/files/a.safetensors", text);
    const WorkFolder folder(scratch / "out", true, {});
    EXPECT_EQ(folder.finished("a.safetensors"), nullptr) << text;
    EXPECT_EQ(entries_of(folder.files()), 0U);
  }
  const Scratch scratch;
  leave_work(scratch, {}, {});
  Digest other{};
  other[0] = std::byte{1};
  const WorkFolder folder(scratch / "out", true, other);
  EXPECT_EQ(folder.finished("a.safetensors"), nullptr);
}

TEST(RewriteWorkFolder, AnotherWriterHoldsItsFolder) {
  const Scratch scratch;
  const WorkFolder first(scratch / "out", true, {});
  EXPECT_TRUE(has_text(error_of(ErrorCode::Io, [&] { const WorkFolder second(scratch / "out", true, {}); }),
                       "cannot be locked: another process writes it"));
  EXPECT_TRUE(fs::exists(first.files()));
}

TEST(RewriteWorkFolder, WhatKilledProcessesLeftIsRemoved) {
  const Scratch scratch;
  const auto stale = [&](const std::string& name) {
    const fs::path folder = scratch / (".normscope-rewrite-" + name);
    fs::create_directory(folder);
    return folder;
  };
  const fs::path empty = stale("empty");
  const fs::path unfinished = stale("unfinished");
  test::put(unfinished / "progress", "text");
  const fs::path resumable = stale("resumable");
  test::put(resumable / "progress", "text");
  fs::create_directory(resumable / "files");
  const fs::path locked = stale("locked");
  const FolderLock lock(locked);
  fs::create_directory(scratch / ".another");
  { const WorkFolder folder(scratch / "out", true, {}); }
  EXPECT_FALSE(fs::exists(empty));
  EXPECT_FALSE(fs::exists(unfinished));
  EXPECT_TRUE(fs::exists(resumable));
  EXPECT_TRUE(fs::exists(locked));
  EXPECT_TRUE(fs::exists(scratch / ".another"));
}

TEST(RewriteWorkFolder, FoldersOfOtherUsersStay) {
  const Scratch scratch;
  const fs::path other = scratch / ".normscope-rewrite-other";
  fs::create_directory(other);
  if (::chown(other.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  { const WorkFolder folder(scratch / "out", true, {}); }
  EXPECT_TRUE(fs::exists(other));
}

// A record that another plan made under the name of this run.
TEST(RewriteWorkFolder, PartsOfAnotherPlanAreRefused) {
  const Scratch scratch;
  const files::Checkpoint source = Copy(fixture("llama")).open(scratch / "in", 2);
  const models::Model model = models::describe(source);
  const Plan plan = make_plan(source, model, gains_folded);
  Written written;
  written.parts.push_back({.edit = plan.edits.size()});
  leave_work(scratch, run_of(source, "rewrite " + plan_id(source, plan)), written, "model-1.safetensors");
  EXPECT_TRUE(has_text(
      error_of(ErrorCode::Format, [&] { static_cast<void>(write(source, model, plan, scratch / "out")); }),
      "what an earlier process left is of another plan"));
  EXPECT_EQ(entries_of(scratch.folder()), 1U);
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Text in which every position is distinguishable.
std::string long_text(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

void push(WriteBehind& behind, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), behind.room(bytes.size()).begin());
}

TEST(WriteBehind, PiecesOfAllSizesArriveInTheirOrder) {
  const std::string text = long_text(5'000'000);
  std::string written;
  const std::size_t begin = 5000;
  WriteBehind behind(
      [&](std::span<const std::byte> bytes) {
        const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
        EXPECT_EQ((address - begin - written.size()) % WriteBehind::page, 0U);
        written.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      },
      begin);
  const std::span<const std::byte> all = bytes_of(text);
  for (std::size_t at = 0, size = 1; at < all.size(); at += size, size = size * 7 % 1'500'000 + 1) {
    push(behind, all.subspan(at, std::min(size, all.size() - at)));
  }
  behind.finish();
  EXPECT_TRUE(written == text);
}

TEST(WriteBehind, ErrorsComeBack) {
  WriteBehind behind([](std::span<const std::byte>) { throw std::runtime_error("disk full"); });
  const std::string piece(2'000'000, 'x');
  EXPECT_THROW(
      {
        for (int i = 0; i < 3; ++i) push(behind, bytes_of(piece));
        behind.finish();
      },
      std::runtime_error);
}

TEST(WriteBehind, AnErrorOfTheLastPieceComesBack) {
  WriteBehind behind([](std::span<const std::byte>) { throw std::runtime_error("disk full"); });
  push(behind, bytes_of("short"));
  EXPECT_THROW(behind.finish(), std::runtime_error);
}

TEST(WriteBehind, UnwrittenBytesMayBeDropped) {
  std::size_t written = 0;
  {
    WriteBehind behind([&](std::span<const std::byte> bytes) { written += bytes.size(); });
    push(behind, bytes_of("short"));
  }
  EXPECT_EQ(written, 0U);
}

TEST(Fingerprint, DoesNotDependOnThePieces) {
  const std::string text = long_text(1000);
  Fingerprint whole;
  whole.add(bytes_of(text));
  for (std::size_t size = 1; size < 80; ++size) {
    Fingerprint pieces;
    for (std::size_t at = 0; at < text.size(); at += size)
      pieces.add(bytes_of(text).subspan(at).first(std::min(size, text.size() - at)));
    ASSERT_EQ(pieces.value(), whole.value()) << size;
  }
}

TEST(Fingerprint, NoticesEveryByteAndTheLength) {
  std::string text = long_text(100);
  Fingerprint before;
  before.add(bytes_of(text));
  for (char& letter : text) {
    letter ^= 1;
    Fingerprint changed;
    changed.add(bytes_of(text));
    EXPECT_NE(changed.value(), before.value());
    letter ^= 1;
  }
  Fingerprint longer;
  longer.add(bytes_of(text + std::string(1, '\0')));
  EXPECT_NE(longer.value(), before.value());
}

}  // namespace

}  // namespace normscope::rewrite
