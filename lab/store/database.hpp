#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

/// A C++ interface of SQLite: errors throw, and destructors close.
namespace normscope::lab {

class Statement;

class Database {
 public:
  /// Errors    Io
  explicit Database(const std::filesystem::path& file);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  void execute(const char* sql);
  [[nodiscard]] Statement prepare(std::string_view sql);
  /// Number of rows changed by the last statement.
  [[nodiscard]] std::int64_t changes() const;
  [[nodiscard]] bool in_transaction() const;

 private:
  friend class Statement;
  [[noreturn]] void fail(int status) const;

  std::string name_;
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view text);
  Statement& bind(std::span<const std::byte> bytes);

  /// The next row; false after the last.
  bool step();
  /// Executes a statement without result rows; it can then be bound again.
  void run();

  [[nodiscard]] std::int64_t integer(int column) const;
  /// NaN, which SQLite stores as NULL, comes back as NaN.
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::vector<std::byte> bytes(int column) const;

 private:
  void check(int status) const;

  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

/// A write transaction, exclusive from its start. Rolled back unless `commit` is reached. Within another
/// transaction it is a part of that one.
class Transaction {
 public:
  explicit Transaction(Database& database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool open_;
};

}  // namespace normscope::lab
