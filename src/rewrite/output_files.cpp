#include "output_files.hpp"

#include <future>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/version.hpp>

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using files::Checkpoint;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

[[noreturn]] void refuse_name(const fs::path& output, const char* what) {
  throw Error(ErrorCode::Argument, fmt::format("rewrite: {}: {}", output.string(), what));
}

}  // namespace

Places::Places(const Checkpoint& checkpoint, const fs::path& to)
    : is_folder(checkpoint.files().front() != checkpoint.path()), output(to) {
  std::error_code ignored;
  // All files of weights are in the folder of the index.
  from = is_folder ? folder_of(checkpoint.files().front()) : checkpoint.path();
  const bool names_index = is_folder && fs::is_regular_file(checkpoint.path(), ignored);
  index = names_index ? checkpoint.path().filename() : fs::path("model.safetensors.index.json");
  if (is_same_place(from, output)) {
    refuse_name(output, "is the input, expected another name");
  }
  if (is_folder && lies_within(output, from)) {
    refuse_name(output, "is in the input, expected a name outside of it");
  }
}

fs::path Places::name_of(const fs::path& file) const {
  return is_folder ? file.filename() : output.filename();
}

Digest run_of(const Checkpoint& checkpoint, const std::string& options) {
  std::string text = fmt::format("{}\n{}\n", version, options);
  for (const fs::path& file : checkpoint.files()) {
    text += fmt::format("{} {} {}\n", spelled_out(file).string(), fs::file_size(file),
                        fs::last_write_time(file).time_since_epoch().count());
  }
  return sha256(std::as_bytes(std::span(text)));
}

UnchangedFiles files_of(const Checkpoint& checkpoint) {
  UnchangedFiles noted;
  for (const fs::path& file : checkpoint.files()) noted.note(file);
  return noted;
}

Written ShardWriter::write_all(const Checkpoint& checkpoint, const Places& places, WorkFolder& work,
                               const Progress& progress) {
  std::size_t done = 0;
  const auto& files = checkpoint.files();
  // `work` belongs to the thread that commits, once there is one.
  std::vector<const Written*> finished;
  for (const fs::path& file : files) finished.push_back(work.finished(places.name_of(file).string()));
  std::vector<Written> each(files.size());
  std::future<void> committing;  // of the file before: its last bytes reach the disk during the next one
  for (std::size_t index = 0; index < files.size(); ++index) {
    const fs::path& file = files[index];
    const fs::path name = places.name_of(file);
    Written& written = each[index];
    if (finished[index] != nullptr) {
      written = *finished[index];
      ++taken_over;
      done += static_cast<std::size_t>(fs::file_size(work.files() / name));
    } else {
      const auto fingerprint = std::make_shared<Fingerprint>();
      const auto output = std::make_shared<files::SafetensorsWriter>(
          work.files() / name, headers(file), metadata,
          [fingerprint](std::span<const std::byte> bytes) { fingerprint->add(bytes); });
      WriteBehind behind([&](std::span<const std::byte> bytes) { output->write(bytes); });
      for (const files::TensorHeader& tensor : output->order()) {
        write(
            tensor,
            [&](std::span<const std::byte> bytes) {
              behind.push(bytes);
              done += bytes.size();
              progress("bytes written", done, total);
            },
            written);
      }
      behind.finish();
      if (committing.valid()) committing.get();
      // Deferred if there is no other thread.
      committing = std::async([&work, &written, output, fingerprint, name, resumes = files.size() > 1] {
        output->commit();
        written.fingerprints = {fingerprint->value()};
        if (resumes) work.keep(name.string(), fingerprint->value(), written);
      });
    }
    names.push_back(name);
  }
  if (committing.valid()) committing.get();
  Written all;
  for (Written& written : each) {
    for (Certificate& certificate : written.certificates) all.certificates.push_back(std::move(certificate));
    for (UndoPart& part : written.parts) all.parts.push_back(std::move(part));
    all.fingerprints.insert(all.fingerprints.end(), written.fingerprints.begin(), written.fingerprints.end());
  }
  return all;
}

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_text(const fs::path& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace normscope::rewrite
