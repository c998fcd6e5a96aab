#pragma once

#include <string_view>

namespace normscope::cli {

/// The name that lines of errors begin with.
void name_program(const char* name);

/// Writes the program's name and `text` to standard error without allocating, also in a signal handler.
void complain_plainly(std::string_view text);

/// The same for `text` alone.
void write_plainly(std::string_view text);

/// Ends the program with a line and `Exit::bad_input`. It is also what happens where no exception can report
/// that memory is exhausted: before `main`, in functions that must not throw, and in GMP.
[[noreturn]] void end_out_of_memory();

}  // namespace normscope::cli
