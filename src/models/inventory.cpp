#include "inventory.hpp"

#include <algorithm>
#include <map>

namespace normscope::models {

namespace {

// The name with every component that is a layer number replaced by "{}".
std::string form_of(std::string_view name) {
  std::string form;
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view component = name.substr(0, dot);
    form += layer_number(component) ? "{}" : component;
    if (dot == std::string_view::npos) return form;
    form += '.';
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

std::optional<int> layer_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 6 || (digits.size() > 1 && digits[0] == '0')) return {};
  int number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + (c - '0');
  }
  return number;
}

std::optional<int> first_number(std::string_view name) {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("./"), name.size());
    if (const std::optional<int> number = layer_number(name.substr(0, end))) return number;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return {};
}

Inventory::Inventory(const files::Checkpoint& checkpoint) : tensors_(checkpoint.tensors()) {
  for (const files::Tensor& tensor : tensors_) forms_.insert(form_of(tensor.name));
}

std::set<std::string, std::less<>> Inventory::prefixes_of(std::string_view pattern) const {
  std::set<std::string, std::less<>> prefixes;
  for (const std::string& form : forms_) {
    for (std::size_t at = form.find(pattern); at != std::string::npos; at = form.find(pattern, at + 1)) {
      if (at != 0 && form[at - 1] != '.') continue;
      if (form.find("{}") >= at) prefixes.insert(form.substr(0, at));
      break;
    }
  }
  return prefixes;
}

std::optional<std::string> Inventory::prefix_of(std::string_view pattern) const {
  return prefix_of(std::span(&pattern, 1));
}

std::optional<std::string> Inventory::prefix_of(std::span<const std::string_view> patterns) const {
  std::map<std::string, std::size_t, std::less<>> matches;
  for (const std::string& prefix : prefixes_of(patterns.front())) matches[prefix] = 1;
  if (matches.size() > 1) {
    for (const std::string_view pattern : patterns.subspan(1)) {
      for (const std::string& prefix : prefixes_of(pattern)) {
        if (const auto found = matches.find(prefix); found != matches.end()) ++found->second;
      }
    }
  }
  const auto is_worse = [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first.size() > b.first.size();
  };
  const auto best = std::max_element(matches.begin(), matches.end(), is_worse);
  return best == matches.end() ? std::nullopt : std::optional(best->first);
}

std::vector<int> Inventory::numbers_after(std::string_view head) const {
  std::vector<int> numbers;
  for (const files::Tensor& tensor : starting_with(head)) {
    const std::string_view rest = tensor.name.substr(head.size());
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) continue;
    const std::optional<int> number = layer_number(rest.substr(0, dot));
    if (number && (numbers.empty() || numbers.back() != *number)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::span<const files::Tensor> Inventory::starting_with(std::string_view head) const {
  const auto before = [](const files::Tensor& tensor, std::string_view name) { return tensor.name < name; };
  const auto first = std::lower_bound(tensors_.begin(), tensors_.end(), head, before);
  const auto last = std::partition_point(
      first, tensors_.end(), [&](const files::Tensor& tensor) { return tensor.name.starts_with(head); });
  return {first, last};
}

}  // namespace normscope::models
