#include "fields.hpp"

#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::certificates {

void Field::refuse(const char* expected) const {
  throw Error(ErrorCode::Format, fmt::format("{}, expected {}", path_, expected));
}

bool Field::has(const char* key) const { return value_->is_object() && value_->contains(key); }

Field Field::operator[](const char* key) const {
  const bool first = !path_.empty() && path_.back() == ' ';
  std::string path = path_ + (first ? "" : ".") + key;
  if (!value_->is_object() || !value_->contains(key)) {
    throw Error(ErrorCode::Format, fmt::format("{} is missing, expected the JSON of this version", path));
  }
  return {(*value_)[key], std::move(path)};
}

Field Field::operator[](std::size_t index) const {
  if (!value_->is_array() || index >= value_->size()) refuse("a longer list");
  return {(*value_)[index], fmt::format("{}[{}]", path_, index)};
}

std::size_t Field::size() const {
  if (!value_->is_array()) refuse("a list");
  return value_->size();
}

double Field::number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) refuse("a number");
  return value_->get<double>();
}

double Field::number_or(double when_null) const { return is_null() ? when_null : number(); }

std::size_t Field::count() const {
  if (!value_->is_number_unsigned()) refuse("a count");
  return value_->get<std::size_t>();
}

std::size_t Field::index(std::size_t below) const {
  if (!value_->is_number_unsigned() || value_->get<std::size_t>() >= below)
    refuse(fmt::format("an index below {}", below).c_str());
  return value_->get<std::size_t>();
}

std::int64_t Field::integer() const {
  if (!value_->is_number_integer()) refuse("an integer");
  return value_->get<std::int64_t>();
}

std::string Field::text() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

bool Field::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::vector<double> Field::numbers(std::size_t expected) const {
  if (size() != expected) refuse(fmt::format("{} numbers", expected).c_str());
  std::vector<double> result;
  result.reserve(expected);
  for (std::size_t i = 0; i < expected; ++i) {
    const Json& entry = (*value_)[i];
    if (!entry.is_number() || !std::isfinite(entry.get<double>())) refuse("finite numbers");
    result.push_back(entry.get<double>());
  }
  return result;
}

std::vector<std::size_t> Field::indices(std::size_t below) const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < size(); ++i) result.push_back((*this)[i].index(below));
  return result;
}

std::vector<Weight> Field::weights(const char* key, std::size_t below) const {
  std::vector<Weight> result;
  for (std::size_t i = 0; i < size(); ++i) {
    const Field entry = (*this)[i];
    result.push_back({entry[key].index(below), entry["weight"].number()});
  }
  return result;
}

}  // namespace normscope::certificates
