#include <normscope/core/places.hpp>

#include <system_error>

#include <normscope/core/file.hpp>

namespace normscope {
namespace {

namespace fs = std::filesystem;

/// The nearest folder or file on the way to a path that exists, and the rest of the way.
struct Place {
  fs::path existing;
  fs::path rest{};
};

Place place_of(const fs::path& path) {
  std::error_code missing;
  // Links are followed as far as they lead to something, so that parents are those of the file itself.
  fs::path whole = fs::weakly_canonical(path, missing);
  if (missing) whole = spelled_out(path);
  Place place{spelled_out(whole)};
  if (place.existing.has_relative_path() && !place.existing.has_filename()) {
    place.existing = place.existing.parent_path();
  }
  while (!fs::exists(place.existing, missing) && place.existing.has_relative_path()) {
    place.rest = place.rest.empty() ? place.existing.filename() : place.existing.filename() / place.rest;
    place.existing = place.existing.parent_path();
  }
  return place;
}

bool is_same_existing(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  return fs::equivalent(a, b, missing);
}

}  // namespace

bool is_same_place(const fs::path& a, const fs::path& b) {
  const Place first = place_of(a);
  const Place second = place_of(b);
  return first.rest == second.rest &&
         (first.existing == second.existing || is_same_existing(first.existing, second.existing));
}

bool lies_within(const fs::path& path, const fs::path& folder) {
  if (is_same_place(path, folder)) return true;
  fs::path parent = place_of(path).existing;
  while (!is_same_existing(parent, folder)) {
    if (!parent.has_relative_path()) return false;
    parent = parent.parent_path();
  }
  return true;
}

}  // namespace normscope
