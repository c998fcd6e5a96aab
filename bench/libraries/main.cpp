// Parts of the code that a library could replace, against that library.

#include "pairs.hpp"

namespace {

using namespace normscope;

void rows(bool quick, const bench::Show& show) {
  bench::thread_rows(quick, show);
  bench::header_rows(quick, show);
  bench::rational_rows(quick, show);
  bench::double_double_rows(quick, show);
  bench::float16_rows(quick, show);
  bench::exponential_rows(quick, show);
  bench::digest_rows(quick, show);
  bench::random_rows(quick, show);
  bench::server_rows(quick, show);
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
