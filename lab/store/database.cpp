#include "database.hpp"

#include <sqlite3.h>

#include <limits>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::lab {

Database::Database(const std::filesystem::path& file) : name_(file.string()) {
  const int status =
      sqlite3_open_v2(name_.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (status != SQLITE_OK) {
    const std::string why = handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_);
    sqlite3_close(handle_);
    throw Error(ErrorCode::Io, fmt::format("run store: {}: {}", name_, why));
  }
  // Others may lock the file while they save.
  sqlite3_busy_timeout(handle_, 60'000);
}

Database::~Database() { sqlite3_close(handle_); }

void Database::fail(int status) const {
  const ErrorCode code =
      status == SQLITE_NOTADB || status == SQLITE_CORRUPT ? ErrorCode::Format : ErrorCode::Io;
  throw Error(code, fmt::format("run store: {}: {}", name_, sqlite3_errmsg(handle_)));
}

void Database::execute(const char* sql) {
  const int status = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) fail(status);
}

Statement Database::prepare(std::string_view sql) { return {*this, sql}; }

std::int64_t Database::changes() const { return sqlite3_changes64(handle_); }

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  check(sqlite3_prepare_v2(database.handle_, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::check(int status) const {
  if (status != SQLITE_OK && status != SQLITE_ROW && status != SQLITE_DONE) database_.fail(status);
}

Statement& Statement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}

Statement& Statement::bind(double value) {
  check(sqlite3_bind_double(statement_, ++bound_, value));
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  check(sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(std::span<const std::byte> bytes) {
  // A null pointer would bind NULL.
  const void* data = bytes.empty() ? static_cast<const void*>("") : bytes.data();
  check(sqlite3_bind_blob64(statement_, ++bound_, data, bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::step() {
  const int status = sqlite3_step(statement_);
  check(status);
  return status == SQLITE_ROW;
}

void Statement::run() {
  while (step()) {
  }
  check(sqlite3_reset(statement_));
  bound_ = 0;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::number(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL ? std::numeric_limits<double>::quiet_NaN()
                                                                : sqlite3_column_double(statement_, column);
}

std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::vector<std::byte> Statement::bytes(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return {data, data + sqlite3_column_bytes(statement_, column)};
}

Transaction::Transaction(Database& database) : database_(database), open_(!database.in_transaction()) {
  if (open_) database.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const Error&) {
    // SQLite has rolled back already, which ended the transaction.
  }
}

void Transaction::commit() {
  if (open_) database_.execute("COMMIT");
  open_ = false;
}

}  // namespace normscope::lab
