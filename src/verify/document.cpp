#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/core/text.hpp>

#include "document.hpp"

namespace normscope::verify {

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

std::string Field::place() const {
  const std::size_t source = path_.find(": ");
  return source == std::string::npos ? path_ : path_.substr(source + 2);
}

std::vector<std::size_t> Field::indices(std::size_t below) const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < size(); ++i) result.push_back((*this)[i].index(below));
  return result;
}

std::vector<Weight> Field::weights(const char* key, std::size_t below) const {
  std::vector<Weight> result;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < size(); ++i) {
    const Field entry = (*this)[i];
    result.push_back({entry[key].index(below), entry["weight"].number()});
    indices.push_back(result.back().index);
  }
  std::sort(indices.begin(), indices.end());
  if (std::adjacent_find(indices.begin(), indices.end()) != indices.end()) refuse("each index once");
  return result;
}

namespace {

Inputs read_inputs(const Field& field) {
  Inputs inputs;
  const Field arguments = field["arguments"];
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    inputs.arguments.push_back({arguments[i]["role"].text(), arguments[i]["name"].text()});
  }
  if (field.has("gain_offset")) inputs.gain_offset = field["gain_offset"].number();
  if (field.has("architecture")) inputs.stated.architecture = field["architecture"].text();
  if (field.has("heads")) inputs.stated.heads = field["heads"].count();
  const Field arrays = field["arrays"];
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    InputArray array;
    array.role = arrays[i]["role"].text();
    array.sha256 = arrays[i]["sha256"].text();
    const Field shape = arrays[i]["shape"];
    for (std::size_t axis = 0; axis < shape.size(); ++axis) array.shape.push_back(shape[axis].count());
    inputs.arrays.push_back(std::move(array));
  }
  return inputs;
}

/// The value at the end of a path of names; none where one is not there.
std::optional<Field> find(Field from, std::initializer_list<const char*> path) {
  for (const char* name : path) {
    if (!from.has(name)) return std::nullopt;
    from = from[name];
  }
  return from;
}

Field at(Field from, std::initializer_list<const char*> path) {
  for (const char* name : path) from = from[name];
  return from;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text;
  for (const std::size_t length : shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", length);
  return text;
}

}  // namespace

InputArray describe_array(std::string role, std::vector<std::size_t> shape, std::span<const double> values,
                          unsigned threads) {
  return {std::move(role), std::move(shape), to_hex(piecewise_sha256(std::as_bytes(values), threads))};
}

void Verification::check(bool holds, const std::string& item, std::string_view reason) {
  ++checked;
  if (!holds) failed.push_back({item, std::string(reason)});
}

Result::Result(std::string_view text, std::string source) : fields_(std::make_unique<Fields>()) {
  fields_->source = std::move(source);
  fields_->bytes = text.size();
  fields_->document = read_document(text, fields_->source);
  const Field root = fields_->root();
  // "normscope.KIND/1", which the schema says.
  const std::string schema = root["schema"].text();
  fields_->kind = schema.substr(10, schema.size() - 12);
  fields_->inputs = read_inputs(root["inputs"]);
  if (root.has("certificates") && !root["certificates"].is_text()) {
    fields_->folder = root["certificates"]["folder"].text();
  }
}

Result::Result(Result&&) noexcept = default;
Result& Result::operator=(Result&&) noexcept = default;
Result::~Result() = default;

const std::string& Result::kind() const { return fields_->kind; }
const std::string& Result::source() const { return fields_->source; }
const Inputs& Result::inputs() const { return fields_->inputs; }
const std::optional<std::string>& Result::folder() const { return fields_->folder; }

std::string Result::argument(std::string_view role) const {
  for (const Argument& argument : fields_->inputs.arguments) {
    if (argument.role == role) return argument.name;
  }
  return {};
}

std::string Result::text(std::initializer_list<const char*> path) const {
  return at(fields_->root(), path).text();
}

double Result::number(std::initializer_list<const char*> path) const {
  return at(fields_->root(), path).number();
}

std::vector<std::string> Result::texts(std::initializer_list<const char*> path) const {
  const Field list = at(fields_->root(), path);
  std::vector<std::string> result;
  for (std::size_t i = 0; i < list.size(); ++i) result.push_back(list[i].text());
  return result;
}

std::vector<std::int64_t> Result::integers(std::initializer_list<const char*> path) const {
  const Field list = at(fields_->root(), path);
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < list.size(); ++i) result.push_back(list[i].integer());
  return result;
}

bool Result::has(std::initializer_list<const char*> path) const {
  const std::optional<Field> field = find(fields_->root(), path);
  return field && !field->is_null();
}

void Result::expect_arrays(const std::vector<InputArray>& found, const std::string& who) const {
  const std::vector<InputArray>& stated = fields_->inputs.arrays;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {}", who, what));
  };
  if (found.size() != stated.size()) {
    refuse(fmt::format("gives {}, expected {} as {} states them", counted(found.size(), "array"),
                       stated.size(), fields_->source));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].role != stated[i].role || found[i].shape != stated[i].shape) {
      refuse(fmt::format("its {} is {}, expected {} of {} as {} states it", found[i].role,
                         shape_text(found[i].shape), stated[i].role, shape_text(stated[i].shape),
                         fields_->source));
    }
    if (found[i].sha256 != stated[i].sha256) {
      refuse(
          fmt::format("its {} has other values than {} was computed from", found[i].role, fields_->source));
    }
  }
}

}  // namespace normscope::verify
