#pragma once

#include "bench.hpp"

/// One pair per part of the code that a library could replace; each shows its rows.
/// docs/design/dependencies.md states what follows from them.
namespace normscope::bench {

void thread_rows(bool quick, const Show& show);
void header_rows(bool quick, const Show& show);
void rational_rows(bool quick, const Show& show);
void double_double_rows(bool quick, const Show& show);
void float16_rows(bool quick, const Show& show);
void exponential_rows(bool quick, const Show& show);
void digest_rows(bool quick, const Show& show);
void random_rows(bool quick, const Show& show);
void server_rows(bool quick, const Show& show);

}  // namespace normscope::bench
