#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace normscope::models {

/// A list of features. Copies share it until they change: the experts of a model have one list, not
/// thousands.
class Indices {
 public:
  using value_type = std::uint64_t;
  using const_iterator = std::vector<std::uint64_t>::const_iterator;
  using iterator = const_iterator;

  Indices() = default;
  Indices(std::initializer_list<std::uint64_t> list) : Indices(std::vector<std::uint64_t>(list)) {}
  Indices(std::vector<std::uint64_t> list)
      : list_(list.empty() ? nullptr : std::make_shared<std::vector<std::uint64_t>>(std::move(list))) {}

  [[nodiscard]] bool empty() const { return list_ == nullptr; }
  [[nodiscard]] std::size_t size() const { return all().size(); }
  [[nodiscard]] std::uint64_t operator[](std::size_t index) const { return all()[index]; }
  [[nodiscard]] const_iterator begin() const { return all().begin(); }
  [[nodiscard]] const_iterator end() const { return all().end(); }
  [[nodiscard]] bool operator==(const Indices& other) const {
    return list_ == other.list_ || all() == other.all();
  }

  void clear() { list_.reset(); }
  void push_back(std::uint64_t feature) {
    if (list_.use_count() != 1) list_ = std::make_shared<std::vector<std::uint64_t>>(all());
    list_->push_back(feature);
  }

 private:
  [[nodiscard]] const std::vector<std::uint64_t>& all() const {
    static const std::vector<std::uint64_t> none;
    return list_ == nullptr ? none : *list_;
  }

  std::shared_ptr<std::vector<std::uint64_t>> list_{};  ///< null for none
};

}  // namespace normscope::models
