#include "output_files.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/version.hpp>
#include <normscope/norm/norm.hpp>

#include "matrix.hpp"

namespace normscope::rewrite {
namespace {

constexpr std::uint64_t seed = 17;

namespace fs = std::filesystem;
using files::Checkpoint;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

[[noreturn]] void refuse_name(const fs::path& output, const char* what) {
  throw Error(ErrorCode::Argument, fmt::format("rewrite: {}: {}", output.string(), what));
}

}  // namespace

double longest_output(const NormSpec& spec) {
  // The radius for the groups' spheres, or for the cube of elementwise kinds.
  const double blocks = static_cast<double>(spec.elementwise() ? spec.width : spec.groups);
  return (spec.elementwise() ? 1.0 : spec.radius()) * std::sqrt(blocks);
}

std::vector<double> normalized(const NormSpec& spec, std::span<const double> row) {
  NormSpec plain = spec;
  plain.gain.clear();
  plain.bias.clear();
  std::vector<double> result(row.size());
  norm::forward(plain, {row.data(), 1, row.size()}, {result.data(), 1, row.size()});
  return result;
}

std::vector<Probe> norm_probes(const NormSpec& spec) {
  Random random(seed);
  std::array<std::vector<double>, probe_count> rows;
  for (std::vector<double>& row : rows) row.resize(spec.width);
  std::size_t largest = 0;
  std::size_t smallest = 0;
  for (std::size_t j = 0; j < spec.width; ++j) {
    rows[0][j] = random.normal();
    rows[1][j] = (random.bits() & 1U) != 0 ? 1.0 : -1.0;
    if (std::abs(spec.gain_at(j)) > std::abs(spec.gain_at(largest))) largest = j;
    if (std::abs(spec.gain_at(j)) < std::abs(spec.gain_at(smallest))) smallest = j;
  }
  rows[2][largest] = 1e3;
  rows[3][smallest] = -1e3;
  std::vector<Probe> probes(spec.width);
  for (std::size_t k = 0; k < probe_count; ++k) {
    const std::vector<double> output = normalized(spec, rows[k]);
    for (std::size_t j = 0; j < spec.width; ++j) probes[j][k] = output[j];
  }
  return probes;
}

std::vector<Probe> writer_probes(std::span<const double> means, std::size_t least_centered) {
  Random random(seed);
  std::vector<Probe> probes(means.size());
  double largest = 0.0;
  for (const double value : means) largest = std::max(largest, std::abs(value));
  for (std::size_t j = 0; j < means.size(); ++j) {
    const double first = random.normal();
    probes[j] = {first, random.normal(), largest > 0.0 ? means[j] / largest : 0.0,
                 j == least_centered ? 1.0 : 0.0};
  }
  return probes;
}

namespace {

template <std::size_t count>
void mix(std::array<std::uint64_t, count>& lanes, const std::byte* bytes) {
  std::array<std::uint64_t, count> words{};
  std::memcpy(words.data(), bytes, sizeof words);
  for (std::size_t lane = 0; lane < count; ++lane) {
    const std::uint64_t mixed = (lanes[lane] ^ words[lane]) * 0x9e3779b97f4a7c15U;
    lanes[lane] = mixed ^ (mixed >> 29U);
  }
}

}  // namespace

void Fingerprint::add(std::span<const std::byte> bytes) {
  const std::size_t held = size_ % sizeof(Words);
  size_ += bytes.size();
  if (held > 0) {
    const std::size_t taken = std::min(bytes.size(), sizeof(Words) - held);
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < sizeof(Words)) return;
    mix(mixed_, rest_.data());
  }
  for (; bytes.size() >= sizeof(Words); bytes = bytes.subspan(sizeof(Words))) mix(mixed_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

std::uint64_t Fingerprint::value() const {
  Words mixed = mixed_;
  if (const std::size_t held = size_ % sizeof(Words); held > 0) {
    std::array<std::byte, sizeof(Words)> padded{};
    std::copy_n(rest_.begin(), held, padded.begin());
    mix(mixed, padded.data());
  }
  std::uint64_t result = size_;
  for (const std::uint64_t lane : mixed) result = (result ^ lane) * 0xbf58476d1ce4e5b9U;
  return result;
}

std::uint64_t fingerprint_of(const std::filesystem::path& path) {
  const RangedFile file(path);
  std::vector<std::byte> piece(std::size_t{1} << 20U);
  Fingerprint result;
  for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
    const std::span<std::byte> part = std::span(piece).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.size() - at)));
    file.read(at, part);
    result.add(part);
  }
  return result.value();
}

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
      WriteBehind behind([&](std::span<const std::byte> bytes) { output->write(bytes); },
                         fingerprint->size());
      for (const files::TensorHeader& tensor : output->order()) {
        write(
            tensor,
            [&](std::size_t size) {
              progress("bytes written", done, total);
              done += size;
              return behind.room(size);
            },
            written);
      }
      behind.finish();
      progress("bytes written", done, total);
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
